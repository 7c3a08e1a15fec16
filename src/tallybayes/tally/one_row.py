"""What one row adds to a tally: exact amounts by column, sheet and slot, in plain Python where the values are plain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from ..data import encode
from ..data.batch import one_row
from ..data.blocks import Groups
from ..data.onevalue import NotPlain, plain_number, plain_text
from ..data.schema import Column, Schema
from .slotindex import Amounts, SlotIndex

_ONE = (1,)


class Words(Counter[str]):
    """How often each word of a text occurs: under each its occurrences and a one for the row are counted."""

    def amounts(self) -> dict[str, Amounts]:
        """The same as amounts by slot."""
        return {word: (n, 1) for word, n in self.items()}


Touched = tuple[str, str, Mapping[str, Amounts] | Words]  # column ("" for the rows), sheet, amounts by slot


def checked(schema: Schema, row: Mapping[Any, Any]) -> dict[str, Any]:
    """The row by the names of its columns, refused where it cannot be read; absent columns are warned of."""
    out = dict(row)
    if {*map(type, out)} != {str}:
        out = {name: column[0] for name, column in one_row(row).columns.items()}
    label_of(schema, out)
    if any(name not in out for column in schema.counted for name in column.inputs):
        encode.check_columns(schema, one_row(out))
    try:
        for column in schema.counted:
            _read(column, out.get(column.reads), schema)
    except NotPlain:
        encode.blocks(schema, one_row(out))
    return out


def label_of(schema: Schema, row: Mapping[str, Any]) -> str | None:
    """The class of the row; None if it has none."""
    try:
        return plain_text(row[schema.target], frozenset(schema.missing))
    except (NotPlain, KeyError):
        return encode.labels(schema, one_row(row)).text(0)


def row_amounts(schema: Schema, row: Mapping[str, Any]) -> list[Touched]:
    """Everything that a row adds under its class; first the row itself."""
    out: list[Touched] = [("", "rows", {"": (1, 1)})]
    others = []
    for column in schema.counted:
        try:
            out += _simple(column, _read(column, row.get(column.reads), schema))
        except NotPlain:
            others.append(column.name)
    if others:
        blocks = encode.blocks(schema, one_row(row))
        alone = Groups(np.zeros(1, dtype=np.int64), 1)
        for name in others:
            for sheet, counted in blocks[name].sum_by(alone).items():
                amounts = SlotIndex(counted).of(0)
                text = schema[name].kind == "text" and sheet == "words"
                out.append((name, sheet, Words({slot: n for slot, (n, _) in amounts.items()}) if text else amounts))
    return out


def _read(column: Column, value: Any, schema: Schema) -> Any:
    """A text, number or words of a plain column; None if missing. Everything else is not plain."""
    if column.part is not None or column.of is not None:
        raise NotPlain
    marks = frozenset((*schema.missing, *column.missing))
    if column.kind == "category":
        return plain_text(value, marks)
    if column.kind == "number":
        return plain_number(value, marks - {""})
    cut = column.text
    if cut is None or column.levels is not None or cut.hash_bits is not None or type(value) not in (str, type(None)):
        raise NotPlain
    return None if value is None or value in marks - {""} else value


def _simple(column: Column, value: Any) -> Iterator[Touched]:
    """The amounts of a plain column."""
    name = column.name
    if value is None:
        return
    if column.kind == "category":
        yield name, "values", {value: _ONE}
    elif column.kind == "number":
        x: Any = int(value) if value.is_integer() else Fraction(value)
        yield name, "moments", {"": (1, x, x * x)}
        if column.cells is not None:
            (slot,) = column.cells.slot_names(np.array([column.cells.code(value)]))
            yield name, "cells", {slot: _ONE}
    else:
        assert column.text is not None
        yield name, "rows", {"": _ONE}
        yield name, "words", Words(column.text.tokens(value))
