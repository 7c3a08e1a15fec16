"""How one answer adds up.

What each column says about one flat, one after the other, from the prior to the score. Green speaks for the answer,
red against it; thin lines are 95 % intervals.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

flats = tb.datasets.flats()
model = tb.textbook(flats, flats.target, kinds={"number": "ignore", "note": "text"})
model.plot.waterfall(flats.records()[7])
plt.show()
