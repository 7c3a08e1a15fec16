"""Do probabilities mean what they say?

A machine whose sensor is written down four times. Plain counts take four copies for four witnesses and are far too
sure; what `tb.fit` chooses lies on the line.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

seen, new = tb.datasets.dependent(1500), tb.datasets.dependent(4000, seed=1)
models = {"counts alone": tb.textbook(seen, "fault"), "what fit chooses": tb.fit(seen, "fault")}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
for ax, (name, model) in zip(axes, models.items()):
    tb.plots.ReliabilityDisplay.from_predictions(new["fault"], model.predict_proba(new), model.classes).plot(ax)
    ax.text(0.03, 0.93, name, transform=ax.transAxes)
plt.show()
