"""A tally ↔ a plain table: a row per (column, sheet, slot, class, limb) and a column per amount.

An amount is Σ value · 2^(32·limb) over its rows, so whole counts below 2^32 are just the rows with `limb = 0`. Every
amount adds: the rows of two tables under one schema, grouped by the five keys and summed, are the table of the sum.
Values that have outgrown 32 bits, zeros and rows in any order are brought to the canonical form on the way back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base.arrays import Ints
from ..base.arrow import array, numpy_of, scalar
from ..base.errors import ModelFileError, SchemaError, excerpt
from ..data.blocks import WORDS, N
from ..data.schema import Schema
from ..exact.counts import Counts
from ..exact.moments import MOMENTS
from ..exact.sheet import Sheet
from .guard import ROWS
from .tally import Tally, without_empty_classes
from .together import TOGETHER

KEYS = ("column", "sheet", "slot", "class", "limb")
AMOUNTS = ("n", "x", "xx", "documents", "rows")  # always there, empty where a sheet has no such amount
LABELS = "labels"  # the sheet, under the target's name, of the rows of each class
SKIPPED = "skipped"  # likewise, how many rows had no label
_OF_TARGET = {LABELS: "rows", "receipts": "receipts", TOGETHER: TOGETHER}  # sheet in the file → sheet of Tally.labels
_AMOUNTS_OF = {  # of the sheets that kinds of this package add; those of other kinds say it in the file
    LABELS: ROWS, "receipts": N, TOGETHER: N, SKIPPED: N, "values": N, "cells": N, "levels": N, "rows": N,
    "words": WORDS, "moments": MOMENTS,
}  # fmt: skip
_FURTHEST = 256  # limbs: a product of two weights and two float64 values stays below 2^(32·200)
_WHOLE = float(1 << 53)


def table_of(tally: Tally) -> pa.Table:
    """The rows of a tally, sorted by column (as in the schema), sheet, slot, limb and class."""
    target = tally.schema.target
    parts = [(target, name, tally.labels.sheets[own]) for name, own in _OF_TARGET.items() if own in tally.labels.sheets]
    parts += [
        (name, sheet, counts.sheets[sheet]) for name, counts in tally.columns.items() for sheet in sorted(counts.sheets)
    ]
    skipped = [(target, SKIPPED, _skipped_sheet(tally.skipped))] if tally.skipped else []
    classes = [*tally.classes, ""]  # skipped rows have no class
    amounts = [*AMOUNTS, *sorted({a for _, _, s in parts for a in s.amounts} - set(AMOUNTS))]
    try:
        return _concatenated([*parts, *skipped], classes, amounts)
    except UnicodeEncodeError as error:
        raise SchemaError(
            f"a column, class or value holds half a character ({error.reason}), which no file can",
            hint="repair the name: a lone surrogate comes from bytes that were not UTF-8.",
        ) from None


def sheets_of(tally: Tally) -> dict[str, list[str]]:
    """The amounts of every sheet of the table, in order."""
    out = {
        name: list(tally.labels.sheets[own].amounts) for name, own in _OF_TARGET.items() if own in tally.labels.sheets
    }
    for counts in tally.columns.values():
        out.update({name: list(sheet.amounts) for name, sheet in counts.sheets.items()})
    return dict(sorted(out.items()))


def _skipped_sheet(skipped: int) -> Sheet:
    sign, size, limbs = (-1 if skipped < 0 else 1), abs(skipped), []
    while size:
        limbs.append(sign * (size & 0xFFFFFFFF))
        size >>= 32
    zero, n = np.zeros(len(limbs), dtype=np.int64), np.array(limbs, dtype=np.int64)
    return Sheet(("n",), array([""], pa.string()), zero, np.arange(len(limbs)), zero - 1, n[:, None])


def _concatenated(parts: list[tuple[str, str, Sheet]], classes: list[str], amounts: list[str]) -> pa.Table:
    sizes = [len(s) for _, _, s in parts]
    ordered = [s.in_order for _, _, s in parts]

    def joined(pieces: list[Any], kind: Any) -> Any:
        return pa.concat_arrays(pieces) if pieces else array([], kind)

    def named(texts: list[str], codes: Ints) -> Any:
        # each text once: where one is there twice, Parquet's writer fills its room with whatever was in memory
        number = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        once = np.array([number[text] for text in texts], dtype=np.int32)
        return pa.DictionaryArray.from_arrays(array(once[codes]), array(list(number), pa.string()))

    label = np.concatenate([np.zeros(0, dtype=np.int64), *(s.label for s in ordered)]) % max(len(classes), 1)
    which = np.repeat(np.arange(len(parts)), sizes)
    limb = np.concatenate([np.zeros(0, dtype=np.int64), *(s.limb for s in ordered)])
    columns: dict[str, Any] = {
        "column": named([c for c, _, _ in parts], which),
        "sheet": named([s for _, s, _ in parts], which),
        "slot": joined([s.slots.take(array(s.slot)) for s in ordered], pa.string()),
        "class": named(classes, label),
        "limb": array(limb.astype(np.int32)),
    }
    for amount in amounts:
        columns[amount] = joined(
            [
                array(s.amount[:, s.amounts.index(amount)]) if amount in s.amounts else pa.nulls(len(s), pa.int64())
                for s in ordered
            ],
            pa.int64(),
        )
    return pa.table(columns)


def to_ipc(tally: Tally) -> bytes:
    """The table as an Arrow stream that knows its schema: how a tally travels between processes that trust each other.

    >>> from tallybayes.data.schema import Column
    >>> tally = Tally.of(Schema([Column("Sky", "category")], target="Play"), {"Sky": ["sunny"], "Play": ["yes"]})
    >>> from_ipc(to_ipc(tally)) == tally
    True
    """
    about = {
        "schema": json.dumps(tally.schema.to_dict()),
        "sheets": json.dumps(sheets_of(tally)),
        "least_rows": str(tally.least_rows),
    }
    table = table_of(tally).replace_schema_metadata(about)
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    raw: bytes = out.getvalue().to_pybytes()
    return raw


def from_ipc(raw: bytes) -> Tally:
    """The tally that `to_ipc` sent."""
    with pa.ipc.open_stream(pa.py_buffer(raw)) as reader:
        table = reader.read_all()
    about = table.schema.metadata
    tally = tally_of(Schema.from_dict(json.loads(about[b"schema"])), table, json.loads(about[b"sheets"]))
    return replace(tally, least_rows=int(about[b"least_rows"]))


# ---- and back


def tally_of(schema: Schema, table: pa.Table, sheets: Mapping[str, list[str]] | None = None) -> Tally:
    """The tally of a table under a schema: rows in any order, limbs not yet carried, equal keys not yet added.

    `sheets` names the amounts of each sheet; without it they are those that are filled in.
    """
    _check_columns(table)
    names = [n for n in table.column_names if n not in KEYS]
    amount = np.stack([_whole(table[n], n) for n in names], axis=1)
    filled = np.stack([~numpy_of(table[n].combine_chunks().is_null()) for n in names], axis=1)
    if float(np.abs(amount.astype(np.float64)).sum()) >= 2.0**62:
        raise ModelFileError("the amounts of the table are too large to be added", hint="add fewer files at once.")
    limb = _whole(table["limb"], "limb")
    if len(limb) and max(-int(limb.min()), int(limb.max())) > _FURTHEST:
        raise ModelFileError("a limb is beyond what numbers can have", hint="the file was not written by tallybayes.")
    (columns, column), (kinds, kind), (slots, slot), (classes, label) = (_coded(table[k], k) for k in KEYS[:4])
    order = np.argsort(column * max(len(kinds), 1) + kind, kind="stable")
    cuts = np.flatnonzero(np.diff(column[order]) | np.diff(kind[order])) + 1
    found: dict[tuple[str, str], Sheet] = {}
    class_order, class_number = _sorted_numbers(classes.to_pylist())
    for rows in np.split(order, cuts) if len(order) else []:
        name, sheet = str(columns[int(column[rows[0]])]), str(kinds[int(kind[rows[0]])])
        said = (sheets or {}).get(sheet) or [a for i, a in enumerate(names) if filled[rows, i].any()]
        own = _AMOUNTS_OF.get(sheet, said)
        others = [i for i, a in enumerate(names) if a not in own]
        twice = len(set(own)) < len(own)
        if not own or twice or not {*said} <= {*own} <= {*names} or amount[rows][:, others].any():
            raise ModelFileError(
                f"the sheet {sheet[:60]!r} of column {name[:60]!r} has amounts that do not belong to it",
                hint="keep the columns as they are in the file, and sum each by itself.",
            )
        _check_span(limb[rows], slot[rows] * max(len(classes), 1) + label[rows], len(limb))
        used, codes = np.unique(slot[rows], return_inverse=True)
        found[name, sheet] = Sheet.of_entries(
            tuple(own), slots.take(array(used)), codes.astype(np.int64), limb[rows], class_number[label[rows]],
            amount[rows][:, [names.index(a) for a in own]],
        )  # fmt: skip
    return _assembled(schema, tuple(class_order), found)


def _check_span(limb: Ints, group: Ints, rows: int) -> None:
    """Carrying lays every number of a sheet out over all limbs between its lowest and highest: not without limit."""
    span = int(limb.max()) - int(limb.min()) + 1
    if span > 8 and span * len(np.unique(group)) > max(1 << 27, 64 * rows):
        raise ModelFileError("numbers of too many sizes in one sheet", hint="the file was not written by tallybayes.")


def _assembled(schema: Schema, classes: tuple[str, ...], found: dict[tuple[str, str], Sheet]) -> Tally:
    target = schema.target
    skipped = found.pop((target, SKIPPED), None)
    labels = {own: found.pop((target, name)) for name, own in _OF_TARGET.items() if (target, name) in found}
    columns: dict[str, dict[str, Sheet]] = {c.name: {} for c in schema.counted}
    for (name, sheet), entries in found.items():
        if name not in columns:
            raise ModelFileError(
                f"the table has a column {name[:60]!r}, the schema has {excerpt(columns) or 'none'}",
                hint="give the schema with which the tables were counted.",
            )
        adds = schema[name].about.sheets
        if adds and sheet not in adds:
            raise ModelFileError(
                f"column {name[:60]!r} is a {schema[name].kind}, which adds no sheet {sheet[:60]!r}",
                hint="give the schema with which the tables were counted.",
            )
        columns[name][sheet] = entries
    count = 0
    if skipped is not None and len(skipped):
        values, exponent = skipped.exact("n", int(skipped.label.max()) + 1)
        count = int(values.sum()) << exponent
    return without_empty_classes(
        Tally(schema, classes, _counts(labels), {n: _counts(s) for n, s in columns.items()}, count)
    )


def _counts(sheets: Mapping[str, Sheet]) -> Counts:
    return Counts({name: sheet for name, sheet in sheets.items() if len(sheet)})


def _sorted_numbers(texts: list[str]) -> tuple[list[str], Ints]:
    order = sorted(texts)
    at = {t: i for i, t in enumerate(order)}
    return order, np.array([at[t] for t in texts], dtype=np.int64)


def _check_columns(table: pa.Table) -> None:
    absent = [k for k in (*KEYS, "n") if k not in table.column_names]
    if absent:
        raise ModelFileError(
            f"the table has no column {excerpt(absent)}; it has {excerpt(table.column_names) or 'none'}",
            hint="a tally is a table of " + ", ".join(KEYS) + " and the amounts: see docs/model_file.md.",
        )


def _coded(column: Any, name: str) -> tuple[Any, Ints]:
    """The distinct texts of a column, and the number of each row's."""
    if not (
        pa.types.is_dictionary(column.type) or pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    ):
        raise ModelFileError(
            f"the column {name!r} holds values of type {column.type}", hint="it holds texts: write it as a string."
        )
    if column.null_count:
        raise ModelFileError(f"the column {name!r} has empty fields", hint="every row has all five keys.")
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    coded = pa.chunked_array(coded, coded.type).unify_dictionaries().combine_chunks()
    if isinstance(coded, pa.ChunkedArray):  # combine_chunks leaves none as none
        coded = array([], coded.type)
    texts = coded.dictionary.cast(pa.string())
    codes = numpy_of(coded.indices).astype(np.int64)
    once = pc.unique(texts)
    if len(once) < len(texts):  # a dictionary may name a text twice
        codes, texts = numpy_of(pc.index_in(texts, value_set=once)).astype(np.int64)[codes], once
    return texts, codes


def _whole(column: Any, name: str) -> Ints:
    """int64 values, 0 for empty; floats are taken where they hold whole numbers, as sums of DuckDB and pandas do."""
    column = column.combine_chunks()  # a chunked array asks pandas for its NumPy form
    if pa.types.is_floating(column.type):
        floats = np.nan_to_num(numpy_of(column), nan=0.0)
        if (np.abs(floats) > _WHOLE).any() or (floats != np.rint(floats)).any():
            raise ModelFileError(
                f"the column {name!r} holds numbers that are not whole, or too large to be exact as floats",
                hint=f'sum as integers: CAST(SUM("{name}") AS BIGINT).',
            )
        return np.asarray(floats.astype(np.int64))
    if pa.types.is_decimal(column.type) or pa.types.is_integer(column.type):
        try:
            whole = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise ModelFileError(
                f"the column {name!r} holds a number beyond 64 bits: {str(error)[:200]}",
                hint="add fewer files at once.",
            ) from None
        return np.asarray(numpy_of(pc.fill_null(whole, scalar(0))).astype(np.int64))
    raise ModelFileError(f"the column {name!r} holds values of type {column.type}", hint="it holds whole numbers.")
