"""Categories grouped by the engine: how often each value came with each class, and from that the tally.

Where every column is a category this is cheaper than sending all rows to Python: 1.6 processor seconds against 3.0 for
2,000,000 rows of six columns. Beside numbers, which must be sent anyway, it gains nothing (5.2 against 5.3).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from ...base.arrays import Bools
from ...data import values
from ...data.blocks import Codes, Groups
from ...data.schema import Schema
from ...exact.counts import Counts
from ...exact.sheet import Sheet
from ...exact.sums import exact_sums
from ..tally import Tally, without_empty_classes
from ..together import together

ROWS = -1  # the number of the column that every row has
PLAIN = ("string", "tinyint", "smallint", "int", "bigint", "boolean")  # whose text is the canonical one, in Spark too


def groupable(schema: Schema, types: Mapping[str, str]) -> bool:
    """Whether counts by class and value are all that the schema asks for; `types` are those of the columns it reads."""
    plain = all(c.kind == "category" and c.part is None for c in schema.counted)
    return (
        plain
        and bool(schema.counted)
        and not schema.receipts
        and together(schema) is None
        and schema.weights is None
        and not schema.fold
        and all(c.spelling is None for c in schema.counted)
        and set(types.values()) <= set(PLAIN)
    )


def tally_of_groups(schema: Schema, places: Mapping[str, int], groups: pa.Table) -> Tally:
    """The tally of rows that were grouped by class `y`, column number `col` and value, `n` rows each."""
    label = values.category(_array(groups, "y"), schema.missing)
    n = _array(groups, "n").to_numpy().astype(np.float64)
    column, value = _array(groups, "col").to_numpy(), _array(groups, "value")
    classes = tuple(sorted(label.slots))
    number = np.array([classes.index(s) for s in label.slots], dtype=np.int64)
    kept = label.codes >= 0

    def some(which: Bools) -> Groups:
        return Groups(number[label.codes[which]], len(classes), n[which])

    rows = column == ROWS
    skipped = int(n[rows & ~kept].sum())
    if not classes:
        return Tally(schema, (), Counts({}), {c.name: Counts({}) for c in schema.counted}, skipped)
    every = some(rows & kept)
    total = exact_sums(every.labels, len(classes), every.factors())
    columns = {}
    for c in schema.counted:
        which = kept & (column == places.get(c.reads, ROWS - 1))
        block: Codes = values.category(value.filter(pa.array(which)), (*schema.missing, *c.missing))
        columns[c.name] = _counts(block.sum_by(some(which)))
    labels = _counts({"rows": Sheet.dense([""], len(classes), {"n": total, "rows": total})})
    return without_empty_classes(Tally(schema, classes, labels, columns, skipped))


def _array(table: pa.Table, name: str) -> pa.Array:
    return table[name].combine_chunks()


def _counts(sheets: Mapping[str, Sheet]) -> Counts:
    return Counts({name: sheet for name, sheet in sheets.items() if len(sheet)})
