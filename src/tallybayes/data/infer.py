"""A first look at the data: which kind each column is, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base import canon, threads
from ..base.arrays import Ints
from ..base.errors import DataError, excerpt, unknown, warn
from ..base.lazy import scipy
from ..exact.cells import Cells
from . import encode
from .blocks import Codes
from .dates import date_part
from .kinds import KINDS
from .look import (
    Looked,
    Ordered,
    are_names,
    free_text,
    gives_away,
    is_iso,
    is_number,
    is_other,
    names,
    read_ahead,
    some_of,
    typed,
    warn_of_other,
)
from .schema import Column, Schema, date_columns
from .sources import LABELS, MATRIX, WEIGHTS, Batch, Source, on_engine, open_source
from .values import Where, is_bytes, number

LOOK = 100_000  # rows looked at: every row of a small table, every k-th of a large one
MATRIX_COLUMNS = 256  # a matrix of more columns than this is one vector column
NO_LABEL = ("?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL")  # a class of this name is rarely meant as one
MARKS = ("?", "NA", "N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "None", "-", ".")
_ANY_MARK = frozenset(MARKS)
_SURELY_TEXT = 3.5  # words on average of some texts: all have at least three
_FEW_ROWS = 20  # below this nothing is called an id
_ID_NAME = re.compile(r"(^|[_\W])(id|uuid|guid|key|index|idx|rowid|row)$|Id$|ID$", re.ASCII)


def infer(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    weights: str | None = None,
    receipts: bool = False,
    keep_leaks: bool = False,
    engine: str | None = None,
) -> Schema:
    """A schema for the data: a kind and a reason for every column. Edit it with `with_column`.

    A column that gives the label away is ignored with a warning, unless `keep_leaks`. `engine` is as for `count`.

    >>> infer({"Sky": ["sunny", "rainy", "sunny"], "Wind": [3.5, 2.0, 7.25], "Play": ["yes", "no", "yes"]}, "Play")
    Schema: target 'Play', 2 columns counted
      Sky   category  text, 2 different values: rainy, sunny
      Wind  number    numbers from 2 to 7.25
    """
    target, y = labels_or_name(target, y)
    name = LABELS if target is None else target
    look = typed(first_look(on_engine(open_source(data, y, target=name), engine)))
    labels, label_type = _target(look, name)
    if weights is not None and weights not in look:
        raise unknown(DataError, f"there is no weights column {weights!r}", weights, look.names())
    columns: list[Column] = []
    names = _columns_of(look, skip={name, weights})
    for column, looked in zip(names, threads.each(lambda c: read_ahead(c, look[c]), names), strict=True):
        proposed = _propose(column, looked, look.written)
        leak = None if keep_leaks else gives_away(looked, proposed, labels)
        if leak:
            warn(
                f"column {column!r} is ignored: {leak}. Hint: if it is known before the answer is, count it with "
                f"schema.with_column({column!r}, kind={proposed[0].kind!r})."
            )
            proposed = [Column(column, "ignore", cells=proposed[0].cells, reason=leak)]
        columns += proposed
    if look.of is not None and look.of > look.rows:
        seen = f"; seen in {look.rows:,} of {look.of:,} rows"
        columns = [replace(c, reason=c.reason + seen) for c in columns]
    elif look.stretches:
        seen = f"; seen in {look.rows:,} rows from all over the file"
        columns = [replace(c, reason=c.reason + seen) for c in columns]
    return Schema(columns, target=name, label_type=label_type, weights=weights, receipts=receipts)


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
        return _joined(list(threads.each(lambda each: each[0].take(each[1]), _every(source, step))))
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
    return _joined(kept)


def _every(source: Source, step: int) -> Iterator[tuple[Batch, Ints]]:
    """The batches of a source, and which of their rows are every so many of all."""
    seen = 0
    for batch in source.batches():
        yield batch, np.arange(-seen % step, batch.rows, step)
        seen += batch.rows


def _joined(batches: list[Batch]) -> Batch:
    batches = [b for b in batches if b.rows] or batches[:1]
    if len(batches) == 1:
        return batches[0]
    names = dict.fromkeys(n for b in batches for n in b.columns)
    columns: dict[str, Any] = {}
    for name in names:
        pieces = [b.columns[name] if name in b.columns else pa.nulls(b.rows) for b in batches]
        kind = _one_type(pieces)
        if kind is not None:
            columns[name] = pa.concat_arrays([p if p.type == kind else p.cast(kind) for p in pieces])
        elif all(isinstance(p, np.ndarray) for p in pieces):
            columns[name] = np.concatenate(pieces)
        elif all(scipy.sparse.issparse(p) for p in pieces):
            columns[name] = scipy.sparse.vstack(pieces).tocsr()
        else:
            columns[name] = [v for p in pieces for v in (p.to_pylist() if isinstance(p, pa.Array) else p)]
    return Batch(columns, sum(b.rows for b in batches), written=batches[0].written)


def _one_type(pieces: list[Any]) -> Any:
    """The Arrow type that all pieces of a column can have, or None; a batch may lack a column or its fractions."""
    if not all(isinstance(p, pa.Array) for p in pieces):
        return None
    kinds = {str(p.type): p.type for p in pieces if not pa.types.is_null(p.type)}
    if len(kinds) <= 1:
        return next(iter(kinds.values()), pa.null())
    return pa.float64() if all(pa.types.is_integer(k) or pa.types.is_floating(k) for k in kinds.values()) else None


def _columns_of(look: Batch, skip: Iterable[str | None]) -> list[str]:
    matrix = look.columns.get(MATRIX)
    wide = isinstance(matrix, np.ndarray) and matrix.ndim == 2 and matrix.shape[1] > MATRIX_COLUMNS
    names = list(look.columns) if wide else look.names()
    return [n for n in names if n not in skip and n != WEIGHTS]


def _target(look: Batch, name: str) -> tuple[Codes, str]:
    """The labels, and the type that brings them back; refuses a target that is a quantity."""
    labels = encode.labels(Schema([], target=name), look)
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
            _warn_of_no_label(labels, name)
            return labels, "text"
        whole = pa.types.is_integer(kind)
    else:
        types = {canon.label_type(v) for v in raw if canon.text(v) is not None}
        if len(types) > 1 or types & {"text", "bool", "date"}:
            _warn_of_no_label(labels, name)
            return labels, types.pop() if len(types) == 1 else "text"
        whole = types == {"int"}
    values = number(look[name], Where(name, 0))
    values = values[~np.isnan(values)]
    distinct = len(np.unique(values))
    fractions = bool(np.any(values != np.rint(values)))
    if (fractions and distinct > 10) or distinct > 100 or (distinct > 20 and distinct > 0.05 * len(values)):
        middle = canon.number_text(float(f"{np.median(values):.6g}"))
        raise DataError(
            f"the target {name!r} is a quantity: {distinct} different numbers from {values.min():g} to "
            f"{values.max():g}",
            hint=f"naive Bayes predicts classes. Cut the quantity into some, e.g. "
            f"data['high'] = data[{name!r}] >= {middle}, and take that as the target (without the quantity itself).",
        )
    if whole:
        return labels, "int"
    return labels, "float" if all(canon.number_text(float(t)) == t for t in labels.slots) else "text"


def _warn_of_no_label(labels: Codes, name: str) -> None:
    for code, label in enumerate(labels.slots):
        if label in NO_LABEL:
            rows = int(np.count_nonzero(labels.codes == code))
            warn(
                f"{label!r} is counted as a class of {name!r} ({rows:,} of {len(labels.codes):,} rows). "
                "Hint: if it means that the answer is not known, leave these rows out of the data."
            )


def _propose(name: str, looked: Looked, written: bool) -> list[Column]:
    """One or more columns for a column of the data."""
    for kind in KINDS.values():
        if kind.recognise is not None and (found := kind.recognise(name, looked)) is not None:
            return [found]
    raw = looked.raw
    if isinstance(raw, np.ndarray) or scipy.sparse.issparse(raw):
        return [_matrix(name, raw)]
    if isinstance(raw, list):
        first = next((v for v in raw if v is not None), None)
        if isinstance(first, Mapping):
            return [Column(name, "bag", reason="dicts of word and count")]
        if not all(map(canon.is_one, raw)):
            if all(v is None or isinstance(v, (list, tuple)) for v in raw):
                return [Column(name, "bag", reason="lists of words")]
            return [Column(name, "ignore", reason=f"values of several types, one of them {type(first).__name__}")]
        return [_texts(name, looked.codes(), "values of several types")]
    kind = raw.type.value_type if pa.types.is_dictionary(raw.type) else raw.type
    if raw.null_count == len(raw):
        return [Column(name, "ignore", reason="missing in every row")]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_lists(name, raw)]
    if pa.types.is_map(kind):
        return [Column(name, "bag", reason="maps of word and count")]
    if pa.types.is_struct(kind) or pa.types.is_interval(kind) or is_bytes(kind):
        return [Column(name, "ignore", reason=f"values of type {kind}"[:80])]
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _dates(name, raw, "dates")
    if pa.types.is_boolean(kind):
        return [_texts(name, looked.codes(), "true or false")]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return [_numbers(name, looked.numbers(name, ("",)))]
    return _from_text(name, looked, declared=pa.types.is_dictionary(raw.type), written=written)


def _matrix(name: str, raw: Any) -> Column:
    width = int(raw.shape[1])
    if scipy.sparse.issparse(raw):
        if raw.nnz == 0 or raw.data.min() >= 0:
            return Column(name, "bag", width=width, reason=f"a sparse matrix of {width} columns, none negative")
        return Column(name, "vector", width=width, reason=f"a sparse matrix of {width} columns, some negative")
    return Column(name, "vector", width=width, reason=f"a matrix of {width} columns")


def _lists(name: str, raw: Any) -> Column:
    items = raw.type.value_type
    if pa.types.is_integer(items) or pa.types.is_floating(items):
        if pa.types.is_fixed_size_list(raw.type):
            return Column(name, "vector", width=raw.type.list_size, reason=f"vectors of {raw.type.list_size} numbers")
        lengths = pc.unique(pc.list_value_length(raw).drop_null()).to_pylist()
        if len(lengths) == 1:
            return Column(name, "vector", width=lengths[0], reason=f"vectors of {lengths[0]} numbers")
        return Column(name, "ignore", reason=f"lists of numbers of {len(lengths)} different lengths")
    return Column(name, "bag", reason="lists of words")


def _dates(name: str, raw: Any, what: str) -> list[Column]:
    where = Where(name, 0)
    hours = date_part(raw, "hour", where, ("",))
    has_hours = len(set(hours.indices.drop_null().to_pylist())) > 1
    days = number(date_part(raw, "days", where, ("",)), where)
    out = date_columns(name, hour=has_hours, reason=f"{what}, split into parts")
    cells = Cells.fitted(days[~np.isnan(days)])
    return [Column(**{**vars(c), "cells": cells}) if c.part == "days" else c for c in out]


def _numbers(name: str, x: Ordered, missing: tuple[str, ...] = ()) -> Column:
    there, rows = x.values, x.rows
    if len(there) == 0:
        return Column(name, "ignore", reason="missing in every row")
    distinct = len(x.distinct())
    whole = bool(np.all(there == np.rint(there)))
    low, high = (canon.number_text(float(v)) for v in (there[0], there[-1]))
    if distinct == 1:
        return Column(name, "ignore", reason=f"the same number, {low}, in every row")
    span = float(there[-1]) - float(there[0])
    if whole and distinct == rows >= _FEW_ROWS and (span < 2 * rows or _ID_NAME.search(name)):
        return Column(name, "ignore", reason=f"an id: a whole number of its own in each of {rows} rows")
    what = f"whole numbers, {distinct} different" if whole else "numbers"
    marks = f"; {excerpt(missing)} read as missing" if missing else ""
    gone = x.absent
    share = f", missing in {canon.share_of(gone, rows)}" if gone and not marks else ""
    return Column(
        name,
        "number",
        cells=Cells.fitted(there),
        missing=missing,
        reason=f"{what} from {low} to {high}{share}{marks}",
    )


def _from_text(name: str, looked: Looked, declared: bool, written: bool) -> list[Column]:
    """A column of texts: dates, numbers, an id, free text or a category."""
    seen = None if declared else looked.long_texts()
    if seen is not None and seen.alone > 0.5 * seen.rows and seen.words >= _SURELY_TEXT and _only_text(seen.some):
        return [free_text(name, seen.some, seen.words)]
    codes = looked.codes(("",))
    values = codes.slots
    if values and all(map(is_iso, values)):
        return _dates(name, pa.array([codes.text(i) for i in range(codes.rows)]), "dates written as text")
    plain = [v for v in values if v not in _ANY_MARK]
    if not declared and plain and all(map(is_number, plain)):
        marks = tuple(m for m in MARKS if m in values)
        if marks or written or len(plain) > 30:
            return [_numbers(name, looked.numbers(name, ("", *marks)), marks)]
    if not declared:
        warn_of_other(name, plain)
    return [_texts(name, codes, "text", declared)]


def _only_text(some: Sequence[str]) -> bool:
    """Whether some values show that a column is neither dates nor numbers, nor looks like them."""
    plain = [v for v in some if v not in _ANY_MARK]
    return not (all(map(is_iso, some)) or all(map(is_number, plain)) or is_other(plain))


def _texts(name: str, codes: Codes, what: str, declared: bool = False) -> Column:
    there = codes.codes[codes.codes >= 0]
    count = np.bincount(there, minlength=len(codes.slots))
    distinct = int(np.count_nonzero(count))
    if distinct == 0:
        return Column(name, "ignore", reason="missing in every row")
    if distinct == 1:
        return Column(
            name,
            "ignore",
            reason=f"the same value, {codes.slots[int(np.argmax(count))][:40]!r}, in every row",
        )
    alone = int(np.count_nonzero(count == 1))
    if not declared and len(there) >= _FEW_ROWS and alone > 0.5 * len(there):
        some = some_of(codes.slots)
        words = float(np.mean([len(text.split()) for text in some]))
        if words >= 3:
            return free_text(name, some, words)
        if not _ID_NAME.search(name) and are_names(some):
            return names(name, distinct)
        return Column(name, "ignore", reason=f"nearly an id: {alone} of {len(there)} rows have a value of their own")
    few = np.flatnonzero(count >= np.sort(count)[-3:][0]).tolist()
    shown = sorted(codes.slots[i] for i in sorted(few, key=lambda i: (-count[i], codes.slots[i]))[:3])
    more = ", …" if distinct > 3 else ""
    gone = codes.rows - len(there)
    share = f"; missing in {canon.share_of(gone, codes.rows)}" if gone else ""
    listed = ", ".join(s[:24] for s in shown)
    return Column(name, "category", reason=f"{what}, {distinct} different values: {listed}{more}{share}")
