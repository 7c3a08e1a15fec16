"""What came in lately, beside what was learnt: rows that were asked, by slices of time, and labels that came later.

    asked       → a buffer → counts without labels, one tally for each slice of time → drift, by the library's own test
    labelled    → what the model had said before it learnt the row → whether it keeps what it promises

No row is kept longer than until some hundreds are counted together, or until somebody looks. Slices grow coarser as
they grow old, so that memory stays small. All of it begins with the server, and anew with an erasure: counts could hold
a value that was to be erased.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincinv, ndtri

from ..base.arrays import Floats
from ..base.canon import text as canonical
from ..base.errors import TallybayesError, heard
from ..model.joint.shift import Shifts, shift
from ..model.watching.watch import Watch
from ..selection.measure.curves import Reliability, reliability
from ..selection.measure.metrics import LEAST
from ..tally.tally import Tally
from .desk import Desk
from .journal import RowChange, label_in
from .rows import RowReader
from .served import Served

LEAST_ROWS, LEAST_SECONDS = 200, 600.0  # of a slice before another begins
MOST_SLICES = 64  # of more, the older half is put together by twos
WINDOW = 1_000  # rows of the newest slices, at least, that are held against what was learnt
FEWEST = 30  # rows, below which no drift is asked about
FEWEST_LABELS = 10  # rows, below which nobody is told that a promise is kept, or is not
_WAITING = 512  # rows that are counted together, at most
_MOST_WAITING, _MOST_CELLS = 8_192, 1 << 18  # requests whose answers wait, and their probabilities
_OF_A_BATCH = 1_024  # rows of one request, evenly spaced, that are counted
EXACT, PART = 2_000, 32  # rows of a slice beyond which only one in so many is counted: a busy server has enough
MOST_LABELS = 20_000  # of which is remembered what had been said of them
_LONGEST_VALUE = 1_000  # characters or entries, of what is kept until it is counted
_Z = float(ndtri(0.975))
_log = logging.getLogger("tallybayes.serve")


def _short(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row without megabytes: no category is so long, and texts are not counted here."""
    if all(not isinstance(value, (str, list, dict)) or len(value) <= _LONGEST_VALUE for value in row.values()):
        return row

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return dict(islice(value.items(), _LONGEST_VALUE))
        return value[:_LONGEST_VALUE] if isinstance(value, (str, list)) else value

    return {name: cut(value) for name, value in row.items()}


class _Asked(NamedTuple):
    """One request that waits to be counted; it holds no model, since each label makes another."""

    when: float
    read: RowReader  # another one after an erasure
    rows: Sequence[Mapping[str, Any]]  # those that are to be counted
    classes: Sequence[Any]
    chances: Floats  # rows × classes, of all rows


@dataclass
class Slice:
    """Some time: how many rows were asked then, what was answered, and their counts without labels."""

    began: float
    ended: float
    rows: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    sure: float = 0.0  # Σ of the probability of each answer
    tally: Tally | None = None  # of all rows, or of many those that were counted

    def add(self, later: Slice) -> None:
        """Take what the slice after this one has counted, too."""
        self.ended, self.rows, self.sure = later.ended, self.rows + later.rows, self.sure + later.sure
        self.answers += later.answers
        if later.tally is not None:
            self.tally = later.tally if self.tally is None else self.tally + later.tally


@dataclass(frozen=True)
class Promise:
    """A mean over rows: what came, what the model had promised, and what chance alone leaves of a kept promise."""

    came: float
    promised: float
    low: float
    high: float

    @property
    def kept(self) -> bool:
        """Whether what came is what chance leaves."""
        return self.low <= self.came <= self.high


@dataclass(frozen=True)
class Later:
    """What the model had said of rows whose label came later."""

    rows: int
    unknown: int  # rows of a class that the model did not know, which are not among these
    log_loss: Promise
    accuracy: Promise
    curve: Reliability  # of the answer given

    @property
    def enough(self) -> bool:
        """Whether they are enough to say that a promise is kept, or is not."""
        return self.rows >= FEWEST_LABELS


