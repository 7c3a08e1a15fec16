"""Labelling as it goes: a pool whose scores are kept up to date while labels come in, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Ints
from ...base.errors import DataError, SettingsError, unknown
from ...model.model import Model
from .left import Left, counted_left
from .lookahead import SAMPLE, whole
from .pool import Pool
from .scored import AT_ONCE, ScoredPool

_RANDOM = 3  # every so many rows a random one: with none some texts took a third more labels than at random


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
        self, model: Model, rows: Any, *, shortlist: int | None = None, sample: int = SAMPLE, seed: int = 0
    ) -> None:
        self._seed = whole("seed", seed, 0)
        self._rng = np.random.default_rng(self._seed)
        self._start = Pool(model, rows)
        self._scored = ScoredPool(self._start, self._rng, shortlist=shortlist, sample=sample)
        self._counted = 0  # labels that were known when the pool was made; those that came since are counted in it
        self._labels: dict[int, Any] = {}
        self._rows = 0 if model.tally is None else model.tally.rows
        self._model: Model | None = model
        self._audit: _Audit | None = None

    @property
    def labels(self) -> dict[int, Any]:
        """The labels given so far, by row number, in the order in which they came."""
        return dict(self._labels)

    @property
    def unlabelled(self) -> int:
        """How many rows have no label yet."""
        return self._start.rows - len(self._labels)

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
        but doubtful rows would say less of the class than they do. With `find`, a class, rows are those most likely of
        it, for who wants the rows of a rare class rather than a model: by what the columns say for it and against all
        others, words under a small smoothing of their own and divided by the root of how many a row has.
        """
        k = whole("k", k, 1)
        scored = self._scored
        if find is not None:
            return scored.likeliest(self._class(find), k)
        counted = self._rows + len(self._labels)
        several = np.count_nonzero(scored.pool.totals) > 1
        chosen = scored.telling(sum(i % _RANDOM > 0 for i in range(counted + 1, counted + k + 1))) if several else []
        by_chance = np.random.default_rng([self._seed, len(self._labels)])  # the same until a label comes
        others = by_chance.permutation(np.flatnonzero(scored.open))[:k].tolist()
        return [*chosen, *(row for row in others if row not in chosen)][:k]

    def _class(self, label: Any) -> int:
        name = str(canon.text(label))
        if name not in self._scored.pool.names:
            raise unknown(SettingsError, f"there is no class {label!r}", name, self._scored.pool.names)
        return self._scored.pool.names.index(name)

    def label(self, row: int, label: Any) -> None:
        """Count a row of the pool under a label; DataError if it has one already."""
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
        self._scored.open[row] = False
        self._count(row, str(text), 1)

    def undo(self) -> tuple[int, Any]:
        """Take the last label back; gives the row's number and that label. DataError if there is none."""
        if not self._labels:
            raise DataError("there is no label to take back", hint="label(row, label) gives one.")
        row, label = self._labels.popitem()
        self._model = None
        if self._audit is not None and len(self._labels) < self._audit.before:
            self._audit = None  # it was drawn from rows of which this one was none
        self._scored.open[row] = self._start.weights[row] > 0
        self._count(row, str(canon.text(label)), -1)
        return row, label

    def _count(self, row: int, label: str, sign: int) -> None:
        """Count a label in the pool or take it back; a class that comes or goes makes all of it anew."""
        known = self._scored.pool.names
        if label not in known or len(self._labels) < self._counted or not self._scored.pool.separable:
            self._scored.under(self.model)
            self._counted = len(self._labels)
        else:
            self._scored.count(row, known.index(label), sign)

    def audit(self, k: int = 1, *, anew: bool = False) -> list[int]:
        """The next k rows to label that are drawn at random, which `left` rests on; fewer where no more are left.

        The first call draws an order of all rows without a label, and later ones go on in it; `anew` draws another one
        of those that have none by now, which says more of them once most of a class has been found.
        """
        k = whole("k", k, 1)
        if self._audit is None or anew:
            rows = np.flatnonzero([row not in self._labels for row in range(self._start.rows)])
            self._audit = _Audit(self._rng.permutation(rows), self._expected(rows), len(self._labels))
        out: list[int] = [row for row in self._audit.order.tolist() if row not in self._labels][:k]
        return out

    def _expected(self, rows: Ints) -> dict[str, float]:
        """How many of some rows are of each class, by the model as it is now."""
        pieces = [
            self._scored.pool.probabilities(rows[i : i + AT_ONCE]).sum(axis=0) for i in range(0, len(rows), AT_ONCE)
        ]
        return dict(zip(self._scored.pool.names, np.sum(pieces, axis=0).tolist() if pieces else [], strict=False))

    def left(self, label: Any, *, found: int = 0, confidence: float = 0.9) -> Left:
        """How many rows of a class are likely left without a label, by the audit; see `tb.relevant_left`.

        `found` is how many of the class were found before this work began, if they count as found.
        """
        name = self._scored.pool.names[self._class(label)]
        given = list(self._labels.items())
        if self._audit is None:
            rows = np.flatnonzero([row not in self._labels for row in range(self._start.rows)])
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
        if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not 0 <= row < self._start.rows:
            raise DataError(
                f"there is no row {row!r} among {self._start.rows} (the first is row 0)",
                hint="give one of the numbers that next() gives.",
            )
        return int(row)


def next_to_label(
    model: Model, data: Any, n: int = 1, *, shortlist: int | None = None, sample: int = SAMPLE, seed: int = 0
) -> list[int]:
    """The numbers of the n rows without a label that it tells most to label next, the first is row 0.

    A label is worth what it is expected to settle about the rest: the fall of the entropy of P(class) summed over a
    fixed `sample` of the rows, worked out by counting each row of a `shortlist`, the most uncertain ones, under each
    class. By default it has up to 64 rows, fewer where columns and classes are many. Settings and families stay as they
    are. Several rows are chosen so that each tells something else; every third is a random one, see
    `tb.Labelling.next`. Who labels row after row keeps a `tb.Labelling`, which does not begin anew each time.

    >>> import tallybayes as tb
    >>> rows = {"text": ["win cash", "win now", "see you", "at home"], "y": ["spam", "spam", "ham", "ham"]}
    >>> model = tb.fit(rows, "y", kinds={"text": "text"}, calibrate=False)
    >>> tb.next_to_label(model, {"text": ["win win", "see cash", "cash home", "you"]})
    [1]
    """
    return Labelling(model, data, shortlist=shortlist, sample=sample, seed=seed).next(whole("n", n, 1))
