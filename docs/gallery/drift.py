"""What changed, and when.

Orders of a year. In August those that come back begin to come from the app instead of the telephone. Each line is a
column, each point a time at which the rows before and after are compared.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

orders = tb.datasets.drift(4800)
windows = tb.Windows(tb.infer(orders, "returned", kinds={"day": "ignore"}), by="month", time="day")
windows.add(orders)
tb.change(windows).plot()
plt.show()
