"""Would more rows help?

The loss of held-out rows and of counted ones, by how many were counted. Where the two meet, more rows of the same kind gain little.
Every row is counted once, whatever the sizes.
"""

import matplotlib.pyplot as plt

import tallybayes as tb

tickets = tb.datasets.tickets(1500)
schema = tb.Schema([tb.Column("text", "text")], target="queue")
tb.learning_curve(tickets, schema, settings=tb.Settings(), sizes=(15, 30, 60, 120, 300, 600, 1200)).plot()
plt.show()
