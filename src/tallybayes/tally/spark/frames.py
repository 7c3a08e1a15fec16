"""Spark: every partition is counted where it lies, and the partial tallies are added in a tree.

    rows ──mapInArrow──▶ a tally per partition ──mapInArrow──▶ … ──▶ a few tallies ──▶ the driver adds them

Only DataFrame operations are used, so a Spark Connect session works like a classic one, and Spark does what it is
good at: splitting, moving, spilling, and doing a lost partition again. Exact sums do not care which executor counted
what, how often a partition had to be counted, or in which order the parts arrive.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...base import errors
from ...base.errors import DataError, MissingExtra
from ...data import encode
from ...data.batch import BATCH_ROWS, Batch, Source, Wanted, refuse_repeated
from ...data.outputs import PREDICTION, output_names
from ...data.schema import Schema
from ..table import from_ipc
from ..tally import Tally, sum_tallies
from . import executor, grouped

if TYPE_CHECKING:
    from ...model.model import Model

_TREE = (256, 16)  # so many tallies at most after each round of adding; the driver adds the last ones
_UNREAD = ("binary", "struct", "udt", "variant", "interval", "void")  # Spark's types that are no column of ours


def opened(data: Any) -> Source | None:
    """The source of a Spark frame, of a classic or a Connect session; None for other things of Spark's."""
    if not (hasattr(data, "mapInArrow") and hasattr(data, "columns")):
        return None
    rows = SparkRows(data)
    return Source(rows.batches, narrow=rows.batches, name="the frame", engine=rows, home="spark")


