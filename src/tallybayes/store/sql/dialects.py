"""How each database writes what a score needs: quoted names and values, doubles, and the type of a column.

Whatever comes from the data (column names, values, class names) goes through `name`, `text` or `number` here, and is
then a quoted name or a literal: none of it can become SQL.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...base.canon import number_text
from ...base.canon import text as canonical
from ...base.errors import SettingsError, unknown

TableName = str | Sequence[str]  # a name, or its parts: ("schema", "table")

COLUMN = "tb_column"  # of a table of weights; a table without it is none of ours
_ROWS_AT_ONCE = 500  # of a table of weights in one INSERT
_ZONE = "[0-9][0-9]:[0-9][0-9].*(Z|[+-][0-9][0-9](:?[0-9][0-9])?)$"  # at the end of a time
_SPARK_SPECIAL = "'\"\\$"  # by settings, Spark reads backslashes in literals, and ${…} anywhere in a query


@dataclass(frozen=True)
class Dialect:
    """DuckDB, and what the others share with it."""

    label: str = "duckdb"
    text_type: str = "VARCHAR"
    number_type: str = "DOUBLE"
    greatest: str = "GREATEST"
    most_joins: int = 1000
    materialized: str = "MATERIALIZED "
    cuts: bool = True  # texts into words, and times into their parts
    transactions: bool = True
    longest: int = 1 << 16  # bytes of a name

    def name(self, name: str) -> str:
        """A quoted identifier."""
        self.refuse_nul(name)
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """A text literal."""
        self.refuse_nul(value)
        return "'" + value.replace("'", "''") + "'"

    def refuse_nul(self, text: str) -> None:
        """Refuse the one character that databases cut a text at."""
        if "\0" in text:
            raise SettingsError(
                f"{text[:60]!r} holds a NUL character, which SQL cannot write",
                hint="leave the column out of the schema, or replace the character before counting.",
            )

    def number(self, value: float) -> str:
        """A literal of the nearest double, to the last bit."""
        if math.isinf(value):
            return f"CAST('{value}' AS {self.number_type})"
        written = repr(float(value))
        return written if "e" in written else f"{written}e0"  # without an exponent it would be a decimal

    def table(self, table: TableName) -> str:
        """A table's name, or its parts: ("schema", "table")."""
        return ".".join(self.name(part) for part in ([table] if isinstance(table, str) else table))

    def literal(self, label: Any) -> str:
        """A class as it went in."""
        if isinstance(label, bool):
            return "TRUE" if label else "FALSE"
        if isinstance(label, int):
            return str(label)
        if isinstance(label, float):
            return self.number(label)
        if isinstance(label, dt.date):
            return f"DATE {self.text(label.isoformat())}"
        return self.text(str(canonical(label)))

    def to_text(self, value: str) -> str:
        """A cast to text."""
        return f"CAST({value} AS {self.text_type})"

    def to_number(self, column: str) -> str:
        """A column as a double, which it may be already, or as a text; NaN is NULL."""
        number = f"CAST({column} AS {self.number_type})"
        return f"CASE WHEN NOT isnan({number}) THEN {number} END"

    def is_real(self, column: str) -> str:
        """Whether a column has a type with decimals."""
        return f"(typeof({column}) IN ('DOUBLE', 'FLOAT') OR typeof({column}) LIKE 'DECIMAL%')"

    def maybe_number(self, column: str) -> str:
        """A double where the column has one, evaluated only where `is_real` holds."""
        return f"TRY_CAST({column} AS {self.number_type})"

    def canonical(self, column: str, values: Iterable[str] = ()) -> str:
        """A value as the text that was counted: whole numbers without a point, other numbers found by their size."""
        real = self.maybe_number(column)
        near = f"ABS({real}) < {self.number(2.0**63)}"
        known = "".join(f"WHEN {real} = {self.number(x)} THEN {self.text(v)} " for v, x in _odd_numbers(values))
        return (
            f"CASE WHEN {self.is_real(column)} THEN CASE WHEN {self.is_nan(real)} THEN NULL {known}"
            f"WHEN {near} AND {real} = FLOOR({real}) THEN {self.to_text(f'CAST({real} AS BIGINT)')} "
            f"ELSE {self.digits(real)} END ELSE {self.to_text(column)} END"
        )

    def digits(self, real: str) -> str:
        """A double that was never counted, as a text that no other has."""
        return self.to_text(real)

    def is_nan(self, real: str) -> str:
        """Whether a double, or what is NULL, is no number."""
        return f"isnan({real})"

    def without(self, value: str, column: str, marks: Iterable[str]) -> str:
        """A value, NULL where the column's text means "missing"."""
        listed = ", ".join(self.text(m) for m in sorted(marks))
        return f"CASE WHEN {self.to_text(column)} NOT IN ({listed}) THEN {value} END" if listed else value

    def instant(self, column: str) -> str:
        """A date or time of any type, or its ISO text, as a time in UTC."""
        text = self.to_text(column)
        zone = f"epoch_us(CAST({text} AS TIMESTAMPTZ))"
        return (
            f"make_timestamp(CASE WHEN typeof({column}) = 'TIMESTAMP WITH TIME ZONE' THEN {zone} "
            f"WHEN regexp_matches({text}, {self.text(_ZONE)}) THEN {zone} "
            f"ELSE epoch_us(CAST({text} AS TIMESTAMP)) END)"
        )

    def microseconds(self, time: str) -> str:
        """Those since 1970 of a time, as a whole number."""
        return f"epoch_us({time})"

    def size(self, text: str) -> str:
        """The bytes of a text."""
        return f"strlen({text})"

    def lower(self, text: str) -> str:
        """A text of ASCII in small letters."""
        return f"LOWER({text})"

    def matches(self, table: str, pattern: str) -> str:
        """A query for id, token and place of all that a pattern finds in the texts of a table."""
        found = f"SELECT id, regexp_extract_all(text, {self.text(pattern)}) AS found FROM {table}"
        return f"SELECT id, UNNEST(found) AS token, UNNEST(range(len(found))) AS place FROM ({found}) AS t"

    def up_to(self, end: str) -> str:
        """1, 2, … as rows of a SELECT."""
        return f"UNNEST(generate_series(1, {end}))"

    def weights(self, table: TableName, stamp: str, rows: Sequence[tuple[int, str, Sequence[float]]]) -> list[str]:
        """The statements that replace a table of weights: column number, slot, a weight per class.

        The column of slots is called by what the table holds, so that no query reads the weights of another model.
        """
        named, n = self.table(table), len(rows[0][2])
        keys = f"{COLUMN} INTEGER NOT NULL, {stamp} {self.text_type} NOT NULL"
        columns = ", ".join(f"c{i} {self.number_type} NOT NULL" for i in range(n))
        listed = ", ".join([COLUMN, stamp, *(f"c{i}" for i in range(n))])
        out = [
            f"CREATE TABLE IF NOT EXISTS {named} ({keys})",
            *self.dropped(table),
            f"CREATE TABLE {named} ({keys}, {columns}, PRIMARY KEY ({COLUMN}, {stamp}))",
        ]
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            values = ",\n  ".join(self.row(*r) for r in rows[start : start + _ROWS_AT_ONCE])
            out.append(f"INSERT INTO {named} ({listed}) VALUES\n  {values}")
        return out

    def dropped(self, table: TableName) -> list[str]:
        """Statements that drop a table of ours; any other has no such column to delete by, and the rest is not done."""
        return [f"DELETE FROM {self.table(table)} WHERE {COLUMN} >= 0", f"DROP TABLE {self.table(table)}"]

    def row(self, column: int, slot: str, weights: Sequence[float]) -> str:
        """One row of the table of weights."""
        return f"({column}, {self.text(slot)}, {', '.join(map(self.number, weights))})"


