"""Would more rows help?

The loss of held-out rows and of counted ones, by how many were counted. Where the two meet, more rows of the same
kind gain little. Every row is counted once, whatever the sizes.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

club = tb.datasets.mixed(2000)
schema = tb.infer(club, "leaves", kinds={"joined": "ignore", "note": "ignore"})
tb.learning_curve(club, schema, settings=tb.Settings(), sizes=(25, 50, 100, 200, 400, 800, 1600)).plot()
plt.show()
