"""How far smoothing pulls.

Two of three draws from an urn were red. With more imagined draws the belief goes from two thirds towards one half.
"""

import matplotlib.pyplot as plt
import numpy as np

import tallybayes as tb

alphas = np.geomspace(0.01, 100, 60)
draws = {"ball": ["red", "red", "blue"], "urn": ["left"] * 3}
tally = tb.count(draws, tb.Schema([tb.Column("ball", "category")], target="urn"))
red = [tally.model(tb.Settings(smoothing=tb.Laplace(a))).table("ball").values[1, 0] for a in alphas]
plt.semilogx(alphas, red)
plt.axhline(2 / 3, linestyle=":", color="#7d8590")
plt.axhline(1 / 2, linestyle=":", color="#7d8590")
plt.xlabel("α, imagined draws of each colour")
plt.ylabel("P(red)")
plt.show()
