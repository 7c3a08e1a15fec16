"""From a batch of raw columns to blocks, by the schema: the road that counting and scoring share.

How a column is read is said by its kind (`kinds`); here are the rows it is read of, their labels and weights, what of
the data is looked at at all, and how one row is told from a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..base import canon
from ..base.arrays import Floats, Ints
from ..base.arrow import texts
from ..base.errors import DataError, did_you_mean, excerpt, unknown, warn
from .batch import one_row
from .blocks import Block, Codes, Numbers
from .columns import with_points
from .dates import date_part, unit_numbers
from .matrices import whole_columns
from .pairs import PairColumn, paired
from .schema import Column, Schema, column_of
from .sources import MATRIX, SHARES, WEIGHTS, Batch, Wanted
from .spelling import Spelling, folded, spelled
from .texts import Texts
from .values import NotPlain, Where, category, check_flat, number

_ABOVE = 20  # rows that may stand above the names of a file
_LIGHT = 2.0**-12  # in units of 2⁻³² a lighter weight could be off by more than 1e-6 of itself


@dataclass(frozen=True)
class BatchContext:
    """The rows of a batch, and what turns their columns into blocks."""

    batch: Batch
    marks: Sequence[str]  # texts that mean "missing" in every column
    _sides: dict[PairColumn, Codes | Numbers] = field(default_factory=dict)  # one column may be part of many
    _read: dict[Any, Any] = field(default_factory=dict)  # and be spelled: a date has several parts

    @property
    def count(self) -> int:
        """How many rows."""
        return self.batch.rows

    @property
    def written(self) -> bool:
        """Whether they come from a file without types, where every value is a text."""
        return self.batch.written

    def where(self, column: Column) -> Where:
        """Where the values of a column stand, for messages."""
        return Where(column.reads, self.batch.start, self.batch.place)

    def missing(self, column: Column) -> Sequence[str]:
        """The texts that mean "missing" in a column; a part of a date is missing where the date is."""
        return () if column.part is not None else (*self.marks, *column.missing)

    def block(self, column: Column) -> Block:
        """The block of one column; a column that the batch does not have is missing in every row."""
        raw, encode = self.batch.get(column.reads), column.about.encode
        assert encode is not None
        if column.part is not None and raw is not None:
            check_flat(raw, self.where(column))
        if column.spelling is not None and raw is not None and (column.part or column.like == "number"):
            raw = self._spelled(column, raw)
        elif column.spelling is not None and column.spelling.decimal == ",":
            raw = with_points(self.batch.columns.get(column.reads, raw))
        if column.part is not None and raw is not None:
            raw = date_part(raw, column.part, self.where(column), (*self.marks, *column.missing))
        return encode(column, raw, self)

    def _spelled(self, column: Column, raw: Any) -> Any:
        """The cells of a column by their spelling, read once for all columns that read it so."""
        spelling = column.spelling
        assert spelling is not None
        marks, dates = (*self.marks, *column.missing), column.part is not None
        if self.batch.decimal == "," == spelling.decimal:
            if spelling.unit:
                raw = self.batch.columns.get(column.reads, raw)
            else:  # the file has been read so
                spelling = Spelling(odd=spelling.odd)
        key = column.reads, spelling, marks, dates
        if key not in self._read:
            self._read[key] = spelled(raw, spelling, self.where(column), marks, dates, self.batch.odd)
        return self._read[key]

    def side(self, side: PairColumn) -> Codes | Numbers:
        """A column that another is made of, read as it would be by itself."""
        if side not in self._sides:
            block = self.block(column_of(side))
            assert isinstance(block, (Codes, Numbers))
            self._sides[side] = block
        return self._sides[side]

    def paired(self, sides: tuple[PairColumn, ...]) -> Codes:
        """Two columns as one."""
        return paired(self.side(sides[0]), self.side(sides[1]), sides)


def blocks(schema: Schema, batch: Batch) -> dict[str, Block]:
    """A block per counted column; a column that the batch does not have is missing in every row."""
    categories = [c for c in schema.counted if c.kind == "category" and c.part is None and c.spelling is None]
    whole = whole_columns(batch.columns.get(MATRIX), categories, schema.missing) if categories else {}
    rows = BatchContext(batch, schema.missing)
    return {c.name: whole[c.name] if c.name in whole else rows.block(c) for c in schema.counted}


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


class Everything(dict[str, str]):
    """Every column, whatever it is called; of those named, the kind that they are looked at as."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return ""


