"""A category: counted, and believed.

Shares of each value by class. Dots are what was counted, bars what is believed after smoothing.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

flats = tb.datasets.flats()
model = tb.textbook({"district": flats["district"], "let": flats["let"]}, "let")
model.plot.column("district")
plt.show()
