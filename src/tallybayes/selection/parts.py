"""Parts of a table: train, held-out and test; folds for cross-validation, as `folds.count_folds` wants them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse

from ..base.arrays import Bools, Floats, Ints
from ..base.errors import DataError, SettingsError, unknown
from ..data import encode
from ..data.blocks import Codes
from ..data.copies import Hashes, copies, row_hashes, told_apart
from ..data.encode import Labelled
from ..data.infer import asked, first_look
from ..data.schema import Column, Schema
from ..data.sources import Batch, Source, open_source
from ..data.values import Where, category, check_flat
from . import splits
from .folds import Assign

PARTS = ("train", "held_out", "test")
_MANY_EQUAL = 0.1  # of the rows: fewer that have equals can stay together, whatever made them equal


def split(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    shares: Sequence[float] = (0.6, 0.2, 0.2),
    stratify: bool = True,
    groups: str | None = None,
    by: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """{"train": rows, "held_out": rows, "test": rows}, each of the type that was given; (rows, y) where y stood beside.

    Stratified by the target and shuffled by the seed; with `groups` the rows of a group stay together. Two shares give
    "train" and "test". `by` names a column that already says which part a row belongs to, under whatever names it has.
    Shares that do not add up to one are refused (SettingsError).

    >>> parts = tb.split({"x": list(range(10)), "y": ["a", "b"] * 5}, "y")
    >>> {name: len(part["x"]) for name, part in parts.items()}
    {'train': 6, 'held_out': 2, 'test': 2}
    """
    splits.shares(2, shares)  # refuses shares that are none, before anything is read
    if by is not None and groups is not None:
        raise SettingsError(
            f"parts by {by!r} and by groups of {groups!r} at once",
            hint="choose one of by and groups.",
        )
    name, y, _ = asked(target, y, None)
    source = open_source(data, y, target=name).repeatable()
    if by is not None:
        names, part = column_codes(source, by, "says which part a row belongs to")
        return {each: _rows_of(data, y, part == i) for i, each in enumerate(names)}
    names = list(PARTS) if len(shares) == 3 else ["train", "test"] if len(shares) == 2 else []
    if not names:
        raise SettingsError(
            f"{len(shares)} shares", hint="give shares of train and test, or of train, held-out and test."
        )
    if groups is not None:
        members = column_codes(source, groups, "holds the groups")[1]
        part = _groups_by_share(members, shares, seed)
    else:
        labels = class_numbers_of(source, name) if stratify else None
        rows = sum(b.rows for b in source.batches()) if labels is None else len(labels)
        part = splits.shares(rows, shares, seed, None if labels is None else labels - labels.min(initial=0))
    return {each: _rows_of(data, y, part == i) for i, each in enumerate(names)}


def _groups_by_share(members: Ints, shares: Sequence[float], seed: int) -> Ints:
    """Whole groups to each part, largest first, always to the part that is furthest behind its share."""
    size = np.bincount(members)
    shuffled = np.random.default_rng(seed).permutation(len(size))
    filled, at = np.zeros(len(shares)), np.empty(len(size), dtype=np.int64)
    for group in shuffled[np.argsort(-size[shuffled], kind="stable")].tolist():
        at[group] = int(np.argmin(filled / np.asarray(shares)))
        filled[at[group]] += size[group]
    return at[members]


def _rows_of(data: Any, y: Any, kept: Bools) -> Any:
    rows = np.flatnonzero(kept)
    return take_rows(data, rows) if y is None else (take_rows(data, rows), take_rows(y, rows))


def take_rows(data: Any, rows: Ints) -> Any:
    """Some rows of a table, in a table of the same type; of a stream, a source of those rows."""
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    if isinstance(data, (pa.Table, pa.RecordBatch, pa.Array, pa.ChunkedArray)):
        return data.take(pa.array(rows))
    if isinstance(data, np.ndarray):
        return data[rows]
    if scipy.sparse.issparse(data):
        return data.tocsr()[rows]
    if isinstance(data, Mapping):
        return {name: take_rows(column, rows) for name, column in data.items()}
    if isinstance(data, (list, tuple)):
        return [data[i] for i in rows.tolist()]
    if type(data).__module__.partition(".")[0] == "polars":
        return data[rows]
    return some_rows(open_source(data), np.isin(np.arange(int(rows.max(initial=-1)) + 1), rows))


def some_rows(source: Source, kept: Bools) -> Source:
    """The same source with only some of its rows; those beyond the end of `kept` are left out."""

    def read() -> Iterator[Batch]:
        start = 0
        for batch in source.batches():
            here = np.zeros(batch.rows, dtype=bool)
            known = kept[start : start + batch.rows]
            here[: len(known)] = known
            start += batch.rows
            yield batch.take(np.flatnonzero(here))

    return Source(read, source.once, source.arrow)


def without_columns(source: Source, names: Sequence[str]) -> Source:
    """The same rows without some columns."""
    if not names:
        return source

    def read() -> Iterator[Batch]:
        for batch in source.batches():
            yield replace(batch, columns={n: c for n, c in batch.columns.items() if n not in names})

    return Source(read, source.once, source.arrow)


def class_numbers_of(source: Source, target: str) -> Ints:
    """A class number for each row, −1 where there is none."""
    schema = Schema([], target=target)
    known: dict[str, int] = {}
    out = []
    for batch in source.batches():
        found = encode.labels(schema, batch)
        numbers = [known.setdefault(s, len(known)) for s in found.slots]
        out.append(np.array([*numbers, -1], dtype=np.int64)[found.codes])
    return np.concatenate(out)


def column_codes(source: Source, name: str, what: str) -> tuple[list[str], Ints]:
    """The different values of a column, in order, and which of them each row has; a missing one is refused."""
    texts: list[Codes] = []
    start = 0
    for batch in source.batches():
        if name not in batch:
            raise unknown(DataError, f"there is no column {name!r}, which {what}", name, batch.names())
        check_flat(batch[name], Where(name, batch.start, batch.place))
        found = category(batch[name], ())
        gone = np.flatnonzero(found.codes < 0)
        if len(gone):
            raise DataError(
                f"column {name!r} {what}, and row {start + int(gone[0])} (the first is row 0) has no value there",
                hint="fill the column in, or leave out the rows without a value.",
            )
        texts.append(found)
        start += batch.rows
    names = sorted({s for t in texts for s in np.array(t.slots, dtype=object)[np.unique(t.codes)].tolist()})
    number = {s: i for i, s in enumerate(names)}
    each = [np.array([number.get(s, -1) for s in t.slots] or [0], dtype=np.int64)[t.codes] for t in texts]
    return names, np.concatenate(each) if each else np.zeros(0, dtype=np.int64)


def by_target(name: str) -> SettingsError:
    """The refusal of folds by the column to predict."""
    return SettingsError(
        f"folds by {name!r}, which is the column to predict",
        hint="name another column; every fold has its share of every class anyway.",
    )


def apart(schema: Schema, names: Sequence[str]) -> Schema:
    """The schema in which some columns of the data, which decide about folds, are no evidence."""
    for name in names:
        if name == schema.target:
            raise by_target(name)
        if not any(c.name == name and c.kind == "ignore" for c in schema.columns):
            rest = [c for c in schema.columns if name not in c.inputs]
            schema = schema._with(columns=[*rest, Column(name, "ignore", reason="decides about folds")])
    return schema


@dataclass(frozen=True)
class Plan:
    """How rows are shared out among folds."""

    folds: int = 10
    stratify: bool = False
    groups: str | None = None
    by: str | None = None
    order: str | bool | None = None  # a column of times, or True for the order of the rows
    seed: int = 0

    def __post_init__(self) -> None:
        splits.check_folds(self.folds)
        whole = isinstance(self.seed, (int, np.integer)) and not isinstance(self.seed, bool)
        if not whole or self.seed < 0:
            raise SettingsError(f"seed={self.seed!r}", hint="take a whole number of at least 0.")
        chosen = [n for n in ("stratify", "groups", "by", "order") if getattr(self, n)]
        if len(chosen) > 1:
            raise SettingsError(
                f"folds by {' and by '.join(chosen)} at once", hint="choose one of stratify, groups, by and order."
            )

    @property
    def columns(self) -> list[str]:
        """The columns that decide about folds, and are no evidence."""
        return [c for c in (self.groups, self.by) if c is not None]

    def suited(self, source: Source, content: Schema) -> Plan:
        """The plan for these rows: if nothing decides about folds and many repeat another by chance, each has its own.

        Of a few columns of a few values there are few different rows, and a fold that held all rows of a sort would be
        scored by models that have never met it. Otherwise, and where they are copies, equal rows stay together.
        """
        if self.stratify or self.columns or self.order or source.engine is not None:
            return self
        given = [c for c in content.columns if c.of is None]  # two columns again would make equal rows look rarer
        rows = encode.labelled(content._with(columns=given), first_look(source))
        hashes = row_hashes(rows.blocks, len(rows.rows))
        _, unit, times = np.unique(hashes, return_inverse=True, return_counts=True)
        equal = times[unit] > 1
        if equal.sum() <= _MANY_EQUAL * len(hashes):
            return self
        return replace(self, stratify=not 2 * copies(rows, hashes)[equal].sum() > equal.sum())

    def assign(self, source: Source, target: str, content: Schema | None = None) -> tuple[Assign, list[str]]:
        """The fold of each row, and the folds' names; the hash of a row needs no look at the others."""
        if not (self.by or self.stratify or self.groups or self.order):
            return _by_row(self.folds, self.seed), [str(k) for k in range(self.folds)]
        fold, names = self.numbers(source, target, content)
        return by_position(fold), names

    def numbers(self, source: Source, target: str, content: Schema | None = None) -> tuple[Ints, list[str]]:
        """The same as a number for each row, −1 for one that takes no part, where rows are looked at together.

        With a schema classes are shared out by what rows hold in its columns, in whatever order they come.
        """
        if self.by is not None:
            names, fold = column_codes(source, self.by, "says which fold a row belongs to")
            return fold, names
        if self.stratify and content is not None:
            labels, keys = by_content(source, content, self.seed)
            return splits.stratified(labels, self.folds, self.seed, keys), [str(k) for k in range(self.folds)]
        labels = class_numbers_of(source, target)
        if self.stratify:
            fold = splits.stratified(labels, self.folds, self.seed)
        elif self.groups is not None:
            members = column_codes(source, self.groups, "holds the groups")[1]
            fold = splits.grouped(np.where(labels >= 0, members, -1), self.folds, self.seed)
        else:
            fold = splits.time_ordered(times(source, self.order, len(labels)), self.folds)
        return fold, [str(k) for k in range(int(fold.max()) + 1)]


