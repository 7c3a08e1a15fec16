"""What each column is worth.

How much worse the log loss of held-out rows is without the column, with its 95 % interval. One that crosses the line
is not beyond chance.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

club = tb.datasets.mixed(800)
del club["joined"]  # the same for all
worth = tb.fit(club, "leaves", effort="quick").importance(club).table.to_pylist()
worth = sorted(worth, key=lambda line: line["log_loss"])
names, loss = [line["column"] for line in worth], [line["log_loss"] for line in worth]
reach = [[line["log_loss"] - line["log_loss_low"], line["log_loss_high"] - line["log_loss"]] for line in worth]
plt.errorbar(loss, names, xerr=list(zip(*reach)), fmt="o", capsize=3)
plt.axvline(0, linestyle=":", color="#7d8590")
plt.xlabel("log loss without it, in addition")
plt.show()