def kept_as_written(schema: Schema, keep: Sequence[str] | None) -> Wanted:
    """What is looked at to predict and to keep some columns, None for all, beside the answers: those stay as written.

    A category is read by its texts anyway; a number would come back in another spelling.
    """
    own = {name: kind if kind == "category" else "" for name, kind in wanted(schema, labelled=False).items()}
    return Everything(own) if keep is None else {**wanted(schema, labelled=False), **{n: own.get(n, "") for n in keep}}


def wanted(schema: Schema, *, labelled: bool = True) -> Wanted:
    """What of the data is looked at under this schema: with labels to count, without to predict.

    Columns read in two ways are looked at as they are, and so are numbers with marks for missing ones, such as -999,
    or with a spelling of their own.
    """
    kinds: dict[str, str] = {}

    def look(
        source: str, kind: str, part: str | None = None, missing: Sequence[str] = (), spelling: Any = None
    ) -> None:
        marked = kind == "number" and (any((*schema.missing, *missing)) or spelling is not None)
        kind = "date" if part else "" if marked else kind
        kinds[source] = kind if kinds.get(source, kind) == kind else ""

    for column in schema.counted:
        for read in (column,) if column.of is None else map(column_of, column.of):
            look(read.reads, read.about.read_as, read.part, read.missing, read.spelling)
    if labelled:
        look(schema.target, "category")
        if schema.weights is not None:
            look(schema.weights, "number")
    return kinds


def _row_with(name: str, batch: Batch) -> int | None:
    """The first row of a file in which a cell is this name: perhaps the header, below a title."""
    cells = (texts(c[:_ABOVE]) for c in batch.columns.values() if isinstance(c, pa.Array))
    return min((column.index(name) for column in cells if name in column), default=None)


def labels(schema: Schema, batch: Batch) -> Codes:
    """The class of each row, −1 where there is none."""
    if schema.target not in batch:
        found = f"there is no target column {schema.target!r}; the data have {excerpt(batch.names()) or 'no columns'}"
        hint = f"name the column to predict with target='…', or call it {schema.target!r} in the data."
        if batch.written and batch.place is not None and (row := _row_with(schema.target, batch)) is not None:
            hint = f"{batch.place(batch.start + row)} holds {schema.target!r}: leave out what stands above the names."
        raise unknown(DataError, found, schema.target, batch.names(), hint)
    raw = batch[schema.target]
    if schema.label_type == "float" and _has_commas(schema, batch):
        raw = with_points(raw)
    check_flat(raw, Where(schema.target, batch.start, batch.place))
    codes = category(raw, schema.missing, written=batch.written)
    return folded(codes, schema.missing) if schema.fold else codes


def _has_commas(schema: Schema, batch: Batch) -> bool:
    """Whether a file without types is read as it stands, by a schema that was made of one with decimal commas."""
    if not batch.written or batch.decimal == ",":
        return False
    return any(c.spelling is not None and c.spelling.decimal == "," for c in schema.counted)


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
        given = _used(given)
    order = np.argsort(np.array(given.slots, dtype=object), kind="stable") if given.slots else np.zeros(0, int)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    classes = tuple(given.slots[i] for i in order.tolist())
    return Labelled(classes, number[given.codes], weight, encoded, np.flatnonzero(kept), skipped)


def _used(given: Codes) -> Codes:
    """The labels without classes whose rows have all gone."""
    there = np.bincount(given.codes, minlength=len(given.slots)) > 0
    if there.all():
        return given
    return Codes(
        [slot for slot, is_there in zip(given.slots, there, strict=True) if is_there],
        (np.cumsum(there) - 1)[given.codes],
    )


