"""Naive Bayes and its twin.

The same columns and the same form, fitted to the rows instead of counted: logistic regression. The four copies of one sensor share
what each of them says alone.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

machine = tb.datasets.dependent(1500)
twin = tb.logistic_twin(machine, tb.infer(machine, "fault")).table.to_pandas()
twin = twin[twin["class"] == twin["class"].iloc[-1]]
for name, ours, theirs in zip(twin["feature"], twin["naive_bayes"], twin["logistic"]):
    plt.plot([0, 1], [ours, theirs], "o-", alpha=0.8, label=name)
plt.xticks([0, 1], ["naive Bayes", "logistic regression"])
plt.ylabel("weight")
plt.legend(bbox_to_anchor=(1, 1), loc="upper left")
plt.show()
