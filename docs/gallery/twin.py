"""Naive Bayes and its twin.

The same columns and the same form, fitted to the rows instead of counted: logistic regression. The four copies of one
sensor share what each of them says alone.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

machine = tb.datasets.dependent(1500)
twin = tb.logistic_twin(machine, tb.infer(machine, "fault")).table.to_pylist()
twin = [w for w in twin if w["class"] == "yes" and w["feature"].endswith(("=high", "=night", "=open", "=on"))]
for shift, way in ((0.2, "naive_bayes"), (-0.2, "logistic")):
    plt.barh([i + shift for i in range(len(twin))], [w[way] for w in twin], height=0.38, label=way.replace("_", " "))
plt.yticks(range(len(twin)), [w["feature"] for w in twin])
plt.xlabel("weight for a fault")
plt.legend()
plt.show()
