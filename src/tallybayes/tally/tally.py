"""The tally: everything that was counted, as exact integers. Training is adding tallies.

    T = Yᵀ Φ      (column, slot, class) → amounts

Tallies under one schema form an exact commutative group: merge is `a + b`, forgetting is `a - b`, a fold is
`total - part`, and equal tallies are equal to the last bit whatever the order in which the rows came.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import canon, threads
from ..base.arrays import Floats
from ..base.errors import excerpt, warn
from ..base.records import Record
from ..data import encode
from ..data.blocks import Block, Groups, Numbers, sum_numbers
from ..data.schema import UNICODE, Column, Schema
from ..data.sources import Batch, open_source
from ..exact.counts import Counts, add_counts
from ..exact.moments import MOMENTS, rounded_moments
from ..exact.sheet import Sheet
from ..exact.sums import exact_sums
from . import guard
from .guard import ROWS, class_weights, why_impossible
from .together import TOGETHER, together, together_sheet
from .traces import in_common, renewed, with_least

if TYPE_CHECKING:
    from ..families.settings import SettingsLike
    from ..model.model import Model
    from ..store.reveals import Reveals

_TOGETHER = 16  # tallies added at once: more are faster to add, fewer take less memory


@dataclass(frozen=True, eq=False)
class Tally(Record):
    """Exact counts of labelled rows, column by column and class by class.

    >>> schema = tb.Schema([tb.Column("Sky", "category")], target="Play")
    >>> tb.Tally.of(schema, {"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]})
    Tally: 3 rows · yes 2, no 1 · 1 column
    """

    schema: Schema
    classes: tuple[str, ...]  # canonical text, sorted
    labels: Counts  # sheet "rows": the rows of each class; sheet "receipts": a hash per row, if asked for
    columns: Mapping[str, Counts]
    skipped: int = 0  # rows without a label
    least_rows: int = 0  # of a copy for others: what fewer rows had was left out when it was made, see `at_least`

    @classmethod
    def zero(cls, schema: Schema) -> Tally:
        """The tally of no rows."""
        return cls(schema.cut_by(None), (), Counts({}), {c.name: Counts({}) for c in schema.counted})

    @classmethod
    def of(cls, schema: Schema, data: Any, y: Any = None, *, weights: Any = None) -> Tally:
        """The tally of some rows, read once."""
        source = open_source(encode.as_table(schema, data), y, weights=weights, target=schema.target)
        if source.engine is not None:
            elsewhere: Tally = source.engine.count(schema)
            return elsewhere
        batches = enumerate(source.batches(encode.wanted(schema)))
        parts = threads.each(lambda item: _of_batch(schema, item[1], first=item[0] == 0), batches)
        return sum_tallies(parts) or cls.zero(schema)

    @property
    def rows(self) -> int:
        """How many rows have been counted (rows of weight 0 and rows without a label are not)."""
        values, exponent = self.labels.sheet("rows", ROWS).exact("rows", max(len(self.classes), 1))
        total = sum(int(v) for v in values.ravel())
        return total << exponent if exponent >= 0 else total >> -exponent

    def class_weights(self) -> Floats:
        """The sum of weights of each class, in the order of `classes`; the number of rows if none was weighted."""
        return class_weights(self.labels, len(self.classes))

    def moments(self, column: str, slot: str = "") -> dict[str, tuple[float, float, float]]:
        """(n, mean, variance ÷ n) of a number column by class, each rounded once from exact integers.

        >>> heights = tb.datasets.heights()
        >>> tb.textbook(heights, "who").tally.moments("cm")
        {'a': (3.0, 160.0, 66.66666666666667), 'b': (3.0, 180.0, 66.66666666666667)}
        """
        sheet = self.columns[self.schema[column].name].sheet("moments", MOMENTS)
        return dict(zip(self.classes, rounded_moments(sheet, len(self.classes), slot), strict=True))

    def __add__(self, other: Tally) -> Tally:
        """The tally of the rows of both.

        >>> tally = tb.textbook(tb.datasets.tennis(), "Play").tally
        >>> tally + tally, tally + tally - tally == tally
        (Tally: 28 rows · yes 18, no 10 · 4 columns, True)
        """
        return add_tallies([self, other]) if isinstance(other, Tally) else NotImplemented

    def __radd__(self, other: object) -> Tally:
        """0 + tally, so that sum([...]) works."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: Tally) -> Tally:
        return add_tallies([self, -other]) if isinstance(other, Tally) else NotImplemented

    def __neg__(self) -> Tally:
        columns = {n: -c for n, c in self.columns.items()}
        return replace(self, labels=-self.labels, columns=columns, skipped=-self.skipped)

    def __mul__(self, times: int) -> Tally:
        if not isinstance(times, (int, np.integer)):
            return NotImplemented
        if times < 0:
            return (-self) * -int(times)
        total, power, times = Tally.zero(self.schema), self, int(times)
        while times:  # doubling: any multiple in a few additions, each of which carries
            if times & 1:
                total = total + power
            times >>= 1
            if times:
                power = power + power
        return total

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        a, b = in_common((self, other))
        return (
            _counting(a.schema) == _counting(b.schema)
            and a.classes == b.classes
            and a.labels == b.labels
            and dict(a.columns) == dict(b.columns)
            and a.skipped == b.skipped
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the logical content: equal for equal tallies of one schema, on every machine.

        >>> days = tb.datasets.tennis()
        >>> tally = tb.textbook(days, "Play").tally
        >>> backwards = {name: values[::-1] for name, values in days.items()}
        >>> tb.count(backwards, tally.schema).digest == tally.digest
        True
        """
        out = hashlib.sha256(b"tallybayes tally 1\n")
        out.update(json.dumps([_counting(self.schema), self.classes, self.skipped], sort_keys=True).encode())
        self.labels.update_digest(out)
        for name in sorted(self.columns):
            out.update(json.dumps(name).encode())
            self.columns[name].update_digest(out)
        return out.hexdigest()

    def regroup(self, names: Sequence[str | None]) -> Tally:
        """The tally with class i called names[i], left out where that is None; classes of one name are put together."""
        classes = tuple(sorted({n for n in names if n is not None}))
        number = {n: i for i, n in enumerate(classes)}
        new = np.array([-1 if n is None else number[n] for n in names], dtype=np.int64)
        columns = {name: counts.regroup(new) for name, counts in self.columns.items()}
        return without_empty_classes(replace(self, classes=classes, labels=self.labels.regroup(new), columns=columns))

    def update(self, data: Any, y: Any = None, *, weights: Any = None, new_classes: str | None = None) -> Tally:
        """The tally with more rows counted. A label never seen is a class of its own, with a warning unless
        `new_classes="allow"`; "refuse" refuses it.

        >>> days = tb.datasets.tennis()
        >>> tally = tb.textbook(days, "Play").tally
        >>> tally.update(days), tally.update(days) == 2 * tally
        (Tally: 28 rows · yes 18, no 10 · 4 columns, True)
        """
        more = Tally.of(self.schema, data, y, weights=weights)
        guard.check_new_classes(self.classes, more.classes, self.schema.target, new_classes)
        return self + more

    def forget(self, data: Any, y: Any = None, *, weights: Any = None) -> Tally:
        """The tally as if these rows had never been counted; refused if they cannot all have been.

        Counts alone notice a row that makes a count negative or moments impossible. With `receipts=True` in the
        schema every row is known, and any row that was never counted is refused by its number. What the schema had
        learnt only from these rows is taken out of it, too (see `traces`); `tally - part` leaves the schema as it is.
        Rows that were counted apart can be given as their tally.

        >>> days = tb.datasets.tennis()
        >>> tb.textbook(days, "Play").tally.forget(days.records()[0])
        Tally: 13 rows · yes 9, no 4 · 4 columns
        """
        source = None
        if not isinstance(data, Tally):
            table = encode.as_table(self.schema, data)
            source = open_source(table, y, weights=weights, target=self.schema.target).repeatable()
        gone = data if source is None else Tally.of(self.schema, source)
        rest = self - gone
        problem = rest.impossible()
        if problem is None:
            return renewed(self, rest)
        raise guard.cannot_forget(self, problem, source)

    def at_least(self, rows: int) -> Tally:
        """A copy for others: without classes, values, words, pairs and cells of numbers that fewer rows have.

        Sums of numbers are left out class by class, hashes of rows altogether, and so are the points and groups of the
        schema that nothing stands behind any more. `tally.least_rows` says of what size the rest is. The copy can be
        updated and merged; rows that had what was left out cannot be forgotten from it.

        >>> schema = tb.Schema([tb.Column("Sky", "category")], target="Play")
        >>> tb.Tally.of(schema, {"Sky": ["grey", "sunny", "sunny"], "Play": ["yes"] * 3}).at_least(2)
        Tally: 3 rows · yes 3 · 1 column · a copy without what fewer than 2 rows have
        """
        return with_least(self, rows)

    def impossible(self) -> str | None:
        """Why no rows can have this tally (a negative count, impossible moments), or None."""
        return why_impossible(self.classes, self.labels, self.columns, self.skipped)

    def model(self, settings: SettingsLike = None) -> Model:
        """The model that these counts support: pure, repeatable, the tally stays as it is.

        Settings can be a dict: tally.model({"smoothing": 0.5}).

        >>> days = tb.datasets.tennis()
        >>> tally, windy = tb.textbook(days, "Play").tally, days.truth["asked"]["windy"]
        >>> [tally.model({"smoothing": a}).predict_proba(windy).round(2).tolist() for a in (0.1, 10)]
        [[[0.79, 0.21]], [[0.48, 0.52]]]
        """
        from ..model.estimate import estimate

        return estimate(self, settings)

    def reveals(self, below: int = 5) -> Reveals:
        """What can be read out of a file of this tally; see `Model.reveals`."""
        from ..store.reveals import revealed

        return revealed(self, below)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to a file; a file of that name is replaced at once or not at all.

        >>> tally = tb.textbook(tb.datasets.tennis(), "Play").tally
        >>> tally.save("days.tb.parquet")
        >>> tb.Tally.load("days.tb.parquet") == tally
        True
        """
        from ..store import model_file

        model_file.save(path, model_file.tally_to_bytes(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tally:
        """The tally in a file that `tally.save` or `model.save` wrote, after every check."""
        from ..store import model_file

        return model_file.load_tally(path)

    def __repr__(self) -> str:
        weights = dict(zip(self.classes, self.class_weights().tolist(), strict=True))
        shown = sorted(weights.items(), key=lambda item: -item[1])
        labels = ", ".join(f"{canon.printable(name, 20)} {n:.10g}" for name, n in shown[:6]) + (
            ", …" if len(shown) > 6 else ""
        )
        rows, columns, skipped = (
            canon.many(n, what)
            for n, what in [(self.rows, "row"), (len(self.columns), "column"), (self.skipped, "row")]
        )
        out = f"Tally: {rows} · {labels or 'no classes'} · {columns}"
        out += f" · {skipped} without a label skipped" if self.skipped else ""
        return f"{out} · a copy without what fewer than {self.least_rows} rows have" if self.least_rows else out

    def _repr_html_(self) -> str:
        from .views import tally_html  # counting needs none

        return tally_html(self)


def sum_tallies(tallies: Iterable[Tally]) -> Tally | None:
    """The sum of any number of tallies, of which only a few are in memory at a time; None of none."""
    parts: list[Tally] = []
    for tally in tallies:
        parts.append(tally)
        if len(parts) >= _TOGETHER:
            parts = [add_tallies(parts)]
    return add_tallies(parts) if parts else None


def add_tallies(tallies: Sequence[Tally]) -> Tally:
    """The sum of one or more tallies: classes and slots are united, cells that differ are left out."""
    if len(tallies) == 1:
        return tallies[0]
    tallies = in_common(tallies)
    schema = tallies[0].schema
    for t in tallies[1:]:
        if t.schema is not schema:
            schema = schema.joined(t.schema)
    lost = _lost_cells(schema, tallies)
    classes = tuple(sorted({c for t in tallies for c in t.classes}))
    number = {c: i for i, c in enumerate(classes)}
    new = [np.array([number[c] for c in t.classes], dtype=np.int64) for t in tallies]
    labels = add_counts([t.labels.relabel(n) for t, n in zip(tallies, new, strict=True)])
    columns = {}
    for column in schema.counted:
        parts = [t.columns[column.name].relabel(n) for t, n in zip(tallies, new, strict=True)]
        if column.name in lost:
            parts = [p.without("cells") for p in parts]
        columns[column.name] = add_counts(parts)
    skipped, least = sum(t.skipped for t in tallies), max(t.least_rows for t in tallies)
    return without_empty_classes(Tally(schema, classes, labels, columns, skipped, least))


def _lost_cells(schema: Schema, tallies: Iterable[Tally]) -> set[str]:
    """Columns whose cells differ between the tallies: their moments add, their cells cannot."""
    specs = {c.name: c.cells for c in schema.counted if "cells" in c.about.sheets}
    lost = {n for n, cells in specs.items() if any(t.schema[n].cells != cells for t in tallies)}
    if lost:
        warn(
            f"the cells of {excerpt(sorted(lost))} differ between the tallies: moments are added, cells are left out. "
            "Hint: count with one schema (schema.save, Schema.load) to keep kernel, bins and levels."
        )
    return lost


def without_empty_classes(tally: Tally) -> Tally:
    """The same tally, only with the classes that have anything."""
    used = set(tally.labels.labels()).union(*(c.labels() for c in tally.columns.values()))
    if len(used) == len(tally.classes):
        return tally
    new = np.full(len(tally.classes), -1, dtype=np.int64)
    kept = sorted(used)
    new[kept] = np.arange(len(kept))
    classes, columns = tuple(tally.classes[i] for i in kept), {n: c.relabel(new) for n, c in tally.columns.items()}
    return replace(tally, classes=classes, labels=tally.labels.relabel(new), columns=columns)


def _counting(schema: Schema) -> dict[str, Any]:
    """What of a schema decides the numbers of a tally."""
    return {
        "target": schema.target,
        **({"fold": True} if schema.fold else {}),
        "columns": {
            c.name: {**c.counting(), "missing": sorted({*schema.missing, *c.missing}), "cells": _cells(c)}
            for c in schema.counted
        },
        **({} if (both := together(schema)) is None else {"together": both.counting()}),
    }


def _cells(column: Column) -> list[Any] | None:
    c = column.cells
    return None if c is None else [c.centre, c.exponent, list(c.points)]


def _of_batch(schema: Schema, batch: Batch, first: bool) -> Tally:
    if batch.rows == 0 and not batch.columns:
        return Tally.zero(schema)
    rows = encode.labelled(schema, batch, first=first)
    return count_rows(
        schema, rows.classes, Groups(rows.labels, len(rows.classes), rows.weights), rows.blocks, rows.skipped
    )


def count_rows(
    schema: Schema, classes: Sequence[str], groups: Groups, blocks: Mapping[str, Block], skipped: int = 0
) -> Tally:
    """The tally of encoded rows, `classes` sorted: the only place where rows become amounts."""
    schema = schema.cut_by(UNICODE)
    if len(classes) == 0:
        return Tally(schema, (), Counts({}), {c.name: Counts({}) for c in schema.counted}, skipped)
    sheets = {
        "rows": Sheet.dense(
            [""],
            len(classes),
            {
                "n": exact_sums(groups.labels, len(classes), groups.factors()),
                "rows": exact_sums(groups.labels, len(classes), []),
            },
        )
    }
    if schema.receipts:
        sheets["receipts"] = guard.sheet(blocks, groups)
    if (both := together(schema)) is not None:
        sheets[TOGETHER] = together_sheet(schema, both, blocks, groups)
    numbers = {name: block for name, block in blocks.items() if isinstance(block, Numbers)}
    sums = dict(zip(numbers, sum_numbers(list(numbers.values()), groups), strict=True))
    columns = {name: _counts(sums.get(name) or block.sum_by(groups)) for name, block in blocks.items()}
    return without_empty_classes(Tally(schema, tuple(classes), _counts(sheets), columns, skipped))


def _counts(sheets: Mapping[str, Sheet]) -> Counts:
    return Counts({name: sheet for name, sheet in sheets.items() if sheet})
