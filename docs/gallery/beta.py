"""A probability, before counting and after.

How likely is a strong wind on days with tennis, and on days without? Fourteen days leave it wide open.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

tennis = tb.datasets.tennis()
model = tb.textbook(tennis, tennis.target)
model.plot.beta("Wind", "strong")
plt.show()
