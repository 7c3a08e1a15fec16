"""Labels that the other rows contradict.

One label in twenty was turned round. Every row is judged by counts that it is not in, and the wrong ones gather on
the left.
"""

import matplotlib.pyplot as plt
import numpy as np

import tallybayes as tb

club = tb.datasets.mixed(1500, wrong=0.05)
found = tb.suspicious(club, "leaves", settings=tb.Settings())
likely, wrong = found.probability, np.isin(found.rows, club.truth["wrong"])
plt.hist([likely[~wrong], likely[wrong]], bins=25, stacked=True, label=["right", "turned round"])
plt.yscale("log")
plt.xlabel("P(label), by the other rows")
plt.ylabel("rows")
plt.legend()
plt.show()