class Lately:
    """What a desk was asked and taught since it was opened here. Threads may share it."""

    def __init__(self, desk: Desk, clock: Callable[[], float] = time.time) -> None:
        self._desk, self._clock, self._turn = desk, clock, threading.Lock()
        self.began = clock()
        self._read: RowReader = desk.served.read
        self._waiting: deque[_Asked] = deque()
        self._pending = self._cells = 0  # their rows and probabilities, about: threads may add at once
        self._met = 0  # rows, about
        self._busy = False  # whether the slice has so many rows that only some are counted
        self._slices: list[Slice] = []
        self._labels: deque[Sequence[float]] = deque(maxlen=MOST_LABELS)
        self._drift: tuple[Any, Shifts | None] = (None, None)  # the last, and of what
        self.unknown = 0  # labels of classes that the model did not know
        desk.heard = self._heard

    # ---- rows that were asked

    def asked(self, served: Served, rows: Sequence[Mapping[str, Any]], chances: Floats) -> None:
        """Remember rows that were answered, until they are counted; `chances` are rows × classes."""
        if len(rows) == 0:
            return
        step = max(len(rows) // _OF_A_BATCH, 1) * (PART if self._busy else 1)
        some = [_short(row) for row in rows[-self._met % step :: step]]  # one in so many, over all requests
        self._met += len(rows)
        self._waiting.append(_Asked(self._clock(), served.read, some, served.model.classes, chances))
        self._pending, self._cells = self._pending + len(some), self._cells + chances.size
        full = self._pending >= _WAITING or self._cells >= _MOST_CELLS or len(self._waiting) >= _MOST_WAITING
        if full and self._turn.acquire(blocking=False):  # else somebody is counting
            try:
                self._count()
            finally:
                self._turn.release()

    def slices(self) -> list[Slice]:
        """What was asked, the oldest first, everything counted."""
        with self._turn:
            self._count()
            return [replace(each, answers=Counter(each.answers)) for each in self._slices]

    def _count(self) -> None:
        """Count what waits; the caller has the turn."""
        self._pending = self._cells = 0
        if self._desk.served.read is not self._read:  # something was erased
            self._read, self._slices = self._desk.served.read, []
        run: list[_Asked] = []
        while self._waiting:
            one = self._waiting.popleft()
            if one.read is not self._read:
                continue
            if self._is_full(one.when, run):
                self._put(run)
                run = []
                self._slices.append(Slice(one.when, one.when))
            run.append(one)
        self._put(run)
        while len(self._slices) > MOST_SLICES:
            old = self._slices[: MOST_SLICES // 2]
            for first, second in zip(old[::2], old[1::2], strict=True):
                first.add(second)
            self._slices[: len(old)] = old[::2]

    def _is_full(self, when: float, run: Sequence[_Asked]) -> bool:
        """Whether a row that came then begins another slice, with these waiting for the one before."""
        if not self._slices and not run:
            return True
        began = self._slices[-1].began if self._slices else run[0].when
        if when - began < LEAST_SECONDS:
            return False
        return (self._slices[-1].rows if self._slices else 0) + sum(len(one.chances) for one in run) >= LEAST_ROWS

    def _put(self, run: Sequence[_Asked]) -> None:
        """Count rows that belong to the last slice."""
        if not run:
            return
        into, new = self._slices[-1], Slice(run[0].when, run[-1].when)
        by_classes: dict[int, list[_Asked]] = {}  # an operation may have brought another class
        for one in run:
            by_classes.setdefault(id(one.classes), []).append(one)
        for some in by_classes.values():
            chances, classes = np.concatenate([one.chances for one in some]), some[0].classes
            new.rows += len(chances)
            new.sure += float(chances.max(axis=1).sum())
            n = np.bincount(chances.argmax(axis=1), minlength=len(classes)).tolist()
            new.answers += Counter({str(canonical(c)): k for c, k in zip(classes, n, strict=True) if k})
        new.tally = self._counted([row for one in run for row in one.rows])
        into.add(new)
        self._busy = into.tally is not None and into.tally.rows >= EXACT

    def _counted(self, rows: Sequence[Any]) -> Tally:
        """Their counts without labels."""
        watch = Watch(self._desk.model)
        if not rows:
            return watch.tally
        try:
            watch.see(rows)
        except TallybayesError:  # each was read by itself before: together they may be of no one type
            for row in rows:
                with contextlib.suppress(TallybayesError):
                    watch.see([row])
        return watch.tally

    # ---- drift

    def window(self, *, every: bool = False) -> Slice | None:
        """The newest slices that have enough rows together, or all of them, as one; None where there is none."""
        out: Slice | None = None
        for each in reversed(self.slices()):
            if out is not None and not every and out.tally is not None and out.tally.rows >= WINDOW:
                break
            one = Slice(each.began, each.began)
            one.add(each)
            if out is not None:
                one.add(out)
            out = one
        return out

    def drift(self, served: Served, *, every: bool = False) -> Shifts | None:
        """How the newest rows differ from what was learnt, column by column; None where they are too few to tell."""
        lately = self.window(every=every)
        if lately is None or lately.tally is None or lately.tally.rows < FEWEST or not lately.tally.schema.counted:
            return None
        key = (served.version, every, lately.began, lately.tally.rows)
        if self._drift[0] != key:
            self._drift = key, shift(served.tally, lately.tally)
        return self._drift[1]

    # ---- labels that came later

    def _heard(self, before: Served, changes: Sequence[RowChange]) -> None:
        """Remember what was said of rows before they are learnt. The operation is done, and nothing here undoes it."""
        try:
            given = [before.read.asked(c.row.values) for c in changes]
            place = {str(canonical(c)): i for i, c in enumerate(before.model.classes)}
            at = np.array([place.get(label_in(c.became) or "", -1) for c in changes])
            with heard():  # what nobody said of a row is not in it
                p = np.clip(before.model.predict_proba(given), 0.0, 1.0)[at >= 0]
            said = _said(p, at[at >= 0])
        except Exception:
            _log.exception("what was said of rows that were learnt is not known")
            return
        with self._turn:
            self.unknown += int(np.count_nonzero(at < 0))
            self._labels.extend(said.tolist())

    def later(self) -> Later | None:
        """What came of what the model had said; None where no label has come."""
        with self._turn:
            found = np.array(self._labels).reshape(len(self._labels), 6)
        if not len(found):
            return None
        loss, hit, top, promised, variance, third = found.T
        sure = top * (1 - top)
        curve = reliability(hit.astype(np.int64), np.stack([1 - top, top], axis=1), 1, bins=10)
        return Later(
            len(found), self.unknown, _promise(loss, promised, variance, third),
            _promise(hit, top, sure, sure * (1 - 2 * top), 1.0), curve,
        )  # fmt: skip


def told(lately: Lately, served: Served) -> dict[str, Any]:
    """The same as plain values."""
    found, later = lately.drift(served), lately.later()
    slices = [
        {"began": moment(s.began), "ended": moment(s.ended), "rows": s.rows, "answers": dict(s.answers),
         "sure": s.sure / s.rows if s.rows else None}
        for s in lately.slices()
    ]  # fmt: skip
    out: dict[str, Any] = {"since": moment(lately.began), "slices": slices, "drift": None, "labelled": None}
    if found is not None:
        columns = [
            {"column": s.column, "kind": s.kind, "verdict": s.verdict, "reason": s.reason, "p": s.p_value,
             "p_corrected": s.p_corrected, "divergence": s.marginal.divergence, "new": s.new,
             "mean_difference": s.marginal.mean_difference}
            for s in found
        ]  # fmt: skip
        out["drift"] = {"rows": found.rows[1], "learnt": found.rows[0], "says": found.summary, "columns": columns}
    if later is not None:
        promises = {"log_loss": asdict(later.log_loss), "accuracy": asdict(later.accuracy)}
        out["labelled"] = {"rows": later.rows, "unknown": later.unknown, **promises}
    return out


def moment(seconds: float) -> str:
    """A time as the journal writes it, to the minute.

    >>> moment(0.0)
    '1970-01-01 00:00'
    """
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M")


def _said(p: Floats, at: Any) -> Floats:
    """Of each row: its log loss, whether it was right, how sure; and the mean, variance and skewness of the promise.

    If the probabilities are right, −log P(label) has the mean Σ p·(−log p), whatever the label will be.
    """
    bits = -np.log(np.maximum(p, LEAST))
    mean = (p * bits).sum(axis=1, keepdims=True)
    moments = [(p * (bits - mean) ** k).sum(axis=1) for k in (2, 3)]
    rows = np.arange(len(p))
    hit = p.argmax(axis=1) == at
    return np.stack([bits[rows, at], hit, p.max(axis=1, initial=0.0), mean[:, 0], *moments], axis=1)


def _promise(came: Floats, promised: Floats, variance: Floats, third: Floats, most: float = float("inf")) -> Promise:
    """A mean, and where it lies in 95 of 100 cases if the promise is kept: a gamma distribution by its moments.

    What is meant can be no less than 0, and no more than `most`.
    """
    n, mean, total = len(came), float(promised.mean()), float(variance.sum())
    if total <= 0:
        return Promise(float(came.mean()), mean, mean, mean)
    skew = float(third.sum()) / total**1.5
    ends = np.array([-_Z, _Z])
    if abs(skew) > 1e-3:
        k = 4 / skew**2
        shares = np.array([0.025, 0.975]) if skew > 0 else np.array([0.975, 0.025])
        ends = np.sign(skew) * (gammaincinv(k, shares) - k) / np.sqrt(k)
    low, high = mean + ends * np.sqrt(total) / n
    return Promise(float(came.mean()), mean, max(float(low), 0.0), min(float(high), most))