def weights(schema: Schema, batch: Batch) -> Floats | None:
    """The weight of each row in whole units, or None where every row weighs one.

    The unit is 2⁻³², the first limb below one; a row that weighs less than 2⁻¹² is counted in the next, 2⁻⁶⁴. A row
    that is shared out among classes is rounded to units of 2⁻³², and to nothing if it is lighter.
    """
    shares = batch.columns.get(SHARES)
    if shares is not None:
        alone = replace(batch, columns={n: c for n, c in batch.columns.items() if n != SHARES})
        whole = weights(schema, alone)
        heavy: Floats = shares if whole is None else shares * whole
        return np.asarray(np.ldexp(np.rint(np.ldexp(heavy, 32)), -32))
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
    given = number(with_points(raw) if _has_commas(schema, batch) else raw, where, schema.missing)
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


def periods(schema: Schema, batch: Batch, time: str, by: str) -> Ints:
    """The period of each row: the hour, day, week or month that a column of times says, or its whole numbers."""
    if time not in batch:
        hint = "time='…' names the column that says when a row was."
        raise unknown(DataError, f"there is no column {time!r} of times", time, batch.names(), hint)
    rows, where = BatchContext(batch, schema.missing), Where(time, batch.start, batch.place)
    like = next((c for c in schema.columns if c.reads == time), Column(time, "ignore"))
    raw, marks = batch[time], (*schema.missing, *like.missing)
    check_flat(raw, where)
    if like.spelling is not None and (like.part or like.like == "number"):
        raw = rows._spelled(like, raw)
    elif like.spelling is not None and like.spelling.date and by != "number":
        raw = spelled(raw, replace(like.spelling, odd=False), where, marks, dates=True)
    if by == "number":
        given = number(raw, where, marks)
        there = np.isfinite(given)
        if len(odd := np.flatnonzero(there & ((given != np.rint(given)) | (np.abs(given) >= 2.0**53)))):
            row = int(odd[0])
            raise where.error(row, f"{given[row]:g} is no whole number below 2^53", "number the periods 1, 2, 3, ….")
        found = np.where(there, given, 0.0).astype(np.int64)
    else:
        found, there = unit_numbers(raw, by, where, marks)
    if not there.all():
        row = int(np.argmin(there))
        raise where.error(row, "no time, so it belongs to no period", "fill it in, or leave such rows out.")
    return found


def is_row(schema: Schema, given: Mapping[Any, Any]) -> bool:
    """Whether a dict is one row, told from a dict of columns by what stands in the columns of the schema.

    Columns of lone values and the target tell it for sure; bags and vectors, of which a row has a list, if it has none.
    """
    flat = [given.get(n) for c in schema.counted if not c.about.lists for n in c.inputs]
    there = [v for v in (*flat, given.get(schema.target)) if v is not None]
    if there:
        return any(map(canon.is_one, there))
    lists = [v for c in schema.counted if c.about.lists and (v := given.get(c.reads)) is not None]
    if lists:
        return any(map(_is_one_list, lists))
    return any(map(canon.is_one, given.values()))  # nothing that is counted: a column is no lone value


def as_table(schema: Schema, data: Any) -> Any:
    """A dict that is one row, with lists in it that are a bag, a vector or not counted, as a table of one.

    Other data stay as they are: a dict of nothing but lone values is one row by itself, and lone values beside lists
    where none can be are refused.
    """
    if not isinstance(data, Mapping) or all(map(canon.is_one, data.values())) or not is_row(schema, data):
        return data
    flat = (data.get(n) for c in schema.counted if not c.about.lists for n in c.inputs)
    return one_row(data) if all(map(canon.is_one, (*flat, data.get(schema.target)))) else data


def _is_one_list(value: Any) -> bool:
    """Whether this is the bag or vector of one row: a dict, or a flat list; a list of nothing but None is a column."""
    if isinstance(value, Mapping) or canon.is_one(value):
        return True
    if len(getattr(value, "shape", (0,))) != 1:
        return False
    if isinstance(value, np.ndarray) and value.dtype != object:
        return True
    items = [v for v in value if v is not None]
    return all(map(canon.is_one, items)) and (len(items) > 0 or len(value) == 0)


def block_of_one(column: Column, value: Any, missing: Sequence[str]) -> Any:
    """Any other value as a block of one row."""
    several = column.like == "bag" and type(value) is dict
    if not canon.is_one(value) and not several:
        raise NotPlain  # a column of a table, perhaps
    return BatchContext(Batch({column.reads: [value]}, 1), missing).block(column)
