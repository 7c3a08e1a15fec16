"""One table, three families.

The same counts, read by a bell, a kernel and bins. Two humps and one hump of the same mean and variance: a bell
cannot tell them apart. Nothing is counted again.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

humps = tb.datasets.humps(1500)
figure, axes = plt.subplots(1, 3, figsize=(9, 3.6))
for ax, family in zip(axes, ("gaussian", "kernel", "bins")):
    model = tb.textbook(humps, "shape", families=family)
    right = (model.predict(humps) == humps["shape"]).mean()
    model.plot.densities("x", ax=ax)
    ax.set_xlabel(f"{family}: {right:.0%} right")
plt.show()
