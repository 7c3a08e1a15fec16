"""How threads share texts out, and what each has counted of them. Import only through `wordscan`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from ...base.arrays import Ints
from .countkernels import FILLED, LABEL, SEEN, flush
from .strings import longer
from .words import STATES


class Meeting:
    """The texts of a stretch, which two threads take piece by piece, one from the front and one from the back.

    Neither has to wait for the other, whatever its texts hold, and each has classes of its own but the one where they
    meet.
    """

    def __init__(self, sizes: Any, pieces: int) -> None:
        total = np.cumsum(sizes, dtype=np.int64)
        inner = np.searchsorted(total, int(total[-1] if len(total) else 0) * np.arange(1, pieces) / pieces)
        self._edges: list[int] = np.unique([0, *inner.tolist(), len(sizes)]).tolist()
        self._first, self._last, self._lock = 0, len(self._edges) - 1, Lock()

    def stops(self, backward: bool) -> Iterator[int]:
        """How far to go, counted from the end where one has begun, as long as anything is left."""
        while True:
            with self._lock:
                if self._first >= self._last:
                    return
                self._first, self._last = self._first + (not backward), self._last - backward
                stop = self._edges[-1] - self._edges[self._last] if backward else self._edges[self._first]
            yield stop


@dataclass
class Ledger:
    """What one thread has counted by class: its entries, and the places where its kernel stands."""

    tally: Any  # two numbers beside each token, as `add_up` has them
    room: InitVar[int]
    backward: bool = False  # whether the classes come in falling order
    state: Ints = field(default_factory=lambda: np.array([0, 0, 0, -1] + [0] * (STATES - LABEL - 1)))

    def __post_init__(self, room: int) -> None:
        self.entries = np.empty((room, 4), dtype=np.uint32)
        self.touched = np.empty(len(self.tally), dtype=np.uint32)

    @property
    def filled(self) -> int:
        """How many entries there are."""
        return int(self.state[FILLED])

    def grow(self) -> None:
        """Make room for the entries of one class more."""
        filled, seen = self.filled, int(self.state[SEEN])
        if filled + seen > len(self.entries):
            self.entries = longer(self.entries, filled, 2 * (filled + seen))

    def close(self) -> Ledger:
        """The ledger with the last class written down."""
        self.grow()
        _, seen, filled, label = self.state[: LABEL + 1].tolist()
        self.state[FILLED] = flush(self.entries, filled, label, self.tally, self.touched, seen)
        return self