def by_content(source: Source, schema: Schema, seed: int) -> tuple[Ints, list[Hashes | Floats]]:
    """The class of each row, −1 where there is none, and keys that put rows in one order wherever they stand.

    These are weights, and before them hashes of what the rows hold.
    """
    pieces: list[tuple[Labelled, Floats, Hashes]] = []
    sizes: list[int] = []
    for batch in source.batches():
        read = encode.labelled(schema, batch)
        weight = np.ones(len(read.rows)) if read.weights is None else read.weights
        hashes = row_hashes(read.blocks, len(read.rows), seed)
        pieces.append((replace(read, blocks={}, rows=read.rows + sum(sizes)), weight, hashes))
        sizes.append(batch.rows)
    number = {c: i for i, c in enumerate(sorted({c for read, _, _ in pieces for c in read.classes}))}
    labels, weights = np.full(sum(sizes), -1, dtype=np.int64), np.zeros(sum(sizes))
    held = np.zeros(sum(sizes), dtype=np.uint64)
    for read, weight, hashes in pieces:
        labels[read.rows] = np.array([*(number[c] for c in read.classes), -1], dtype=np.int64)[read.labels]
        weights[read.rows], held[read.rows] = weight, hashes
    return labels, [weights, told_apart(held, labels, weights)]


