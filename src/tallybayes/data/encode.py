"""From a batch of raw columns to blocks, by the schema: the road that counting and scoring share.

One value read in plain Python, as a column of many would read it; whatever is not plain is left to the column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..base import canon
from ..base.arrays import Floats, Ints
from ..base.errors import DataError, did_you_mean, excerpt, unknown, warn
from ..base.lazy import scipy
from .blocks import Bag, Block, Codes, Numbers
from .matrices import bag, vector, whole_columns
from .pairs import Side, paired
from .schema import Column, Schema
from .sources import MATRIX, WEIGHTS, Batch, Wanted
from .text.tokens import text_array
from .texts import Texts
from .values import Where, category, check_flat, date_part, number

_LIGHT = 2.0**-12  # in units of 2⁻³² a lighter weight could be off by more than 1e-6 of itself


def blocks(schema: Schema, batch: Batch) -> dict[str, Block]:
    """A block per counted column; a column that the batch does not have is missing in every row."""
    categories = [c for c in schema.counted if c.kind == "category" and c.part is None]
    out: dict[str, Block] = {}
    whole = whole_columns(batch.columns.get(MATRIX), categories, schema.missing) if categories else {}
    sides: dict[Side, Codes | Numbers] = {}
    for column in schema.counted:
        if column.of is not None:
            for side in column.of:
                if side not in sides:
                    sides[side] = _side(side, batch, schema.missing)
            out[column.name] = paired(sides[column.of[0]], sides[column.of[1]], column.of)
        elif column.name in whole:
            out[column.name] = whole[column.name]
        else:
            out[column.name] = block(column, batch.get(column.reads), batch, schema.missing)
    return out


def _side(side: Side, batch: Batch, missing: Sequence[str]) -> Codes | Numbers:
    """One column of a pair, read as it would be by itself."""
    column = Column(side.source, side.kind, part=side.part, missing=side.missing)
    out = block(column, batch.get(side.source), batch, missing)
    assert isinstance(out, (Codes, Numbers))
    return out


def bags(blocks: dict[str, Block]) -> dict[str, Block]:
    """The same blocks with texts cut into bags of tokens."""
    return {name: block.bag if isinstance(block, Texts) else block for name, block in blocks.items()}


_MOST_GUESSES = 8  # absent columns whose nearest name is looked for: as many as the message shows


def check_columns(schema: Schema, batch: Batch) -> None:
    """Warn of columns that are absent, with the nearest name; refuse a batch that has none of them."""
    wanted = dict.fromkeys(name for c in schema.counted for name in c.inputs)
    absent = [name for name in wanted if name not in batch]
    if not absent:
        return
    spare = [name for name in batch.names() if name not in wanted]
    guesses = ((name, did_you_mean(name, spare)) for name in absent[:_MOST_GUESSES])
    near = [f"{name!r}: {guess}" for name, guess in guesses if guess]
    if len(absent) == len(wanted):
        raise DataError(
            f"none of the columns {excerpt(wanted)} is in the data, which have {excerpt(batch.names()) or 'none'}",
            hint=(near[0] + "columns" if near else "columns")
            + " are found by name; rename them to those of the schema.",
        )
    warn(f"columns not in the data are taken as missing: {excerpt(absent)}. {' '.join(near)}".strip())


def wanted(schema: Schema, *, labelled: bool = True) -> Wanted:
    """What of the data is looked at under this schema: with labels to count, without to predict.

    Columns read in two ways are looked at as they are, and so are numbers with marks for missing ones, such as -999.
    """
    kinds: dict[str, str] = {}

    def look(source: str, kind: str, part: str | None = None, missing: Sequence[str] = ()) -> None:
        marked = kind == "number" and any((*schema.missing, *missing))
        kind = "date" if part else "" if marked else kind
        kinds[source] = kind if kinds.get(source, kind) == kind else ""

    for column in schema.counted:
        if column.of is None:
            look(column.reads, column.kind, column.part, column.missing)
        for side in column.of or ():
            look(side.source, side.kind, side.part, side.missing)
    if labelled:
        look(schema.target, "category")
        if schema.weights:
            look(schema.weights, "number")
    return kinds


def labels(schema: Schema, batch: Batch) -> Codes:
    """The class of each row, −1 where there is none."""
    if schema.target not in batch:
        found = f"there is no target column {schema.target!r}; the data have {excerpt(batch.names()) or 'no columns'}"
        hint = "name the column to predict with target='…'."
        raise unknown(DataError, found, schema.target, batch.names(), hint)
    check_flat(batch[schema.target], schema.target)
    return category(batch[schema.target], schema.missing, written=batch.written)


@dataclass(frozen=True)
class Labelled:
    """The rows of a batch that have a label and weigh something."""

    classes: tuple[str, ...]  # canonical text, sorted
    labels: Ints  # which class each row belongs to
    weights: Floats | None
    blocks: dict[str, Block]
    rows: Ints  # where in the batch each row stood
    skipped: int  # rows without a label


def labelled(schema: Schema, batch: Batch, *, first: bool = False) -> Labelled:
    """The rows that can be counted, encoded; `first` also checks that the batch has the schema's columns."""
    given = labels(schema, batch)
    if first and schema.counted and batch.rows:
        check_columns(schema, batch)
    weight = weights(schema, batch)
    encoded = blocks(schema, batch) if schema.counted else {}
    counted = np.ones(batch.rows, dtype=bool) if weight is None else weight > 0
    kept = (given.codes >= 0) & counted
    skipped = int(np.count_nonzero((given.codes < 0) & counted))
    if not kept.all():
        given = given.take(kept)
        encoded = {name: block.take(kept) for name, block in encoded.items()}
        weight = None if weight is None else weight[kept]
    order = np.argsort(np.array(given.slots, dtype=object), kind="stable") if given.slots else np.zeros(0, int)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    classes = tuple(given.slots[i] for i in order.tolist())
    return Labelled(classes, number[given.codes], weight, encoded, np.flatnonzero(kept), skipped)


