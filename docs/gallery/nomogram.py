"""A model on a sheet of paper.

A ruler for each column: read off the points of each value, add them up by hand, and look up the probability below.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

tennis = tb.datasets.tennis()
model = tb.textbook(tennis, tennis.target)
model.plot.nomogram()
plt.show()