@dataclass(frozen=True)
class SQLite(Dialect):
    """SQLite: types belong to values, not to columns; NaN does not exist."""

    label: str = "sqlite"
    text_type: str = "TEXT"
    number_type: str = "REAL"
    greatest: str = "MAX"
    most_joins: int = 60  # of 64 tables in a join
    cuts: bool = False

    def dropped(self, table: TableName) -> list[str]:
        """The same where a transaction goes on after an error: no table is renamed while a view of it means nothing."""
        *schema, name = [table] if isinstance(table, str) else table
        view, old = (self.table([*schema, f"{name}: {what}"]) for what in ("whose", "old"))
        return [
            f"CREATE VIEW {view} AS SELECT {COLUMN} FROM {self.name(name)}",
            f"ALTER TABLE {self.table(table)} RENAME TO {self.name(f'{name}: old')}",
            f"DROP VIEW {view}",
            f"DROP TABLE {old}",
        ]

    def number(self, value: float) -> str:
        """Too large a number is infinite."""
        return super().number(value) if math.isfinite(value) else f"{'-' * (value < 0)}9e999"

    def digits(self, real: str) -> str:
        """By itself it would write fifteen digits."""
        return f"printf('%!.17g', {real})"

    def is_nan(self, real: str) -> str:
        """There are none."""
        return f"{real} IS NULL"

    def to_text(self, value: str) -> str:
        """A cast to text, compared letter by letter whatever the column says."""
        return f"CAST({value} AS TEXT) COLLATE BINARY"

    def literal(self, label: Any) -> str:
        """Booleans are 0 and 1, dates are texts."""
        if isinstance(label, bool):
            return str(int(label))
        return self.text(label.isoformat()) if isinstance(label, dt.date) else super().literal(label)

    def to_number(self, column: str) -> str:
        """A number, or a text that is one; SQLite would read any other text as 0, here it is NULL."""
        digits = f"{column} GLOB '*[0-9]*' AND TRIM({column}) NOT GLOB '*[^0-9.eE+-]*'"
        return (
            f"CASE typeof({column}) WHEN 'text' THEN CASE WHEN {digits} THEN CAST({column} AS REAL) END "
            f"WHEN 'blob' THEN NULL ELSE CAST({column} AS REAL) END"
        )

    def is_real(self, column: str) -> str:
        """Whether a value has decimals."""
        return f"typeof({column}) = 'real'"

    def maybe_number(self, column: str) -> str:
        """The value."""
        return column


