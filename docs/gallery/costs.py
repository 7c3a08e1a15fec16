"""When one mistake costs more.

Calling a member who stays costs a call; not calling one who leaves costs a member. The dearer that is, the more are
called.
"""

import matplotlib.pyplot as plt
import numpy as np

import tallybayes as tb

seen, new = tb.datasets.mixed(800), tb.datasets.mixed(2000, seed=1)
model = tb.fit(seen, "leaves", effort="quick")
truth, prices = np.array(new["leaves"]), [0.25, 0.5, 1, 2, 4, 8, 16]
called = [model.predict(new, costs={("yes", "no"): price}) == "yes" for price in prices]
plt.semilogx(prices, [c.mean() for c in called], "o-", label="members called")
plt.semilogx(prices, [c[truth == "yes"].mean() for c in called], "o-", label="of those who leave")
plt.xlabel("price of a member lost, in calls")
plt.ylabel("share")
plt.legend()
plt.show()
