"""What would change the answer, for every flat at once.

Of the flats that are let slowly, by the model: how many values would have to be different, and which are changed most
often?
"""

from collections import Counter

import matplotlib.pyplot as plt

import tallybayes as tb

flats = tb.datasets.flats()
model = tb.textbook(flats, flats.target, kinds={"number": "ignore", "note": "ignore"})
slow = [row for row in flats.records() if model.predict(row)[0] == "slow"]
turned = [model.what_if(row, fixed=["district"]) for row in slow]
names = Counter(change.column for found in turned for change in found.changes)
plt.barh(*zip(*sorted(names.items(), key=lambda item: item[1])))
plt.xlabel(f"changed in so many of {len(slow)} flats")
plt.show()
