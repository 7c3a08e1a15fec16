"""What the served model of the tests is taught: awkward rows, and the operations of a process that will be killed.

Apart from the tests, so that such a process need not load what runs tests.
"""

from __future__ import annotations

import random
from typing import Any

from tallybayes.serve.desk import Desk

SKIES = ("sunny", "rainy", "grey", None, "naïve", 3, 3.5, True, "")
NOTES = ("cold wind", "Warm, warm sun", "", None, "x\x00y", "日本 wind")
LABELS = ("yes", "no", "no", "perhaps")


def row(number: int) -> dict[str, Any]:
    """One of many awkward rows, always the same for a number; some lack a field."""
    dice = random.Random(number)
    out = {
        "person": f"p{number % 7}",
        "sky": dice.choice(SKIES),
        "temp": dice.choice((dice.gauss(12, 5), 1e300, -0.0, 5e-324, None, 21, "7.5")),
        "note": dice.choice(NOTES),
        "play": dice.choice(LABELS),
    }
    if number % 11 == 0:
        del out["note"]
    return out


def operation(desk: Desk) -> None:
    """The next operation of the killed process: four rows are learnt, then the first of them is undone."""
    group, step = divmod(desk.version - 1, 5)
    if step < 4:
        desk.learn([row(4 * group + step)], new_classes="allow")
    else:
        desk.undo(5 * group + 2)
    if desk.version % 37 == 0:
        desk.fold()
