"""A first look at the data: which kind each column is, and why; and what is mended where the rest shows more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..base import canon, threads
from ..base.arrays import Ints
from ..base.errors import DataError, SchemaError, SettingsError, unknown, warn
from ..base.wording import visible
from . import encode
from .batch import one_batch
from .blocks import Codes
from .guess import Reading, typed
from .looking.leaks import leaks_among
from .looking.look import look_alike, read_ahead
from .looking.propose import FEW_ROWS, Proposals
from .marks import MARKS, is_mark, marks_among
from .schema import Column, Schema
from .sources import HIDDEN, LABELS, MATRIX, Batch, Source, on_engine, open_source
from .spelling import OddCells, Spelling, are_few
from .thousands import with_commas, with_doubt
from .values import Where, number

LOOK = 100_000  # rows looked at: every row of a small table, every k-th of a large one
MATRIX_COLUMNS = 256  # a matrix of more columns than this is one vector column
NO_LABEL = tuple(m for m in MARKS if m not in ("None", "-", "."))  # a class of this name is rarely meant as one
_MANY_CELLS = 1 << 16  # of a look: reading so many takes longer than starting threads


def infer(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    kinds: Mapping[str, str] | None = None,
    weights: str | None = None,
    receipts: bool = False,
    keep_leaks: bool = False,
    engine: str | None = None,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> Schema:
    """A schema for the data: a kind and a reason for every column. Edit it with `with_column`.

    target       the column to predict; with a matrix give the labels instead, `tb.infer(X, y)`
    kinds        what some columns are, {"zip": "category", "note": "text", "id": "ignore"}; the others are looked at
    weights      a column that says how much each row counts; it is no feature then
    receipts     also count a hash per row, so that `forget` knows every row
    keep_leaks   count columns that give the label away, which else are ignored with a warning
    engine       who reads the rows, as for `tb.count`
    missing      texts that mean a missing value, beside NA, N/A, ? and - where a column has them; [] takes all as they
                 are
    strict       refuse a few cells that are no numbers (or no dates) among those that are (DataError); else they count
                 as missing, with a warning that says where they are
    date_format  how dates are written, for all columns or by name: {"day": "%d/%m/%Y"}
    fold         take values and labels that differ in letter case and blanks alone as one

    >>> tb.infer({"Sky": ["sunny", "rainy", "sunny"], "Wind": [3.5, 2.0, 7.25], "Play": ["yes", "no", "yes"]}, "Play")
    Schema: target 'Play', 2 columns counted
      Sky   category  text, 2 different values: rainy, sunny
      Wind  number    numbers from 2 to 7.25
    """
    reading = Reading.of(missing, strict, date_format, fold, kinds)
    name, y, given = asked(target, y, None, reading)
    if given is not None:
        raise SettingsError("a schema where its target belongs", hint=f"write tb.infer(data, {given.target!r}).")
    source = on_engine(open_source(data, y, target=name), engine)
    return schema_of(source, name, weights, reading, receipts=receipts, keep_leaks=keep_leaks)


def schema_of(
    source: Source,
    name: str,
    weights: str | None,
    reading: Reading,
    *,
    receipts: bool = False,
    keep_leaks: bool = False,
) -> Schema:
    """The schema of `infer` for a source, with a warning of odd cells."""
    schema, odd = looked_at(first_look(source), name, weights, receipts, reading, keep_leaks=keep_leaks)
    odd.warn()
    return schema


def looked_at(
    look: Batch, name: str, weights: str | None, receipts: bool, reading: Reading, *, keep_leaks: bool = False
) -> tuple[Schema, OddCells]:
    """The schema of `infer`, and the odd cells among the rows that were looked at."""
    seen, look = look, typed(look)
    labels, label_type = _target(look, name, reading)
    if look.written:
        texts = encode.labels(Schema([], target=name, missing=reading.marks, fold=reading.fold), seen).slots
        if any(canon.label_type(canon.from_text(t, label_type)) != label_type for t in texts):
            label_type = "text"  # such as 2⁵³ + 1, or 1.50, which as numbers would be other labels
    if weights is not None and weights not in look:
        raise unknown(DataError, f"there is no weights column {weights!r}", weights, look.names())
    columns: list[Column] = []
    names = _columns_of(look, skip={name, weights})
    reading.check(names)
    odd = OddCells(places=not (look.sampled or look.stretches or look.of is not None))
    proposals, marks = Proposals(look, reading, odd, seen.decimal == ","), reading.marks
    many = threads.each if look.rows * len(names) > _MANY_CELLS else map
    looks = zip(names, many(lambda c: read_ahead(c, look[c], marks), names), strict=True)
    each = {column: (looked, proposals.of(column, looked)) for column, looked in looks}
    plain = Schema([], target=name, label_type=label_type, missing=marks)
    leaks = {} if keep_leaks else leaks_among(each, look, plain, labels)
    for column, (_, proposed) in each.items():
        leak = None if column in reading.kinds else leaks.get(column)
        if seen.decimal == ",":  # what was looked at has points
            proposed = [with_commas(each, seen.columns.get(column)) for each in proposed]
        if leak:
            warn(
                f"column {column!r} is ignored: {leak}. Hint: if it is known before the answer is, count it with "
                f"schema.with_column({column!r}, kind={proposed[0].kind!r})."
            )
            given = proposed[0]
            proposed = [replace(given, kind="ignore", values=None, reason=leak)]
        columns += proposed
    if look.written and any(c.spelling is not None and c.spelling.decimal == "," for c in columns):
        columns = [with_doubt(c, seen.columns.get(c.reads)) for c in columns]
    if look.of is not None and look.of > look.rows:
        said = f"; seen in {look.rows:,} of {look.of:,} rows"
        columns = [replace(c, reason=c.reason + said) for c in columns]
    elif look.stretches:
        said = f"; seen in {look.rows:,} rows from all over the file"
        columns = [replace(c, reason=c.reason + said) for c in columns]
    more: dict[str, Any] = {"receipts": receipts, "missing": marks, "fold": reading.fold}
    return with_kinds(Schema(columns, target=name, label_type=label_type, weights=weights, **more), reading.kinds), odd


def with_kinds(schema: Schema, kinds: Mapping[str, str]) -> Schema:
    """The schema with the kinds that a person has chosen for some columns; a date's parts give way together."""
    known = {n: None for c in schema.columns for n in (c.name, *c.inputs)}
    for name, kind in kinds.items():
        if name == schema.target and kind == "category":
            continue  # so it is: said where its numbers look like a quantity
        if name not in known:
            raise unknown(SchemaError, f"there is no column {name!r} to set", name, known)
        if any(c.name == name for c in schema.columns) and kind != "date":
            schema = schema.with_column(name, kind=kind)
        else:
            at = next(i for i, c in enumerate(schema.columns) if name in c.inputs)
            was = schema.columns[at]
            new = Column(name, kind, reason="chosen by hand")
            if kind in ("date", "ignore") and was.part:  # read as before, also where it only says the period of a row
                new = replace(new, missing=was.missing, spelling=was.spelling)
            rest = [c for c in schema.columns if c.reads != name]
            schema = schema._with(columns=[*rest[:at], new, *rest[at:]])
    return schema