@dataclass(frozen=True)
class SparkRows:
    """The rows of a Spark frame."""

    frame: Any

    def count(self, schema: Schema) -> Tally:
        """The tally of all rows: bit for bit that of the same rows in one place."""
        names = self._wanted(schema)
        types = {n: self.frame.schema.fields[self._names().index(n)].dataType.simpleString() for n in names}
        if grouped.groupable(schema, types):
            return self._grouped(schema, names)
        written = json.dumps(schema.to_dict())
        parts = self._read(names).mapInArrow(executor.CountPartition(written, names), executor.PARTS)
        for most in _TREE:
            near = parts.repartition(parts["part"] % most)
            parts = near.mapInArrow(executor.AddPartition(most), executor.PARTS)
        zero = Tally.zero(schema)  # whose schema is the one that was given, not one that has travelled
        return zero + (sum_tallies(map(_received, parts.collect())) or zero)

    def count_periods(self, schema: Schema, by: str, time: str) -> dict[int, Tally]:
        """The tally of each period that a column of times or whole numbers says, by its number."""
        names = tuple(dict.fromkeys((*self._wanted(schema), time)))
        encode.periods(schema, self._empty(), time, by)  # refuses a column that is not there
        written = json.dumps(schema.to_dict())
        parts = self._read(names).mapInArrow(executor.CountPeriods(written, names, by, time), executor.PARTS)
        parts = parts.repartition(parts["part"]).mapInArrow(executor.AddPeriods(), executor.PARTS)
        zero = Tally.zero(schema)
        return {row["part"]: zero + _received(row) for row in parts.collect()}

    def _wanted(self, schema: Schema) -> tuple[str, ...]:
        """The columns that a schema counts and the frame has, after every check of their names."""
        empty = self._empty()
        encode.labels(schema, empty)
        encode.weights(schema, empty)
        if schema.counted:
            encode.check_columns(schema, empty)
        wanted = [schema.target, schema.weights, *(n for c in schema.counted for n in c.inputs)]
        return tuple(n for n in dict.fromkeys(wanted) if n is not None and n in empty)

    def _grouped(self, schema: Schema, names: Sequence[str]) -> Tally:
        """The tally of categories alone, grouped by Spark."""
        numbered, at = self._numbered(), self._names().index
        places = {n: at(n) for n in names if n != schema.target}
        pairs = [f"{grouped.ROWS}, ''", *(f"{i}, CAST(c{i} AS STRING)" for i in places.values())]
        label = f"CAST(c{at(schema.target)} AS STRING) AS y"
        each = numbered.selectExpr(label, f"stack({len(pairs)}, {', '.join(pairs)}) AS (col, value)")
        counted = each.groupBy("y", "col", "value").count().toDF("y", "col", "value", "n")
        pieces = [piece for row in SparkRows(counted)._streams().collect() for piece in _arrow(row)]
        if not pieces:
            return Tally.zero(schema)
        return grouped.tally_of_groups(schema, places, pa.Table.from_batches(pieces).rename_columns(counted.columns))

    def look(self, most: int) -> Batch:
        """All rows, or about `most` of them drawn with a fixed seed."""
        rows = int(self.frame.count())
        drawn = self.frame if rows <= most else self.frame.sample(fraction=most / rows, seed=0)
        pieces = [piece for row in SparkRows(drawn)._streams().collect() for piece in _arrow(row)]
        return replace(executor.read(pieces, self._names()) if pieces else self._empty(), of=rows)

    def batches(self, wanted: Wanted | None = None) -> Iterator[Batch]:
        """All rows, brought here one partition after the other; only what is wanted, if the frame has all of it."""
        start, names = 0, self._names()
        if wanted is not None and set(wanted) <= set(names):
            names = [name for name in names if name in wanted]
        for row in self._streams(names).toLocalIterator():
            batch = executor.read(_arrow(row), names, start)
            start += batch.rows
            yield from batch.cut(BATCH_ROWS)
        if start == 0:
            yield self._empty()

    def predict(self, model: Model, prior: Any) -> Any:
        """The frame with `prediction` and a `P(class)` for every class added; nothing runs until rows are asked for."""
        names = self._names()
        if model.beliefs:
            encode.check_columns(model.schema, self._empty())
        added = (PREDICTION, *output_names(model.classes))
        taken = {n.casefold() for n in names}
        clash = [n for n in added if n.casefold() in taken]
        if clash:
            raise DataError(
                f"the frame has a column {clash[0]!r} already, which is the name of one that the prediction adds",
                hint=f"rename it, or leave it out: frame.drop({clash[0]!r}).",
            )
        types = _types()
        numbered = self._numbered()
        columns = [numbered[c] for c in numbered.columns]
        places: dict[str, int] = {}
        for name in dict.fromkeys(n for c in model.schema.counted for n in c.inputs):
            if name in names:
                places[name] = names.index(name)
                self._check_type(places[name])
                if _is_instant(self.frame.schema.fields[places[name]]):
                    columns.append(columns[places[name]].cast("timestamp_ntz").alias(f"c{len(columns)}"))
                    places[name] = len(columns) - 1
        label = _label_type(model.classes)
        fields = [types.StructField(f"c{i}", f.dataType) for i, f in enumerate(self.frame.schema.fields)]
        fields.append(types.StructField("c", getattr(types, label)()))
        fields += [types.StructField(f"p{i}", types.DoubleType()) for i in range(len(model.classes))]
        shown = tuple(f.name for f in fields)
        light = replace(model, tally=None)  # the beliefs answer; what they came from stays here
        score = executor.ScorePartition(light, prior, places, len(names), shown, label)
        return numbered.select(*columns).mapInArrow(score, types.StructType(fields)).toDF(*names, *added)

    def _names(self) -> list[str]:
        names = list(self.frame.columns)
        refuse_repeated(names)
        return names

    def _empty(self) -> Batch:
        """No rows, and every column: to have names checked as those of any source are."""
        return Batch(dict.fromkeys(self._names(), pa.nulls(0)), 0)

    def _numbered(self) -> Any:
        """The frame with columns c0, c1, …: Spark reads a dot in a name as a path, and takes a and A for one name."""
        return self.frame.toDF(*(f"c{i}" for i in range(len(self.frame.columns))))

    def _read(self, names: Sequence[str]) -> Any:
        """Only these columns, in types that are read as from any other source."""
        numbered, places = self._numbered(), [self._names().index(n) for n in names]
        for at in places:
            self._check_type(at)
        return numbered.select(*(self._plain(numbered, at) for at in places))

    def _plain(self, numbered: Any, at: int) -> Any:
        """A column; an instant as the time that clocks show in the session's zone, as toPandas gives it."""
        column = numbered[f"c{at}"]
        return column.cast("timestamp_ntz").alias(f"c{at}") if _is_instant(self.frame.schema.fields[at]) else column

    def _check_type(self, at: int) -> None:
        field = self.frame.schema.fields[at]
        kind = field.dataType.typeName()
        if any(word in kind for word in _UNREAD):
            hints = {
                "binary": "cast it to string, or make a number of it.",
                "struct": "take a field of it: frame.withColumn('name', frame['column.field']).",
                "udt": "make an array of it: pyspark.ml.functions.vector_to_array(frame['column']).",
            }
            raise DataError(
                f"column {field.name!r} holds values of Spark's type {kind}, which cannot be counted or scored",
                hint=next((h for word, h in hints.items() if word in kind), "cast it to string."),
            )

    def _streams(self, names: Sequence[str] | None = None) -> Any:
        """A frame that holds all rows, or these columns of them, as Arrow streams."""
        numbered, at = self._numbered(), self._names().index
        places = range(len(self.frame.columns)) if names is None else map(at, names)
        plain = numbered.select(*(self._plain(numbered, place) for place in places))
        return plain.mapInArrow(executor.StreamPartition(), executor.STREAMS)


def _arrow(row: Any) -> list[pa.RecordBatch]:
    with pa.ipc.open_stream(pa.py_buffer(bytes(row["stream"]))) as reader:
        return list(reader)


def _is_instant(field: Any) -> bool:
    return bool(field.dataType.typeName() == "timestamp")


def _types() -> Any:
    try:
        from pyspark.sql import types
    except ImportError as error:
        raise MissingExtra(f"Spark cannot be used: {error}", hint="pip install 'tallybayes[spark]'") from None
    return types


def _label_type(classes: Sequence[Any]) -> str:
    """Spark's type for labels as they went in; text where they are of several types."""
    kinds = {type(c) for c in classes}
    if kinds == {int} and all(abs(c) < 2**63 for c in classes):
        return "LongType"
    known = {bool: "BooleanType", float: "DoubleType", dt.date: "DateType"}
    return known.get(kinds.pop(), "StringType") if len(kinds) == 1 else "StringType"


def _received(row: Any) -> Tally:
    """The tally that an executor sent; the error that it met is raised here."""
    if row["problem"] is not None:
        kind, found, hint = json.loads(row["problem"])
        raise getattr(errors, kind)(found, hint=hint)
    return from_ipc(bytes(row["tally"]))
