"""How an answer turns along one column.

One flat, asked again and again with another rent: everything else stays as it is. With a balcony the rent may be
higher.
"""

import matplotlib.pyplot as plt
import numpy as np

import tallybayes as tb

flats = tb.datasets.flats()
model = tb.textbook(flats, flats.target, kinds={"number": "ignore", "note": "ignore"})
rents = np.arange(300, 1500, 10)
for balcony in ("yes", "no"):
    rows = {"rent": rents, "rooms": [2] * len(rents), "size": [57.6] * len(rents), "balcony": [balcony] * len(rents),
            "district": ["Harbour"] * len(rents), "heating": ["gas"] * len(rents)}  # fmt: skip
    plt.plot(rents, model.predict_proba(rows)[:, 0], label=f"balcony: {balcony}")
plt.axhline(0.5, linestyle=":", color="#7d8590")
plt.xlabel("rent")
plt.ylabel("P(let fast)")
plt.legend()
plt.show()
