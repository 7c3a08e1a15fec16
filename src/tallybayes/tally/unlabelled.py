"""Counts of rows without labels: a tally of one class, under a target of its own.

Nothing but the class is missing: columns, cells and readings are those of the schema that labelled rows are counted by,
so that the sum over the classes of one and the one class of the other can be compared. Such tallies add, subtract and
are saved like any other, and do not add to labelled ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base import threads
from ..data import encode
from ..data.batch import Batch
from ..data.blocks import Block, Groups
from ..data.schema import Schema
from ..data.sources import open_source
from .tally import Tally, count_rows, sum_tallies
from .together import without_together

NO_LABEL = "(no label)"  # the target of a schema for rows without labels
OTHERS = "(other new values)"  # the slot of values that were never learnt, once there are too many to keep by name
_EVERY = "all rows"  # their one class


def unlabelled_schema(schema: Schema) -> Schema:
    """The schema that counts the same columns of rows without labels and weights."""
    known = without_together(schema)
    return known._with(target=NO_LABEL, weights=None, receipts=False, label_type="text", fold=False)


def is_unlabelled(tally: Tally) -> bool:
    """Whether a tally is of rows without labels."""
    return tally.schema.target == NO_LABEL


def count_unlabelled(data: Any, like: Any) -> Tally:
    """The counts of rows whose labels nobody knows, as a tally of one class; `like` is a model, a tally or a schema.

    A column of labels is not looked at. `tb.shift(model, counts)` compares them with what was learnt.

    >>> schema = tb.Schema([tb.Column("Sky", "category")], target="Play")
    >>> tb.count_unlabelled({"Sky": ["sunny", "rainy"]}, schema) + tb.count_unlabelled({"Sky": ["rainy"]}, schema)
    Tally: 3 rows · all rows 3 · 1 column
    """
    known: Schema = getattr(like, "schema", like)
    own = known if known.target == NO_LABEL else unlabelled_schema(known)

    def of_batch(item: tuple[int, Batch]) -> Tally:
        number, batch = item
        if number == 0 and batch.rows:
            encode.check_columns(own, batch)
        return count_blocks(own, encode.blocks(own, batch), batch.rows)

    batches = open_source(encode.as_table(known, data)).batches(encode.wanted(own, labelled=False))
    return sum_tallies(threads.each(of_batch, enumerate(batches))) or Tally.zero(own)


def count_blocks(schema: Schema, blocks: Mapping[str, Block], rows: int) -> Tally:
    """The tally of rows without labels that are encoded already; `schema` is one of `unlabelled_schema`."""
    if rows == 0:
        return Tally.zero(schema)
    return count_rows(schema, [_EVERY], Groups(np.zeros(rows, dtype=np.int64), 1), blocks)
