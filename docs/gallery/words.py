"""The words that tell most.

Tickets of a help desk, and which words speak for which of four queues.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

tickets = tb.datasets.tickets(800)
model = tb.textbook(tickets, tickets.target, kinds={"text": "text", "customer": "ignore"})
model.plot.words(top=5)
plt.show()
