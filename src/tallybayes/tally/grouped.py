"""Counts of rows that a database has put into groups: each row of a table stands for so many rows.

A tally of k equal rows is k times the tally of one, and tallies add exactly: groups are counted by the binary digits of
how many rows they have, the largest first, and doubled from one digit to the next. No column but the number of rows
need be summed by the database, whose sums of floats are rounded: the weight of a row is one of the keys, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.arrays import Ints
from ..base.errors import DataError, SchemaError, excerpt, unknown
from ..data.batch import Batch
from ..data.schema import Schema
from ..data.sources import open_source
from ..data.values import Where, number
from .tally import Tally, add_tallies
from .together import TOGETHER
from .traces import weighted

_MOST = 1 << 53  # of rows in a group: what a float still counts


def count_grouped(like: Any, *tables: Any, times: str = "n", weights: str | None = None) -> Tally:
    """The tally of all rows, from tables of groups; it has the digest that counting the rows one by one gives.

    `like` is a schema, or a model or tally that has one. Each table has the target, some columns of the schema, and in
    `times` how many rows a group has: what
    `SELECT target, column, count(*) AS n … GROUP BY target, column` gives, for one column or for several at once.
    Together they have all columns; `group_queries` writes the queries. Where rows are weighted, by the schema or by
    `weights`, the name of a column, each table has the weight of a single row as a key, too, and no sum of weights.

    >>> schema = tb.Schema([tb.Column("Sky", "category"), tb.Column("Wind", "number")], target="Play")
    >>> sky = {"Play": ["yes", "yes", "no"], "Sky": ["sunny", "rainy", "rainy"], "n": [5, 1, 2]}
    >>> wind = {"Play": ["yes", "no", "no"], "Wind": [3.5, 3.5, 12.0], "n": [6, 1, 1]}
    >>> tb.count_grouped(schema, sky, wind)
    Tally: 8 rows · yes 6, no 2 · 2 columns
    """
    schema = _schema(like, weights, times)
    parts: dict[str, Tally] = {}
    first: Tally | None = None
    for table in tables:
        own, tally = _of_table(schema, table, times, set(parts))
        first = tally if first is None else first
        _check_alike(first, tally, own)
        parts |= dict.fromkeys(own, tally)
    lacking = [c.name for c in schema.counted if c.name not in parts]
    if first is None or lacking:
        raise DataError(
            f"no table has all that column {excerpt(lacking)} is made of"
            if tables
            else "there are no tables of groups",
            hint="group by the target and each column: tb.group_queries(schema, 'the_table') writes the queries.",
        )
    known = [parts[c.name].schema[c.name] if c.name in parts else c for c in schema.columns]
    columns = {c.name: parts[c.name].columns[c.name] for c in schema.counted}
    return replace(first, schema=first.schema._with(columns=known), columns=columns)


def group_queries(like: Any, table: str, times: str = "n", *, weights: str | None = None) -> list[str]:
    """The SQL queries whose results `count_grouped` takes, one for each column of the table that is counted.

    `like` is a schema, or a model or tally that has one. Names stand in double quotes, as in standard SQL; `table`
    stands in the queries as it is given. `weights`, or the schema, names the column that says how much a row counts.

    >>> tb.group_queries(tb.Schema([tb.Column("Sky", "category")], target="Play"), "days")
    ['SELECT "Play", "Sky", count(*) AS "n" FROM days GROUP BY "Play", "Sky"']
    """
    schema = _schema(like, weights, times)
    keys = [schema.target, *([] if schema.weights is None else [schema.weights])]
    sources = dict.fromkeys(tuple(dict.fromkeys(c.inputs)) for c in schema.counted)
    out = []
    for inputs in sources:
        if len(inputs) == 1 or not any(set(inputs) < set(other) for other in sources):
            names = ", ".join(_quoted(n) for n in [*keys, *inputs])
            out.append(f"SELECT {names}, count(*) AS {_quoted(times)} FROM {table} GROUP BY {names}")
    return out


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _schema(like: Any, weights: str | None, times: str) -> Schema:
    """The schema of the groups, if a tally can be made of such."""
    schema: Schema = getattr(like, "schema", like)
    schema = schema if weights is None else schema.with_weights(weights)
    tally = like if isinstance(like, Tally) else getattr(like, "tally", None)
    if schema.weights is None and isinstance(tally, Tally) and weighted(tally):
        raise SchemaError(
            "rows were counted by weights that stood beside them, and the schema names no column of weights",
            hint="name the column of the table that has them, weights='…', or give the schema alone to count each row "
            "as one.",
        )
    if times in (schema.target, schema.weights, *(name for c in schema.counted for name in c.inputs)):
        raise SchemaError(
            f"{times!r} is a column of the rows, and the name of how many rows a group has",
            hint=f"call the number of rows otherwise: times={times + ' rows'!r}.",
        )
    if schema.receipts:
        raise SchemaError(
            "a schema with receipts, which are made of whole rows", hint="count groups under receipts=False."
        )
    if any(c.kind == TOGETHER for c in schema.columns):
        raise SchemaError(
            "a schema whose columns are counted two by two", hint="count the rows themselves: tb.count(rows, schema)."
        )
    return schema


def _of_table(schema: Schema, table: Any, times: str, done: set[str]) -> tuple[list[str], Tally]:
    """The columns that a table of groups has and others have not had, and their tally."""
    source = open_source(table)
    tallies: list[Tally] = []
    own: Schema | None = None
    for batch in source.batches():
        if own is None:
            own = _own_schema(schema, batch, times, done)
        tallies += _of_batch(own, batch, times)
        tallies = [add_tallies(tallies)] if len(tallies) > 1 else tallies
    assert own is not None
    return [c.name for c in own.counted], tallies[0] if tallies else Tally.zero(own)


def _own_schema(schema: Schema, batch: Batch, times: str, done: set[str]) -> Schema:
    needed = {times: "the number of rows of each group", schema.target: repr(schema.target)}
    if schema.weights is not None:
        needed[schema.weights] = "the weight of a single row of each group"
    for name, what in needed.items():
        if name not in batch:
            hint = (
                "" if name != schema.weights else "the weight is one of the keys: tb.group_queries writes the queries."
            )
            found = f"a table of groups has no column {name!r}: {what} must be there"
            raise unknown(DataError, found, name, batch.names(), hint)
    columns = [c for c in schema.columns if c.name not in done and all(n in batch for n in c.inputs)]
    if not any(c.kind != "ignore" for c in columns):
        names = [n for n in batch.names() if n not in needed]
        raise DataError(
            f"a table of groups has no column that is still to be counted, but {excerpt(names)}" if names else
            "a table of groups has no column but the target and the number of rows",
            hint="group by the target and a column of the schema.",
        )  # fmt: skip
    return schema._with(columns=columns)


def _of_batch(schema: Schema, batch: Batch, times: str) -> Iterator[Tally]:
    """The tally of some groups, doubled from the largest binary digit of their sizes to the smallest."""
    size = _sizes(batch, times)
    tally: Tally | None = None
    for digit in range(int(size.max(initial=0)).bit_length() - 1, -1, -1):
        rows = np.flatnonzero(size >> digit & 1)
        parts = [] if tally is None else [tally, tally]
        if len(rows):
            parts.append(Tally.of(schema, batch.take(rows)))
        tally = add_tallies(parts) if parts else None
    if tally is not None:
        yield tally


def _sizes(batch: Batch, times: str) -> Ints:
    """How many rows each group has."""
    hint = (
        "take count(*) of each group: a whole number of at least 0. Rows that count more or less than one are grouped "
        "by their weight, too, weights='…': tb.group_queries writes the queries."
    )
    found = number(batch[times], Where(times, batch.start, batch.place))
    bad = np.flatnonzero(~((found >= 0) & (found < _MOST) & (found == np.rint(found))))
    if len(bad):
        raise DataError(
            f"column {times!r}, row {batch.start + int(bad[0])} (the first is row 0): {found[bad[0]]:g} as the number "
            "of rows of a group", hint=hint
        )  # fmt: skip
    return np.asarray(found, dtype=np.int64)


def _check_alike(first: Tally, tally: Tally, columns: list[str]) -> None:
    """Refuse tables that are not of the same rows, as far as labels tell."""
    if first is tally or (first.classes, first.labels, first.skipped) == (tally.classes, tally.labels, tally.skipped):
        return
    was, now = (f"{t.rows:,} rows of {excerpt(t.classes)}, {t.skipped:,} without a label" for t in (first, tally))
    raise DataError(
        f"tables of groups of different rows: the first has {was}, that of {excerpt(columns)} has {now}",
        hint="ask all queries of one state of the table: in one transaction, and with the same WHERE.",
    )