def asked(target: Any, y: Any, schema: Any, reading: Reading | None = None) -> tuple[str, Any, Schema | None]:
    """What every verb is told of the data: the name of the target, labels that stand beside, the schema if given.

    `target` is the column's name, the labels themselves, `fit(X, y)`, or a schema, which has a target of its own.
    """
    if isinstance(target, Schema) or not (schema is None or isinstance(schema, Schema)):
        if schema is not None and (target is not None or not (isinstance(schema, str) or hasattr(schema, "__len__"))):
            raise SettingsError(
                f"schema={schema!r:.60}", hint="give a tb.Schema, such as tb.infer(data, 'target') makes."
            )
        target, schema = schema, target  # first spellings: verb(data, schema), verb(data, schema='target')
    name, y = labels_or_name(target, y)
    if schema is None:
        return LABELS if name is None else name, y, None
    if name not in (None, schema.target):
        raise SettingsError(
            f"the target {name!r} beside a schema whose target is {schema.target!r}",
            hint=f"leave target= out, or make another schema: tb.infer(data, {name!r}).",
        )
    if reading not in (None, Reading()):
        raise SettingsError(
            "kinds, missing, strict, date_format or fold beside a schema, which says how cells are read",
            hint="give them to tb.infer, which makes the schema, or leave them out.",
        )
    return schema.target, y, schema


