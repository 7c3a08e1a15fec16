"""What a promise costs.

Sets of queues that hold the right one as often as asked: the surer they must be, the larger they are. Dots are the
share that was right on new tickets; the likeliest queue is always in.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

seen, new = tb.datasets.tickets(2000), tb.datasets.tickets(4000, seed=1)
model = tb.textbook(seen, "queue", kinds={"text": "text", "customer": "ignore"}).with_sets(seen)
asked = [0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99]
sets = [model.predict_set(new, coverage=c) for c in asked]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
left.plot(asked, [s.members.sum(axis=1).mean() for s in sets], "o-")
left.set(xlabel="coverage asked for", ylabel="queues in a set, on average")
held = [sum(truth in one for truth, one in zip(new["queue"], s)) / len(new["queue"]) for s in sets]
right.plot(asked, asked, ":", color="#7d8590")
right.plot(asked, held, "o")
right.set(xlabel="coverage asked for", ylabel="sets that hold the right one")
plt.show()