@dataclass(frozen=True)
class Postgres(Dialect):
    """PostgreSQL: overflow and underflow are errors, and decimals without a cast are exact numbers."""

    label: str = "postgres"
    text_type: str = "TEXT"
    number_type: str = "DOUBLE PRECISION"
    longest: int = 63

    def text(self, value: str) -> str:
        """A literal in which a backslash means the same under every setting."""
        self.refuse_nul(value)
        return "E'" + value.replace("\\", "\\\\").replace("'", "''") + "'"

    def number(self, value: float) -> str:
        """A literal with its type."""
        written = f"'{value}'" if math.isinf(value) else repr(float(value))
        return f"({written}::DOUBLE PRECISION)"

    def to_number(self, column: str) -> str:
        """By way of text, which keeps every bit and lets booleans be 0 and 1."""
        text = self.to_text(column)
        flags = f"WHEN 'true' THEN {self.number(1.0)} WHEN 'false' THEN {self.number(0.0)} WHEN 'NaN' THEN NULL"
        return f"CASE {text} {flags} ELSE CAST({text} AS DOUBLE PRECISION) END"

    def is_real(self, column: str) -> str:
        """Whether a column has a type with decimals."""
        return f"pg_typeof({column})::TEXT IN ('double precision', 'real', 'numeric')"

    def maybe_number(self, column: str) -> str:
        """By way of text, which any type can be cast to."""
        return f"CAST({self.to_text(column)} AS DOUBLE PRECISION)"

    def is_nan(self, real: str) -> str:
        """Here NaN is equal to itself."""
        return f"{real} = 'NaN'::DOUBLE PRECISION"

    def instant(self, column: str) -> str:
        """A date or time of any type, or its ISO text, as a time in UTC."""
        zone = f"CAST({column} AS TIMESTAMPTZ) AT TIME ZONE 'UTC'"
        time = (
            f"CASE WHEN pg_typeof({column})::TEXT = 'timestamp with time zone' THEN {zone} "
            f"WHEN {self.to_text(column)} ~ {self.text(_ZONE)} THEN {zone} ELSE CAST({column} AS TIMESTAMP) END"
        )
        return f"CASE WHEN isfinite({time}) THEN {time} END"

    def microseconds(self, time: str) -> str:
        """Those since 1970 of a time, as a whole number."""
        return f"CAST(EXTRACT(EPOCH FROM {time}) * 1000000 AS BIGINT)"

    def size(self, text: str) -> str:
        """The bytes of a text."""
        return f"OCTET_LENGTH({text})"

    def lower(self, text: str) -> str:
        """A text of ASCII in small letters; in some languages I would be another letter."""
        return f'LOWER({text} COLLATE "C")'

    def matches(self, table: str, pattern: str) -> str:
        """A query for id, token and place of all that a pattern finds in the texts of a table."""
        found = f"regexp_matches(t.text, {self.text(pattern)}, 'g') WITH ORDINALITY AS w(found, place)"
        return f"SELECT t.id, w.found[1] AS token, w.place FROM {table} AS t CROSS JOIN LATERAL {found}"

    def up_to(self, end: str) -> str:
        """1, 2, … as rows of a SELECT."""
        return f"generate_series(1, {end})"


