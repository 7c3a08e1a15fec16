"""What predictions are called where they become columns of a table: Spark frames, SQL, files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base import canon

PREDICTION, ROW, SET = "prediction", "row", "set"
_MOST_BYTES = 63  # PostgreSQL cuts longer names, and two that start alike would become one


def output_names(classes: Iterable[Any]) -> tuple[str, ...]:
    """A name for the probability of each class, no two alike even where upper and lower case are one.

    >>> output_names(["no", "No", 3])
    ('P(no)', 'P(No) 2', 'P(3)')
    """
    out: list[str] = []
    taken = {PREDICTION}
    for label in classes:
        inside = str(canon.text(label)).replace("\0", "\ufffd")
        name, number = _cut(f"P({inside})", ""), 1
        while name.casefold() in taken:
            number += 1
            name = _cut(f"P({inside})", f" {number}")
        taken.add(name.casefold())
        out.append(name)
    return tuple(out)


def because_names(terms: int) -> tuple[str, ...]:
    """Names for so many terms that speak for a prediction, and for their log-odds.

    >>> because_names(1)
    ('because 1', 'log-odds 1')
    """
    return tuple(f"{what} {i}" for i in range(1, terms + 1) for what in ("because", "log-odds"))


def _cut(name: str, end: str) -> str:
    raw = name.encode()
    room = _MOST_BYTES - len(end)
    if len(raw) <= room:
        return name + end
    return raw[: room - 4].decode(errors="ignore") + "…)" + end
