"""Three shares at once.

What is believed of sunny, rainy and overcast on days with tennis: every point of the triangle is one possible
mixture.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

tennis = tb.datasets.tennis()
model = tb.textbook(tennis, tennis.target)
model.plot.dirichlet("Outlook", "yes")
plt.show()
