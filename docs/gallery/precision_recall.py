"""How clean the top of the list is.

Members of a club sorted by how likely they are to leave: how many of those at the top do, and how many of all are
among them.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

seen, new = tb.datasets.mixed(600), tb.datasets.mixed(2000, seed=1)
model = tb.fit(seen, "leaves", effort="quick")
tb.plots.PrecisionRecallDisplay.from_predictions(new["leaves"], model.predict_proba(new), model.classes).plot()
plt.show()
