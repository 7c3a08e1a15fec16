"""Which is taken for which.

Tickets that the model has not seen, by queue: what each is, and what it was taken for.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

seen, new = tb.datasets.tickets(200), tb.datasets.tickets(1000, seed=1)
model = tb.textbook(seen, "queue", kinds={"text": "text", "customer": "ignore"})
tb.plots.ConfusionDisplay.from_predictions(new["queue"], model.predict_proba(new), model.classes).plot()
plt.show()
