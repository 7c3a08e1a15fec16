"""Labelling as it goes: a pool whose scores are kept up to date while labels come in, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Floats, Ints
from ...base.errors import DataError, SettingsError, unknown
from ...model.model import Model
from .left import Left, counted_left
from .lookahead import SAMPLE, SHORTLIST, batch_of, falls, falls_by_counting, whole
from .pool import Pool

_AT_ONCE = 4096  # rows of the pool that are scored anew with each label, in turns; fewer are always fresh
_RANDOM = 3  # every so many rows a random one: with none some texts took a third more labels than at random
_AHEAD = 4  # times the shortlist: so many of the most uncertain rows are scored anew before the shortlist is made


@dataclass(frozen=True)
class _Audit:
    """Rows in an order that was drawn at random, and what was known when it was."""

    order: Ints
    expected: dict[str, float]  # rows of each class
    before: int  # labels


class Labelling:
    """Rows without a label, and which of them to label next; `label` counts one, `undo` takes the last back.

    >>> import tallybayes as tb
    >>> rows = {"text": ["win cash", "win now", "see you", "at home"], "y": ["spam", "spam", "ham", "ham"]}
    >>> model = tb.fit(rows, "y", kinds={"text": "text"}, calibrate=False)
    >>> work = tb.Labelling(model, {"text": ["see cash", "home at last", "win"]})
    >>> row = work.next()[0]
    >>> work.label(row, "ham")
    >>> work.model.tally.rows, work.unlabelled
    (5, 2)
    >>> work.undo(), work.unlabelled
    ((0, 'ham'), 3)
    """

    def __init__(
        self, model: Model, rows: Any, *, shortlist: int = SHORTLIST, sample: int = SAMPLE, seed: int = 0
    ) -> None:
        self._shortlist, sample = whole("shortlist", shortlist, 1), whole("sample", sample, 1)
        self._pool = self._start = Pool(model, rows)
        self._counted = 0  # labels that were known when the pool was made; those that came since are counted in it
        self._seed = whole("seed", seed, 0)
        self._rng = np.random.default_rng(self._seed)
        n = self._pool.rows
        self._sample = np.sort(self._rng.permutation(n)[:sample])
        self._labels: dict[int, Any] = {}
        self._rows = 0 if model.tally is None else model.tally.rows
        self._open = self._pool.weights > 0  # rows that may be asked for
        self._uncertain, self._p = np.empty(n), np.empty((n, 0))  # as of when each row was last scored
        self._turn = self._due = 0
        self._model: Model | None = model
        self._audit: _Audit | None = None
        self._refresh_all()

    def _refresh_all(self) -> None:
        self._p = np.empty((self._pool.rows, len(self._pool.names)))
        for first in range(0, self._pool.rows, _AT_ONCE):
            self._refresh(np.arange(first, min(first + _AT_ONCE, self._pool.rows)))

    def _refresh(self, rows: Ints) -> None:
        self._p[rows] = p = self._pool.probabilities(rows)
        self._uncertain[rows] = uncertainty(p)

    @property
    def labels(self) -> dict[int, Any]:
        """The labels given so far, by row number, in the order in which they came."""
        return dict(self._labels)

    @property
    def unlabelled(self) -> int:
        """How many rows have no label yet."""
        return self._pool.rows - len(self._labels)

    @property
    def model(self) -> Model:
        """The model with all labels counted."""
        if self._model is None:
            rows = np.array(list(self._labels), dtype=np.int64)
            self._model = self._start.updated(rows, list(self._labels.values()))
        return self._model

    def next(self, k: int = 1, *, find: Any = None) -> list[int]:
        """The numbers of the k rows to label next, the most telling first; fewer where no more are left.

        Every third row, and every row as long as all labels are of one class, is a random one: words counted in nothing
        but doubtful rows would say less of the class than they do. With `find`, a class, rows are those in which it is
        most probable: for who wants the rows of a rare class rather than a model.
        """
        k = whole("k", k, 1)
        self._catch_up()
        out: list[int]
        if find is not None:
            out = self._largest(self._p[:, self._class(find)], k).tolist()
            return out
        counted = self._rows + len(self._labels)
        several = np.count_nonzero(self._pool.totals) > 1
        chosen = self._telling(sum(i % _RANDOM > 0 for i in range(counted + 1, counted + k + 1))) if several else []
        by_chance = np.random.default_rng([self._seed, len(self._labels)])  # the same until a label comes
        others = by_chance.permutation(np.flatnonzero(self._open))[:k].tolist()
        out = [*chosen, *(row for row in others if row not in chosen)][:k]
        return out

    def _telling(self, k: int) -> list[int]:
        if k == 0:
            return []
        short = self._largest(self._uncertain, max(self._shortlist, 2 * k))
        fall = (falls if self._pool.separable else falls_by_counting)(self._pool, short, self._sample)
        out: list[int] = short[batch_of(fall, k)].tolist()
        return out

    def _largest(self, by: Floats, n: int) -> Ints:
        """The n rows without a label that have most of something; those that may have are scored anew before."""
        left = np.flatnonzero(self._open)
        ahead = _first(left, -by[left], max(_AHEAD * n, 256))
        self._refresh(ahead)
        return _first(ahead, -by[ahead], n)

    def _class(self, label: Any) -> int:
        name = str(canon.text(label))
        if name not in self._pool.names:
            raise unknown(SettingsError, f"there is no class {label!r}", name, self._pool.names)
        return self._pool.names.index(name)

    def label(self, row: int, label: Any) -> None:
        """Count a row of the pool under a label."""
        row = self._number(row)
        if row in self._labels:
            raise DataError(
                f"row {row} has the label {self._labels[row]!r} already",
                hint="undo() takes back the last label.",
            )
        text = canon.text(label)
        if text is None:
            raise DataError(f"the label of row {row} is missing", hint="leave the row out: rows without a label stay.")
        self._labels[row], self._model = label, None
        self._open[row] = False
        self._count(row, str(text), 1)

    def undo(self) -> tuple[int, Any]:
        """Take the last label back; gives the row's number and that label."""
        if not self._labels:
            raise DataError("there is no label to take back", hint="label(row, label) gives one.")
        row, label = self._labels.popitem()
        self._model = None
        if self._audit is not None and len(self._labels) < self._audit.before:
            self._audit = None  # it was drawn from rows of which this one was none
        self._open[row] = self._pool.weights[row] > 0
        self._count(row, str(canon.text(label)), -1)
        return row, label

    def _count(self, row: int, label: str, sign: int) -> None:
        """Count a label in the pool or take it back; a class that comes or goes makes all of it anew."""
        if label not in self._pool.names or len(self._labels) < self._counted or not self._pool.separable:
            rows = np.arange(self._start.rows)
            self._pool = Pool(self.model, self._start.taken(rows))
            self._counted = len(self._labels)
            self._refresh_all()
            return
        self._pool.add(row, self._pool.names.index(label), sign)
        self._due += 1

    def _catch_up(self) -> None:
        """Score some rows anew for each label that has come or gone, in turns; a small pool whole."""
        n = self._pool.rows
        rows = (self._turn + np.arange(min(_AT_ONCE * self._due, n))) % n
        self._refresh(rows)
        self._turn, self._due = (self._turn + len(rows)) % n, 0

    def audit(self, k: int = 1, *, anew: bool = False) -> list[int]:
        """The next k rows to label that are drawn at random, which `left` rests on; fewer where no more are left.

        The first call draws an order of all rows without a label, and later ones go on in it; `anew` draws another one
        of those that have none by now, which says more of them once most of a class has been found.
        """
        k = whole("k", k, 1)
        if self._audit is None or anew:
            rows = np.flatnonzero([row not in self._labels for row in range(self._pool.rows)])
            self._audit = _Audit(self._rng.permutation(rows), self._expected(rows), len(self._labels))
        out: list[int] = [row for row in self._audit.order.tolist() if row not in self._labels][:k]
        return out

    def _expected(self, rows: Ints) -> dict[str, float]:
        """How many of some rows are of each class, by the model as it is now."""
        pieces = [self._pool.probabilities(rows[i : i + _AT_ONCE]).sum(axis=0) for i in range(0, len(rows), _AT_ONCE)]
        return dict(zip(self._pool.names, np.sum(pieces, axis=0).tolist() if pieces else [], strict=False))

    def left(self, label: Any, *, found: int = 0, confidence: float = 0.9) -> Left:
        """How many rows of a class are likely left without a label, by the audit; see `tb.relevant_left`.

        `found` is how many of the class were found before this work began, if they count as found.
        """
        name = self._pool.names[self._class(label)]
        given = list(self._labels.items())
        if self._audit is None:
            rows = np.flatnonzero([row not in self._labels for row in range(self._pool.rows)])
            audit = _Audit(rows, self._expected(rows), len(given))
            drawn: list[int] = []
        else:
            audit = self._audit
            order = audit.order.tolist()
            drawn = order[: next((i for i, row in enumerate(order) if row not in self._labels), len(order))]
        before = sum(str(canon.text(other)) == name for _, other in given[: audit.before])
        place = {row: i for i, row in enumerate(audit.order.tolist())}
        audited = {place[row]: self._labels[row] for row in drawn}
        since = {place[row]: other for row, other in given[audit.before :]}
        expected = audit.expected.get(name, 0.0)
        return counted_left(len(audit.order), label, expected, audited, since, found + before, confidence)

    def _number(self, row: Any) -> int:
        if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not 0 <= row < self._pool.rows:
            raise DataError(
                f"there is no row {row!r} among {self._pool.rows} (the first is row 0)",
                hint="give one of the numbers that next() gives.",
            )
        return int(row)


