"""The table that naive Bayes saves us from.

Every combination of rooms, balcony and answer with its share. Three columns fill a page; ten would fill a library.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

flats = tb.datasets.flats()
some = {name: flats[name] for name in ("balcony", "rooms", "let")}
tb.JointDistribution.of(some, ["balcony", "rooms", "let"], cuts={"rooms": [1.5, 2.5]}).plot()
plt.show()