def times(source: Source, order: str | bool | None, rows: int) -> Ints:
    """The place of each row in time, the same for one moment: by a column, or as the rows stand where it is True."""
    if order is True:
        return np.arange(rows)
    assert isinstance(order, str)
    out: list[Any] = []
    for batch in source.batches():
        if order not in batch:
            found = f"there is no column {order!r} to order the rows by"
            raise unknown(DataError, found, order, batch.names())
        column = batch[order]
        out += column.to_pylist() if isinstance(column, pa.Array) else list(column)
    gone = next((i for i, v in enumerate(out) if v is None or v != v), None)
    if gone is not None:
        raise DataError(
            f"column {order!r} orders the rows, and row {gone} (the first is row 0) has no value there",
            hint="fill the column in, or leave out the rows without a value.",
        )
    try:
        ordered = sorted(set(out))
    except TypeError:
        raise DataError(
            f"column {order!r} has values that cannot be ordered", hint="give numbers, dates, or texts alone."
        ) from None
    place = {v: i for i, v in enumerate(ordered)}
    return np.array([place[v] for v in out], dtype=np.int64)


def by_position(fold: Ints) -> Assign:
    """The fold of each row by its number in the source."""
    return lambda read, start: fold[read.rows + start]


def _by_row(folds: int, seed: int) -> Assign:
    def assign(read: Labelled, start: int) -> Ints:
        return splits.by_hash(read.blocks, len(read.rows), folds, seed)

    return assign


def one_row(source: Source, row: int) -> Any:
    """One row of a source, as a batch."""
    start = 0
    for batch in source.batches():
        if row < start + batch.rows:
            return batch.slice(row - start, row - start + 1)
        start += batch.rows
    raise DataError(f"there is no row {row}", hint="the data have changed since they were evaluated.")