@dataclass(frozen=True)
class Spark(Dialect):
    """Spark SQL: names in backticks, and texts without the characters that a setting may give a meaning."""

    label: str = "spark"
    text_type: str = "STRING"
    materialized: str = ""  # Spark does not know the word
    cuts: bool = False
    transactions: bool = False

    def name(self, name: str) -> str:
        """A quoted identifier."""
        self.refuse_nul(name)
        if "${" in name:
            raise SettingsError(
                f"the name {name[:60]!r} would be taken for one of Spark's variables", hint="rename the column."
            )
        return "`" + name.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        """A text literal; special characters by their number."""
        self.refuse_nul(value)
        pieces = [""]
        for ch in value:
            if ch in _SPARK_SPECIAL:
                pieces += [f"char({ord(ch)})", ""]
            else:
                pieces[-1] += ch
        written = [p if i % 2 else f"'{p}'" for i, p in enumerate(pieces) if p]
        return f"concat({', '.join(written)})" if len(written) > 1 or len(pieces) > 1 else f"'{value}'"

    def number(self, value: float) -> str:
        """A literal with its type."""
        return f"{float(value)!r}D" if math.isfinite(value) else super().number(value)

    def is_real(self, column: str) -> str:
        """Whether a column has a type with decimals."""
        return f"(typeof({column}) IN ('double', 'float') OR typeof({column}) LIKE 'decimal%')"

    def weights(self, table: TableName, stamp: str, rows: Sequence[tuple[int, str, Sequence[float]]]) -> list[str]:
        """A view of the session, since not every Spark can keep tables."""
        names = ", ".join([COLUMN, stamp, *(f"c{i}" for i in range(len(rows[0][2])))])
        listed = ",\n  ".join(self.row(*r) for r in rows)
        view = f"CREATE OR REPLACE TEMPORARY VIEW {self.table(table)} AS"
        return [f"{view} SELECT * FROM VALUES\n  {listed}\n  AS w({names})"]


def _odd_numbers(values: Iterable[str]) -> list[tuple[str, float]]:
    """Those of the values that are numbers, and that databases do not write as we do."""
    out = []
    for value in values:
        try:
            x = float(value)
        except ValueError:
            continue
        whole = abs(x) < 2.0**63 and x == math.floor(x)
        if not whole and not math.isnan(x) and number_text(x) == value:
            out.append((value, x))
    return out


DIALECTS = {d.label: d for d in (Dialect(), SQLite(), Spark(), Postgres())}


def dialect(name: str) -> Dialect:
    """The dialect of this name."""
    if name not in DIALECTS:
        raise unknown(SettingsError, f"dialect={name!r}", name, DIALECTS)
    return DIALECTS[name]
