"""Rows on their way to the journal and back: what is counted is what the journal gives back, to the last digit."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from ..base import canon
from ..base.errors import DataError, heard, unknown
from ..base.wording import encodable
from ..data import encode
from ..data.batch import BATCH_ROWS, Batch, Source, one_row
from ..data.schema import Schema
from ..tally.one_row import label_of
from ..tally.tally import Tally, sum_tallies
from .journal import COUNTED, GONE, POOL, Journal, KeptRow

MOST_DEPTH = 8  # of lists in lists: deeper than any kind of column reads


class RowReader:
    """How the rows of a schema are kept, compared and counted."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        weights = () if schema.weights is None else (schema.weights,)
        self.inputs = tuple(sorted({name for column in schema.counted for name in column.inputs}.union(weights)))
        self._gaps = frozenset(n for c in schema.counted if c.kind == "gap" for n in c.inputs)
        self._written = {n for c in schema.counted if c.like == "category" for n in c.inputs} | {schema.target}

    def given(
        self, rows: Sequence[Mapping[str, Any]], labels: Sequence[Any] | None = None, *, empty: bool = False
    ) -> list[tuple[KeptRow, str]]:
        """Rows as they will be kept, with the classes that their labels mean; none only where that may be."""
        if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Sequence):
            raise DataError(f"rows of type {type(rows).__name__}", hint="give a list of dicts, one per row.")
        if not rows and not empty:
            raise DataError("no rows", hint="give at least one.")
        if labels is None:
            return [(self.row(row, i), self.label(row, i)) for i, row in enumerate(rows)]
        if len(labels) != len(rows):
            found = f"{canon.many(len(rows), 'row')} and {canon.many(len(labels), 'label')}"
            raise DataError(found, hint="give one label for each row.")
        return [(self.row(row, i), self.label_text(labels[i], i)) for i, row in enumerate(rows)]

    def row(self, given: Any, number: int = 0) -> KeptRow:
        """A row as the journal keeps it, without its label; refused where it cannot be counted."""
        if not isinstance(given, Mapping):
            raise DataError(
                f"row {number} (the first is row 0) is of type {type(given).__name__}, not a dict",
                hint="give a list of dicts, one per row: [{'colour': 'red', 'size': 3}, …].",
            )
        values = {}
        for name, value in given.items():
            if str(name) != self.schema.target:
                values[encodable(str(name))] = _plain(value, str(name), number)
        if self.inputs and not any(name in values for name in self.inputs):
            encode.check_columns(self.schema, one_row(values))  # refuses it, with the nearest name
        return self.kept(values)

    def kept(self, values: dict[str, Any], standing: str = GONE) -> KeptRow:
        """Plain values as a row that is not in the journal yet."""
        return KeptRow(0, values, standing, self.key(values))

    def key(self, values: Mapping[str, Any]) -> bytes:
        """A hash of what is counted of a row, the same for values that are written alike."""
        seen = [_written(values.get(name)) for name in self.inputs]
        return hashlib.blake2b(json.dumps(seen).encode(), digest_size=16).digest()

    def label(self, row: Mapping[str, Any], number: int = 0) -> str:
        """The label in the target column of a row."""
        if self.schema.target not in row:
            found = f"row {number} (the first is row 0) has no {self.schema.target!r}, which holds the label"
            raise unknown(DataError, found, self.schema.target, row, "give it in each row, or labels apart.")
        return self.label_text(row[self.schema.target], number)

    def label_text(self, label: Any, number: int = 0) -> str:
        """The class that a label means, by its canonical text; refused where it means none."""
        found = label_of(self.schema, {self.schema.target: _plain(label, self.schema.target, number)})
        if found is None:
            raise DataError(
                f"row {number} (the first is row 0) has the label {label!r:.60}, which means that it is missing",
                hint="give it a label, or leave the row out.",
            )
        return found

    def tally(self, rows: Iterable[tuple[KeptRow, str]]) -> Tally:
        """The counts of rows under labels; a row that the journal has spoilt is refused.

        A column whose gaps are counted, and that a row leaves out, says nothing of it, whatever rows stand beside it.
        """
        return sum_tallies(self._counted(rows)) or Tally.zero(self.schema)

    def _counted(self, rows: Iterable[tuple[KeptRow, str]]) -> Iterator[Tally]:
        each = (self._whole(row) | {self.schema.target: label} for row, label in rows)
        for some in self._alike_in_gaps(each):
            with contextlib.nullcontext() if self._gaps <= some[0].keys() else heard():
                out = Tally.of(self.schema, some)
            yield out
            if out.rows != len(some):
                raise DataError(
                    f"{canon.many(len(some) - out.rows, 'row')} of weight 0, which count for nothing",
                    hint=f"give each row a weight above 0 in the column {self.schema.weights!r}, or leave it out.",
                )

    def _alike_in_gaps(self, rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
        """Rows in batches that leave out the same columns."""
        while some := list(islice(rows, BATCH_ROWS)):
            apart: dict[frozenset[str], list[dict[str, Any]]] = {}
            for row in some:
                apart.setdefault(self._gaps.difference(row), []).append(row)
            yield from apart.values()

    def _whole(self, row: KeptRow) -> dict[str, Any]:
        if row.id and self.key(row.values) != row.key:
            raise DataError(
                f"row {row.id} of the journal is not what was written: the file is damaged",
                hint="restore journal and model from one backup.",
            )
        return self.asked(row.values)

    def asked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What is read of a row; what it does not have is missing, unless gaps are counted there: then nobody said."""
        return {name: values.get(name) for name in self.inputs if name in values or name not in self._gaps}

    def matching(self, journal: Journal, column: str, value: Any) -> Iterator[KeptRow]:
        """The rows of a journal with this value in a column, as it is written: 3, 3.0 and "3" are one."""
        if column == self.schema.target:
            raise DataError(
                f"{column!r} is the label, which is no value of a row",
                hint="name a column that says whose rows they are.",
            )
        wanted = self._wanted(column, value)
        for row in journal.all_rows(_hint_of(wanted)):
            if column in row.values and _written(row.values[column]) == wanted:
                yield row

    def sameness(self, column: str, value: Any) -> Callable[[Any, bool], bool]:
        """Whether a value of a table is this one, as `matching` has it; one of a file without types is told so."""
        wanted = self._wanted(column, value)

        def same(other: Any, text: bool) -> bool:
            if text and column in self._written and isinstance(other, str):
                other = canon.written(other)
            return other is not None and _written(_plain(other, column, 0)) == wanted

        return same

    def _wanted(self, column: str, value: Any) -> Any:
        wanted = _written(_plain(value, column, 0))
        if wanted is None:
            raise DataError("a missing value belongs to nobody", hint="give the value to look for.")
        return wanted

    def rows_of(self, source: Source, *, labelled: bool = True) -> Iterator[KeptRow]:
        """The rows of a table: with a label counted, without one in the pool; those of weight 0 are left out.

        With `labelled=False` all of them are in the pool, and labels are not looked at.
        """
        for batch in source.batches():
            if not batch.rows:
                continue
            if self.inputs and not any(name in batch for name in self.inputs):
                encode.check_columns(self.schema, batch)  # refuses it, with the nearest name
            labels = encode.labels(self.schema, batch) if labelled else None
            weights = encode.weights(self.schema, batch) if labelled else None
            columns = {n: self._values(batch, n) for n in batch.names() if n != self.schema.target}
            for i in range(batch.rows):
                if weights is not None and weights[i] == 0:
                    continue
                label = None if labels is None else labels.text(i)
                values = {n: _plain(column[i], n, batch.start + i) for n, column in columns.items()}
                yield self.kept(values, POOL if label is None else COUNTED + label)

    def _values(self, batch: Batch, name: str) -> Sequence[Any]:
        column = batch[name]
        if isinstance(column, pa.Array):
            out: list[Any] = column.to_pylist()
        elif isinstance(column, (list, np.ndarray)):
            out = list(column)
        else:
            raise DataError(
                f"the column {name!r} is a sparse matrix, which a journal does not keep",
                hint="give rows as dicts, with words and their counts: {'words': {'cheap': 2}}.",
            )
        if batch.written and name in self._written:  # as a file without types is read: "3.0" is 3
            out = [canon.written(v) if isinstance(v, str) else v for v in out]
        return out


def _plain(value: Any, column: str, number: int, depth: int = 0) -> Any:
    """A value as JSON gives it back."""
    if value is None or isinstance(value, (bool, int)) or type(value) is float:
        return value
    if isinstance(value, str):
        return encodable(value)
    if depth > MOST_DEPTH:
        raise DataError(
            f"row {number} (the first is row 0), column {column!r}: lists within lists, {depth} deep",
            hint="give flat values, lists of numbers or words, or words with their counts.",
        )
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        return _plain(value.item(), column, number, depth + 1)
    if isinstance(value, Mapping):
        return {encodable(str(k)): _plain(v, column, number, depth + 1) for k, v in value.items()}
    if not canon.is_one(value):
        return [_plain(v, column, number, depth + 1) for v in value]
    return canon.text(value)


def _written(value: Any) -> Any:
    """A value as it is written, so that equal ones compare equal whatever their type."""
    if isinstance(value, dict):
        return {k: _written(v) for k, v in sorted(value.items())}
    return [_written(v) for v in value] if isinstance(value, list) else canon.text(value)


def _hint_of(wanted: Any) -> str:
    """A text that stands in the JSON of every row with a value that is written so; "" where nothing is sure."""
    if not isinstance(wanted, str) or not wanted.isprintable() or any(sign in wanted for sign in '"\\'):
        return ""
    return "" if any(ch.isdigit() for ch in wanted) or wanted in ("true", "false") else wanted
