"""A model being made in the background: what is being done, how far it is, and how it ended.

One thread reads the table, chooses, counts, and writes model and journal. Whoever asks is told how far it is; who
cancels is heard at the next batch of rows or the next step of the choice, and nothing is left of the model then.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ..base.errors import TallybayesError, heard
from ..data.sources import Batch, Source
from .desk import Desk
from .looking import TableChoices
from .problems import ApiProblem
from .recovery import clear_leftovers, take_lock
from .tables import note_model

EFFORTS = {"quick": "quick", "usual": "default"}  # as the page calls them, and as `tb.fit` does
_KEEPING = "done"  # the last step of `tb.fit`, after which rows are written to the journal
_STEPS = {
    "looking": "looking at some rows", "one temperature": "weighing the evidence as a whole",
    "column weights": "weighing each column", "corrections": "correcting what columns say of held-out rows",
    "pairs": "looking for columns that tell more together", "pairs of words": "trying pairs of words",
    "characters": "trying characters beside words", "all rows": "choosing with all rows",
    "counting": "counting all rows", _KEEPING: "keeping the rows in the journal",
}  # fmt: skip
_FIT = 0.9  # of the whole; the rest is the journal
_log = logging.getLogger("tallybayes.serve")


class _CancelledFit(BaseException):
    """Somebody does not want the model any more; nothing in the library may take it for an error."""


@dataclass(frozen=True)
class Order:
    """What a model is to be made of."""

    table: str  # the path of the table
    path: str  # of the model
    target: str
    choices: TableChoices
    effort: str = "usual"
    who: str = ""

    @property
    def name(self) -> str:
        """The name of the model's file."""
        return os.path.basename(self.path)


class Fitting:
    """A model that is being made, or was made, or was not. Threads may share it."""

    def __init__(self, order: Order, take: Callable[[Desk], None]) -> None:
        self.order = order
        self.share, self.rows = 0.0, 0  # how much is done, and the last row that was read in this step
        self.state = "running"  # then done, failed or cancelled
        self.problem: ApiProblem | None = None
        self.told: tuple[str, ...] = ()  # what a person should know besides
        self._step, self._take, self._stop = "looking", take, threading.Event()
        self._began, self._ended = time.monotonic(), 0.0
        self._thread = threading.Thread(target=self._run, name="tallybayes fit", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self) -> None:
        """Ask it to end; it does so soon, not at once."""
        self._stop.set()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than that."""
        self._thread.join(seconds)

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self.state == "running"

    @property
    def cancelling(self) -> bool:
        """Whether it was asked to end and has not yet."""
        return self.running and self._stop.is_set()

    @property
    def seconds(self) -> float:
        """How long it has taken."""
        return (self._ended or time.monotonic()) - self._began

    @property
    def step(self) -> str:
        """What is being done, in words."""
        return _STEPS.get(self._step, self._step)

    # ---- the thread

    def _run(self) -> None:
        order = self.order
        state = "failed"
        try:
            with heard() as told:
                source = self._watched(order.choices.file.source(order.table))
                desk = Desk.begin(
                    order.path, source, target=order.target, who=order.who, effort=EFFORTS[order.effort],
                    progress=self._progress, **order.choices.reading(order.target),
                )  # fmt: skip
            note_model(order.table, order.path, order.choices.file.encoding)
            beside = os.path.join(os.path.dirname(order.path), "")
            self.told = tuple(each.replace(beside, "") for each in told)
            self._take(desk)
            state = "done"
        except _CancelledFit:
            state = "cancelled"
        except Exception as error:
            self.problem = ApiProblem.of(error).without(os.path.dirname(order.path))
            if self.problem.kind == "failed":
                _log.error("fitting %s failed", order.name, exc_info=error)
        finally:
            if state != "done":
                self._clear()
            self._ended = time.monotonic()
            self.state = state

    def _progress(self, what: str, done: float) -> None:
        self._check()
        self._step, self.rows = what, 0
        self.share = max(self.share, _FIT * done)

    def _check(self) -> None:
        if self._stop.is_set():
            raise _CancelledFit

    def _watched(self, source: Source) -> Source:
        """The source, whose batches are where a cancelled fit ends."""

        def watched(batches: Iterator[Batch]) -> Iterator[Batch]:
            for batch in batches:
                self._check()
                self.rows = batch.start + batch.rows
                yield batch

        narrow = source.narrow
        return replace(
            source,
            read=lambda: watched(source.read()),
            narrow=None if narrow is None else lambda wanted: watched(narrow(wanted)),
        )

    def _clear(self) -> None:
        """Leave no journal without a model."""
        path = self.order.path
        with contextlib.suppress(TallybayesError, OSError), contextlib.ExitStack() as held:
            take_lock(held, path)
            if not os.path.exists(path):
                clear_leftovers(path)
