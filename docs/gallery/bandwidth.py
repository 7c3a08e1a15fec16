"""How smooth is right?

A kernel's bandwidth, too narrow on the left and too wide on the right. All values are asked of the same tallies.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

humps = tb.datasets.humps(600)
schema = tb.infer(humps, target="shape")
tb.validation_curve(humps, schema, over="bandwidth", values=(0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)).plot()
plt.show()
