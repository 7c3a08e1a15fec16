"""Where the answer changes.

Rent and size of flats; the surer the answer, the stronger the colour. With a variance of its own for each class the
border is a curve.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

flats = tb.datasets.flats()
two = {name: flats[name] for name in ("rent", "size", "let")}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8))
for ax, family in zip(axes, ("gaussian", "gaussian-shared")):
    tb.textbook(two, "let", families=family).plot.regions("rent", "size", two, ax=ax)
    ax.set_title(family, loc="right", fontsize=10)
plt.show()
