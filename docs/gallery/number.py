"""A number column: counted, and believed.

Bars are the counted rows of each class, lines what a kernel makes of them: rents of flats that were let fast, and
slowly.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

flats = tb.datasets.flats()
model = tb.textbook({"rent": flats["rent"], "let": flats["let"]}, "let", families="kernel")
model.plot.column("rent")
plt.show()
