"""A row that leaves no trace.

How likely one member is to leave while ten others are learnt one after the other, and forgotten again in another
order. The last point is the first, to the last bit.
"""

import random

import matplotlib.pyplot as plt

import tallybayes as tb

club = tb.datasets.mixed(210).records()
asked, model = club[0], tb.textbook(club[1:200], "leaves")
line = [model.predict_proba(asked)[0, 1]]
for row in club[200:]:
    model = model.update(row)
    line.append(model.predict_proba(asked)[0, 1])
for row in random.Random(1).sample(club[200:], 10):
    model = model.forget(row)
    line.append(model.predict_proba(asked)[0, 1])
assert line[0] == line[-1]
plt.plot(line, "o-")
plt.axvline(10, linestyle=":", color="#7d8590")
plt.xlabel("rows learnt, then forgotten")
plt.ylabel("P(leaves)")
plt.show()
