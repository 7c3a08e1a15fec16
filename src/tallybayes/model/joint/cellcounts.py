"""Rows counted by cell: category columns as codes, and exact counts under the values of a cell as a JSON list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np

from ...base.arrays import Floats, Ints
from ...base.errors import DataError, SettingsError, did_you_mean, excerpt
from ...data import values as reading
from ...data.blocks import Codes, N
from ...data.sources import Batch
from ...exact.counts import Counts
from ...exact.limbs import Limbs, canonical
from ...exact.sheet import Sheet
from .cells import MISSING, OUTSIDE
from .dependence import equal_rows, sum_by

_CELLS = "cells"  # the sheet's name


def distinct(columns: Iterable[str]) -> tuple[str, ...]:
    """The names of at least one column, refused if one is there twice."""
    names = tuple(str(c) for c in columns)
    if not names or len(set(names)) < len(names):
        raise SettingsError(
            f"the columns are {excerpt(names) or 'none'}", hint="name at least one column, and none more than once."
        )
    return names


def categories(names: Sequence[str], batch: Batch) -> list[Codes]:
    """The columns as categories; an absent one is an error."""
    absent = [c for c in names if c not in batch]
    if absent and (batch.rows or batch.columns):
        raise DataError(
            f"there is no column {absent[0]!r}; the data have {excerpt(batch.names()) or 'no columns'}",
            hint=did_you_mean(absent[0], batch.names()) + "columns are found by name.",
        )
    if absent:
        return [Codes([], np.zeros(0, dtype=np.int64)) for _ in names]
    for c in names:
        reading.check_flat(batch[c], c)
    return [reading.category(batch[c], ("",)) for c in names]


def count_batch(names: Sequence[str], batch: Batch) -> tuple[Counts, int]:
    """The counts of a batch, and how many rows were skipped since a value is missing."""
    blocks = categories(names, batch)
    codes = np.stack([b.codes for b in blocks], axis=1)
    whole = codes[(codes >= 0).all(axis=1)]
    return count_cells([b.slots for b in blocks], whole, np.ones(len(whole))), len(codes) - len(whole)


def count_cells(values: Sequence[Sequence[str]], codes: Ints, n: Floats) -> Counts:
    """The counts of cells that hold n rows each; equal cells are added up."""
    if len(codes) == 0:
        return Counts({})
    group, first = equal_rows(codes)
    sums = sum_by(group, n, len(first)).astype(np.int64)
    slots = [json.dumps([v[c] for v, c in zip(values, row, strict=True)]) for row in codes[first].tolist()]
    sheet = Sheet.dense(slots, 1, {"n": canonical(Limbs(0, sums[:, None]))})
    return Counts({_CELLS: sheet} if len(sheet) else {})


def cell_texts(counts: Counts) -> list[list[str]]:
    """The values of each counted cell."""
    return [json.loads(slot) for slot in counts.sheet(_CELLS, N).slot_names]


def cell_rows(counts: Counts) -> Floats:
    """How many rows fell into each counted cell; below 0 in a difference."""
    return counts.sheet(_CELLS, N).table("n", 1)[:, 0]


def renumbered(values: Sequence[str], block: Codes) -> Ints:
    """The codes of a block as the numbers of these values: MISSING stays, others are OUTSIDE."""
    at = {v: i for i, v in enumerate(values)}
    new = np.array([*(at.get(s, OUTSIDE) for s in block.slots), MISSING], dtype=np.int64)
    return new[block.codes]
