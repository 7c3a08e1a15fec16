"""Long memory or short?

Each month judged by the model of the months before it. After the change in August the model that remembers only two
months is the better one.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

orders = tb.datasets.drift(6000)
windows = tb.Windows(tb.infer(orders, "returned", kinds={"day": "ignore"}), by="month", time="day")
windows.add(orders)
for name, memory in (("all months", {}), ("the last two", {"last": 2})):
    judged = tb.prequential(windows, orders, **memory).periods
    plt.plot([p.period for p in judged], [p.log_loss for p in judged], "o-", label=name)
plt.xticks(rotation=45)
plt.ylabel("log loss")
plt.legend()
plt.show()
