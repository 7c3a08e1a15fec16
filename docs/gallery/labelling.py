"""Labels that are worth asking for.

Accuracy on new tickets by how many were labelled: chosen by the model, and in the order in which they came.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

pool, new = tb.datasets.tickets(400), tb.datasets.tickets(1000, seed=1)
schema = tb.Schema([tb.Column("text", "text")], target="queue")
rows = [{"text": t, "queue": q} for t, q in zip(pool["text"], pool["queue"])]
for chosen, name in ((True, "chosen"), (False, "as they came")):
    work, right = tb.Labelling(tb.count(rows[:8], schema).model(), {"text": pool["text"][8:]}), []
    for number in range(80):
        row = work.next()[0] if chosen else number
        work.label(row, pool["queue"][row + 8])
        right.append((work.model.predict(new) == new["queue"]).mean())
    plt.plot(range(9, 89), right, label=name)
plt.xlabel("labels")
plt.ylabel("accuracy")
plt.legend()
plt.show()
