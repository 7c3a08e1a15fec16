"""k nearest neighbours: keep every row, and let those nearest to the one that is asked about vote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ...base import canon
from ...base.arrays import Floats, Ints
from ...base.errors import SettingsError
from ...base.show import Page, Shown
from ...data import encode
from ...data.batch import one_row
from ...data.guess import Reading
from ...data.infer import asked, schema_of
from ...data.schema import Schema
from ...data.sources import open_source
from ...model.prior import natural_order
from .rivals import Features, Rows, class_shares

RIVAL = 15  # neighbours of the rival that naive Bayes is compared with
_SAME = 6  # digits after the point in which squared distances are told apart; of equal ones the first row is nearer
_AT_ONCE = 1 << 24  # distances held at a time


@dataclass(frozen=True)
class Nearest:
    """The lecture's k nearest neighbours: `tb.Nearest(k=3).fit(rows, "species").predict(others)`.

    Numbers are in deviations of the training rows (`scaled=False`: in their own units), a missing one is the mean; a
    category that differs is 1 apart, texts by the angle between them. All columns add to the squared distance. The
    answer is the share of each class among the k; `imagined` rows with the shares of all rows vote besides, so that no
    class is impossible. It is also a rival for `tb.compare(…, rivals={"three nearest": tb.Nearest(k=3)})`.

    >>> rows = {"x": [1.0, 2.0, 8.0, 9.0], "y": ["low", "low", "high", "high"]}
    >>> tb.Nearest(k=1).fit(rows, "y").predict({"x": [3.0, 7.0]}).tolist()
    ['low', 'high']
    """

    k: int = 5
    scaled: bool = True
    imagined: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or self.k < 1:
            raise SettingsError(f"k={self.k!r}", hint="take a whole number of neighbours, at least 1: tb.Nearest(k=5).")
        if not (self.imagined >= 0 and np.isfinite(self.imagined)):
            raise SettingsError(f"imagined={self.imagined!r}", hint="take a number of rows of at least 0.")

    def fit(
        self,
        data: Any,
        target: Any = None,
        y: Any = None,
        *,
        schema: Schema | None = None,
        kinds: Mapping[str, str] | None = None,
        missing: str | Iterable[str] | None = None,
        strict: bool = False,
        date_format: str | Mapping[str, str] | None = None,
        fold: bool = False,
    ) -> Neighbours:
        """The rows, kept as points; `target` names the column to predict, or give the labels, `fit(X, y)`."""
        reading = Reading.of(missing, strict, date_format, fold, kinds)
        name, y, schema = asked(target, y, schema, reading)
        source = open_source(data, y, target=name).repeatable()
        schema = schema_of(source, name, None, reading) if schema is None else schema
        texts = {c for batch in source.batches() for c in encode.labelled(schema, batch).classes}
        order = sorted(texts, key=lambda c: natural_order(canon.from_text(c, schema.label_type)))
        labels = tuple(canon.from_text(c, schema.label_type) for c in order)
        return Neighbours(schema, labels, self(Rows.labelled(source, schema, order), schema, len(order)))

    def __call__(self, rows: Rows, schema: Schema, n_classes: int) -> NearestRows:
        """Keep every row."""
        features = Features.of(rows, schema, self.scaled)
        points, share = _points(features, rows), class_shares(rows, n_classes)
        k = min(int(self.k), rows.rows)
        return NearestRows(features, points, rows.labels, rows.weights, self.imagined * share, k)


@dataclass(frozen=True)
class NearestRows:
    """Every row as a point; what is imagined is added to the votes."""

    features: Features
    points: scipy.sparse.csr_array
    labels: Ints
    weights: Floats
    imagined: Floats
    k: int

    def predict_proba(self, rows: Rows) -> Floats:
        """The weighted vote of the nearest rows."""
        out, at = np.empty((rows.rows, len(self.imagined))), 0
        for near, _ in self.near(rows):
            key = np.arange(len(near))[:, None] * len(self.imagined) + self.labels[near]
            cast = np.bincount(key.ravel(), self.weights[near].ravel(), minlength=len(near) * len(self.imagined))
            votes = cast.reshape(len(near), len(self.imagined)) + self.imagined
            out[at : at + len(near)] = votes / votes.sum(axis=1, keepdims=True)
            at += len(near)
        return out

    def near(self, rows: Rows) -> Iterator[tuple[Ints, Floats]]:
        """The numbers of the k nearest rows and their squared distances, in no order, some rows at a time."""
        asked, size = _points(self.features, rows), _square(self.points)
        step = max(1, _AT_ONCE // max(self.points.shape[0], 1))
        first = np.linspace(0, 0.4 * 10**-_SAME, len(size))
        for start in range(0, asked.shape[0], step):
            some = asked[start : start + step]
            distance = size[None, :] - 2 * np.asarray((some @ self.points.T).todense())  # + |some|², the same for all
            near = np.argpartition(np.round(distance, _SAME) + first, self.k - 1, axis=1)[:, : self.k]
            squares = np.take_along_axis(distance, near, axis=1) + _square(some)[:, None]
            yield near, np.maximum(squares, 0.0)


class Neighbour(NamedTuple):
    """A row that is near: its number among the training rows with a label, how far it is, and its class."""

    row: int
    distance: float
    label: Any


@dataclass(frozen=True, eq=False, repr=False)
class Neighbours(Shown):
    """Fitted nearest neighbours: every training row, to be asked.

    >>> rows = {"x": [1.0, 2.0, 8.0, 9.0], "y": ["low", "low", "high", "high"]}
    >>> found = tb.Nearest(k=3).fit(rows, "y")
    >>> found.predict_proba({"x": [7.0]}).round(2).tolist(), [near.label for near in found.near({"x": 7.0})]
    ([[0.67, 0.33]], ['high', 'high', 'low'])
    """

    schema: Schema
    classes: tuple[Any, ...]
    rows: NearestRows

    def predict_proba(self, rows: Any) -> Floats:
        """The share of each class among the nearest, rows × classes."""
        return self.rows.predict_proba(self._read(rows))

    def predict(self, rows: Any) -> Any:
        """The class that most of the nearest have; of equals the first."""
        at = self.predict_proba(rows).argmax(axis=1)
        out = np.empty(len(at), dtype=object)
        out[:] = [self.classes[i] for i in at.tolist()]
        return np.array(out.tolist()) if len({type(c) for c in self.classes}) == 1 else out

    def near(self, row: Any) -> list[Neighbour]:
        """The nearest rows to one row, from the nearest."""
        found, squares = next(self.rows.near(self._read(row)))
        order = np.lexsort((found[0], squares[0]))
        labels = [self.classes[i] for i in self.rows.labels[found[0]][order].tolist()]
        each = zip(found[0][order].tolist(), np.sqrt(squares[0][order]).tolist(), labels, strict=True)
        return [Neighbour(*one) for one in each]

    def _read(self, rows: Any) -> Rows:
        single = isinstance(rows, Mapping) and encode.is_row(self.schema, rows)
        return Rows.plain(open_source(one_row(rows) if single else rows), self.schema)

    def _page(self) -> Page:
        n = len(self.rows.labels)
        names = ", ".join(canon.printable(c, 20) for c in self.classes[:8]) + (", …" if len(self.classes) > 8 else "")
        return Page(f"Neighbours: the {self.rows.k} nearest of {canon.many(n, 'row')} vote for {names}")


def _square(points: scipy.sparse.csr_array) -> Floats:
    return np.asarray(points.multiply(points).sum(axis=1), dtype=np.float64).ravel()


def _points(features: Features, rows: Rows) -> scipy.sparse.csr_array:
    """Rows as points: squared distances between them are the sum over columns."""
    words = features.word_matrix(rows)
    length = np.sqrt(_square(words))
    words = scipy.sparse.diags_array(1.0 / np.where(length > 0, length, 1.0)) @ words
    numbers = np.nan_to_num(features.number_matrix(rows), nan=0.0)
    parts = [scipy.sparse.csr_array(numbers), features.one_hot(rows) * np.sqrt(0.5), words * np.sqrt(0.5)]
    return scipy.sparse.csr_array(scipy.sparse.hstack(parts, format="csr"))
