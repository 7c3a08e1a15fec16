"""Rows in which two columns say something only together, so that a fit of default effort has weights, corrections and
pairs; and a person among them whose values nobody else has.
"""

from __future__ import annotations

import random
from typing import Any

KINDS = {"person": "ignore", "note": "text"}
SECRET, SKY, WORD, LABEL, TEMP = "Zebulon-Quarrel", "lilacsky", "overheardword", "onlyhers", 21.98765


def crossed(count: int, seed: int = 0) -> list[dict[str, Any]]:
    dice, out = random.Random(seed), []
    for i in range(count):
        sky, wind = dice.choice(("sunny", "rainy", "grey")), dice.choice(("calm", "fresh", "storm"))
        play = "yes" if (sky == "sunny") == (wind == "calm") else "no"
        play = dice.choice(("yes", "no")) if dice.random() < 0.1 else play
        words = ("cold", "wet", "long", "late", "warm" if play == "yes" else "grim")
        out.append({
            "person": f"p{i % 9}", "sky": sky, "wind": wind, "temp": round(dice.gauss(15 + 3 * (play == "yes"), 4), 1),
            "note": " ".join(dice.choice(words) for _ in range(2)), "play": play,
        })  # fmt: skip
    return out


def hers(count: int) -> list[dict[str, Any]]:
    """Rows of one person: her name, a sky, a word, a number and a label that are hers alone."""
    own = {"person": SECRET, "sky": SKY, "temp": TEMP}
    return [
        {**each, **own, "note": f"{each['note']} {WORD}", "play": "yes" if each["wind"] == "storm" else "no"}
        for each in crossed(count, seed=1)
    ]