def weights(schema: Schema, batch: Batch) -> Floats | None:
    """The weight of each row in whole units, or None where every row weighs one.

    The unit is 2⁻³², the first limb below one; a row that weighs less than 2⁻¹² is counted in the next, 2⁻⁶⁴.
    """
    if WEIGHTS in batch.columns:
        raw, name = batch.columns[WEIGHTS], "weights"
    elif schema.weights is None:
        return None
    elif schema.weights in batch:
        raw, name = batch[schema.weights], schema.weights
    else:
        hint = "the schema says that this column holds the weights."
        raise unknown(DataError, f"there is no weights column {schema.weights!r}", schema.weights, batch.names(), hint)
    where = Where(name, batch.start, batch.place)
    given = number(raw, where, schema.missing)
    bad = np.flatnonzero(~(given >= 0))
    if len(bad):
        row = int(bad[0])
        found = "the weight is missing" if np.isnan(given[row]) else f"the weight {given[row]:g} is negative"
        raise where.error(row, found, "a weight is a number of at least 0; use forget(rows) to take rows away.")
    if (given >= 2.0**31).any():
        row = int(np.argmax(given >= 2.0**31))
        raise where.error(row, f"the weight {given[row]:g} is over 2^31", "divide all weights by one factor.")
    limb = np.where(given < _LIGHT, 64, 32)
    kept = np.ldexp(np.rint(np.ldexp(given, limb)), -limb)
    rounded = np.flatnonzero(np.abs(kept - given) > 1e-6 * given)
    if len(rounded):
        row = int(rounded[0])
        raise where.error(
            row,
            f"the weight {given[row]:g} is too small to be counted in units of 2⁻⁶⁴",
            "multiply all weights by one factor so that the smallest is above 1e-13.",
        )
    return kept


def block(column: Column, raw: Any, batch: Batch, missing: Sequence[str]) -> Block:
    """The block of one column of a batch; `raw` is None where the data do not have it."""
    where = Where(column.reads, batch.start, batch.place)
    missing = (*missing, *column.missing)
    if column.kind == "category" or column.part is not None:
        check_flat(raw, column.reads)
    if column.part is not None and raw is not None:
        raw = date_part(raw, column.part, where, missing)
    if column.kind == "category":
        if raw is None:
            return Codes([], np.full(batch.rows, -1, dtype=np.int64))
        return category(raw, missing, written=batch.written)
    if column.kind == "number":
        values = np.full(batch.rows, np.nan) if raw is None else number(raw, where, missing)
        return Numbers(values, column.cells)
    if column.kind == "vector":
        return vector(raw, column, batch.rows, where)
    if column.kind == "text":
        texts = pa.nulls(batch.rows, pa.large_string()) if raw is None else text_array(raw, missing)
        assert column.text is not None
        return Texts(texts, column.text, column.levels)
    if raw is None:
        absent = np.zeros(batch.rows, dtype=bool)
        return Bag([], scipy.sparse.csr_array((batch.rows, 0)), absent, column.levels)
    return bag(raw, column, where)


def is_row(schema: Schema, given: Mapping[Any, Any]) -> bool:
    """Whether a dict is one row, told from a dict of columns by what stands in the columns of the schema."""
    values = ((c.kind, given[n]) for c in schema.counted for n in c.inputs if given.get(n) is not None)
    return any(_is_one_value(kind, value) for kind, value in values)


def _is_one_value(kind: str, value: Any) -> bool:
    """Whether this is the value of one row: a lone number or text; for a bag or vector a flat list, or a dict."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        return True
    if kind not in ("bag", "vector"):
        return False
    if isinstance(value, Mapping):
        return True
    if hasattr(value, "shape"):
        return len(value.shape) == 1
    return all(isinstance(v, str) or not hasattr(v, "__len__") for v in value if v is not None)


_NUMBERS = frozenset((float, int, bool, np.float64, np.float32, np.int64, np.int32))
_SCALARS = _NUMBERS | {np.bool_, np.str_}


class NotPlain(Exception):
    """The value has to go the long way, which knows more types and has the messages."""


def plain_text(value: Any, marks: frozenset[str]) -> str | None:
    """The canonical text of a category's value; None if missing."""
    if type(value) is not str:
        if value is None:
            return None
        if type(value) not in _SCALARS:
            raise NotPlain
    text = canon.text(value)
    return None if text in marks else text


def plain_number(value: Any, marks: frozenset[str]) -> float | None:
    """The number; None if missing. The empty text, which is no number, need not be among the marks."""
    if type(value) is not float:
        if value is None:
            return None
        if type(value) not in _NUMBERS:
            raise NotPlain
    if marks and canon.text(value) in marks:
        return None
    try:
        x = float(value)
    except OverflowError:
        raise NotPlain from None
    if x - x != 0.0:
        if x != x:
            return None
        raise NotPlain  # an infinity, which is refused
    return x


def block_of_one(column: Column, value: Any, missing: Sequence[str]) -> Any:
    """Any other value as a block of one row."""
    several = column.kind == "bag" and type(value) is dict
    if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) and not several:
        raise NotPlain  # a column of a table, perhaps
    return block(column, [value], Batch({column.reads: [value]}, 1), missing)