def uncertainty(p: Floats) -> Floats:
    """One less how far the likeliest class is ahead of the next; 0 where there is one class only."""
    if p.shape[1] < 2:
        return np.zeros(len(p))
    two = np.partition(p, -2, axis=1)[:, -2:]
    return np.asarray(1.0 - (two[:, 1] - two[:, 0]))


def _first(rows: Ints, by: Floats, n: int) -> Ints:
    """The n rows with the smallest numbers, smallest first."""
    if len(rows) > n:
        kept = np.argpartition(by, n - 1)[:n]
        rows, by = rows[kept], by[kept]
    out: Ints = rows[np.lexsort((rows, by))]
    return out


def next_to_label(
    model: Model, data: Any, n: int = 1, *, shortlist: int = SHORTLIST, sample: int = SAMPLE, seed: int = 0
) -> list[int]:
    """The numbers of the n rows without a label that it tells most to label next, the first is row 0.

    A label is worth what it is expected to settle about the rest: the fall of the entropy of P(class) summed over a
    fixed `sample` of the rows, worked out by counting each row of a `shortlist`, the most uncertain ones, under each
    class. Settings and families stay as they are. Several rows are chosen so that each tells something else; every
    third is a random one, see `tb.Labelling.next`. Who labels row after row keeps a `tb.Labelling`, which does not
    begin anew each time.

    >>> import tallybayes as tb
    >>> rows = {"text": ["win cash", "win now", "see you", "at home"], "y": ["spam", "spam", "ham", "ham"]}
    >>> model = tb.fit(rows, "y", kinds={"text": "text"}, calibrate=False)
    >>> next_to_label(model, {"text": ["win win", "see cash", "cash home", "you"]})
    [1]
    """
    return Labelling(model, data, shortlist=shortlist, sample=sample, seed=seed).next(whole("n", n, 1))
