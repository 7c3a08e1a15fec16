"""A number column: counted, and believed.

Bars are the counted rows of each class, lines what a kernel makes of them. Ages of people who leave a sports club, and of those who
stay.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

club = tb.datasets.mixed(2000)
model = tb.textbook({"age": club["age"], "leaves": club["leaves"]}, "leaves", families="kernel")
model.plot.column("age")
plt.show()
