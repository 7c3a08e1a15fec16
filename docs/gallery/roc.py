"""Found, and falsely called.

For every threshold: which share of the flats that are let fast is found, and which share of the others is called so,
too.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

flats = tb.datasets.flats()
rows = flats.records()
model = tb.textbook(rows[60:], "let", kinds={"number": "ignore", "note": "text"})
chances = model.predict_proba(rows[:60])
tb.plots.RocDisplay.from_predictions([row["let"] for row in rows[:60]], chances, model.classes).plot()
plt.show()