def labels_or_name(target: Any, y: Any) -> tuple[str | None, Any]:
    """The target's name and the labels beside the data; `fit(X, y)` gives labels where a name is expected."""
    if target is None or isinstance(target, str):
        return target, y
    if hasattr(target, "__len__") or hasattr(target, "__arrow_c_stream__"):
        if y is not None:
            raise DataError("labels were given twice", hint="name the column with target='…', or give y=labels.")
        return None, target
    return str(target), y


def first_look(source: Source, *, whole: bool = False) -> Batch:
    """Up to LOOK rows spread evenly over all of the data, whatever its length; an engine draws about so many.

    A long file that can be read from the middle gives stretches of itself, unless the `whole` of it is to be read.
    """
    if source.engine is not None:
        drawn: Batch = source.engine.look(LOOK)
        return drawn
    if source.stretches is not None and not whole and (found := source.stretches(LOOK * 2 // 3)) is not None:
        return found
    if source.rows is not None:
        step = 1
        while -(-source.rows // step) > LOOK:
            step *= 2
        joined = one_batch(list(threads.each(lambda each: each[0].take(each[1]), _every(source, step))))
        return replace(joined, sampled=joined.sampled or step > 1)
    kept: list[Batch] = []
    step, total, seen = 1, 0, 0
    for batch in source.batches():
        offset = -seen % step
        seen += batch.rows
        kept.append(batch.take(np.arange(offset, batch.rows, step)))
        total += kept[-1].rows
        while total > LOOK:  # twice as far between rows: every second of those kept
            step *= 2
            first = 0
            for i, piece in enumerate(kept):
                rows = np.arange(first, piece.rows, 2)
                first = (first - piece.rows) % 2
                kept[i] = piece.take(rows)
            total = sum(piece.rows for piece in kept)
    if source.files and not seen:
        raise source.no_rows()
    return replace(one_batch(kept), sampled=step > 1)


def _every(source: Source, step: int) -> Iterator[tuple[Batch, Ints]]:
    """The batches of a source, and which of their rows are every so many of all."""
    seen = 0
    for batch in source.batches():
        yield batch, np.arange(-seen % step, batch.rows, step)
        seen += batch.rows


def _columns_of(look: Batch, skip: Iterable[str | None]) -> list[str]:
    matrix = look.columns.get(MATRIX)
    wide = isinstance(matrix, np.ndarray) and matrix.ndim == 2 and matrix.shape[1] > MATRIX_COLUMNS
    names = list(look.columns) if wide else look.names()
    return [n for n in names if n not in skip and n not in HIDDEN]


def _target(look: Batch, name: str, reading: Reading) -> tuple[Codes, str]:
    """The labels, and the type that brings them back; refuses a target that is a quantity."""
    if look.rows == 0 and not look.columns:
        raise DataError("the table has no rows and no columns", hint="give at least one row with a label.")
    labels = encode.labels(Schema([], target=name, missing=reading.marks, fold=reading.fold), look)
    if look.rows == 0:
        raise DataError("the table has no rows", hint="give at least one row with a label.")
    if (labels.codes < 0).all():
        raise DataError(
            f"the target {name!r} is missing in all {look.rows} rows",
            hint="give the column that holds the labels with target='…', or fill it in.",
        )
    raw = look[name]
    if isinstance(raw, pa.Array) and pa.types.is_dictionary(raw.type):
        raw = raw.dictionary
    if isinstance(raw, pa.Array):
        kind = raw.type
        if pa.types.is_boolean(kind):
            return labels, "bool"
        if pa.types.is_date(kind):
            return labels, "date"
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            _warn_of_labels(labels, name)
            return labels, "text"
        whole = pa.types.is_integer(kind)
    else:
        types = {canon.label_type(v) for v in raw if canon.text(v) is not None}
        if len(types) > 1 or types & {"text", "bool", "date"}:
            _warn_of_labels(labels, name)
            return labels, types.pop() if len(types) == 1 else "text"
        whole = types == {"int"}
    values = number(look[name], Where(name, 0), reading.marks)
    values = values[~np.isnan(values)]
    distinct = len(np.unique(values))
    fractions = bool(np.any(values != np.rint(values)))
    many = (fractions and distinct > 10) or distinct > 100 or (distinct > 20 and distinct > 0.05 * len(values))
    if many and reading.kinds.get(name) != "category":
        middle = canon.number_text(float(f"{np.median(values):.6g}"))
        raise DataError(
            f"the target {name!r} is a quantity: {distinct} different numbers from {values.min():g} to "
            f"{values.max():g}",
            hint=f"naive Bayes predicts classes. Cut the quantity into some, e.g. "
            f"data['high'] = data[{name!r}] >= {middle}, and take that as the target (without the quantity itself)."
            + ("" if fractions else f" Where numbers only name classes: kinds={{{name!r}: 'category'}}."),
        )
    if whole:
        return labels, "int"
    return labels, "float" if all(canon.number_text(float(t)) == t for t in labels.slots) else "text"


def _warn_of_labels(labels: Codes, name: str) -> None:
    counted = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.slots)).tolist()
    alone, rows = counted.count(1), sum(counted)
    if rows >= FEW_ROWS and alone > 0.5 * rows:
        warn(
            f"{alone:,} of {rows:,} rows have a label of {name!r} of their own, which teaches nothing. Hint: "
            "naive Bayes predicts classes of many rows; name another column with target='…', or make classes of it."
        )
    if alike := look_alike(labels.slots, dict(zip(labels.slots, counted, strict=True))):
        shown = ", ".join(map(visible, alike[:6]))
        warn(
            f"{shown} are {len(alike)} classes of {name!r}: spellings of one label? Hint: fold=True (--fold) makes "
            "labels and values that differ in letter case and blanks alone one."
        )
    for code, label in enumerate(labels.slots):
        if label in NO_LABEL:
            rows = int(np.count_nonzero(labels.codes == code))
            warn(
                f"{label!r} is counted as a class of {name!r} ({rows:,} of {len(labels.codes):,} rows). "
                "Hint: if it means that the answer is not known, leave these rows out of the data."
            )


# ---- what the first look did not show


def mended(schema: Schema, source: Source, strict: bool = False) -> Schema:
    """An inferred schema by which all rows can be read: the odd cells of its numbers and dates are missing, if few.

    Marks for missing values are read as such; other cells make the column say that odd ones are missing, or are refused
    if the reading is `strict`.
    """
    odd = OddCells()
    trial = [
        replace(c, spelling=replace(c.spelling or Spelling(), odd=True))
        for c in schema.counted
        if c.of is None and (c.part is not None or c.like == "number")
    ]
    under = schema._with(columns=trial, weights=None)
    for batch in odd.watching(source).batches(encode.wanted(under)):
        encode.blocks(under, batch)
    columns = [_mended(c, odd, strict) for c in schema.columns]
    return schema._with(columns=columns)


def _mended(column: Column, odd: OddCells, strict: bool) -> Column:
    found = odd.found.get(column.reads)
    if found is None or not found.odd or (column.part is None and column.like != "number"):
        return column
    marks = {v: n for v, n in found.values.items() if is_mark(v)}
    others = found.odd - sum(marks.values())
    if others and not are_few(others, found.cells, len(found.values) - len(marks)):
        raise DataError(
            f"column {column.reads!r} was taken for {'dates' if column.part else 'numbers'} by a first look, and "
            f"{others:,} of {found.cells:,} cells are none: {found.told()}",
            hint=f"make it a category: schema.with_column({column.reads!r}, kind='category') (--set "
            f"{column.reads}=category), or name what means missing: missing=[…] (--missing).",
        )
    if others and strict:
        raise found.refusal(column.part is not None)
    missing, spelling = tuple({*column.missing, *marks}), column.spelling
    told: Any = ""
    if marks:
        told = f"; {', '.join(map(repr, marks))} read as missing"
    if others:
        spelling = replace(spelling or Spelling(), odd=True)
        told += f"; {others:,} of {found.cells:,} cells cannot be read and are missing"
    return replace(column, missing=missing, spelling=spelling, reason=column.reason + told)


def with_late_marks(schema: Schema, values: Mapping[str, Sequence[str]]) -> Schema:
    """An inferred schema that also has the marks among the values of categories that were counted, {column: values}."""
    columns = []
    for column in schema.columns:
        marks: tuple[str, ...] = ()
        if column.kind == "category" and column.part is None and column.of is None:
            marks = marks_among(values.get(column.name, ()), category=True)
        if marks:
            told = f"; {', '.join(map(repr, marks))} read as missing"
            column = replace(column, missing=(*column.missing, *marks), reason=column.reason + told)
        columns.append(column)
    return schema._with(columns=columns)
