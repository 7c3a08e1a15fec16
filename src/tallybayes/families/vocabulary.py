"""Which words are believed, and what was counted of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow import array, numpy_of, scalar
from ..block import WORDS, N
from ..counts import Counts
from ..numerics import Floats
from .base import Context
from .selection import Selection


@lru_cache(maxsize=8)
def sorted_positions(width: int) -> tuple[tuple[str, ...], pa.Array]:
    """The positions of a matrix as sorted texts."""
    names = tuple(sorted(map(str, range(width))))
    return names, array(names, pa.string())


def vocabulary(counts: Counts, context: Context, select: Selection) -> Sequence[str]:
    """The words believed: those selected of the ones seen, every position of a matrix, those a prior names."""
    sheet = counts.sheet("words", WORDS)
    positions, texts = sorted_positions(context.width or 0)
    extra = context.smoothing.extra_slots()
    if positions and not extra and pc.all(pc.is_in(sheet.slots, value_set=texts)).as_py() is not False:
        return positions  # whatever is selected: positions stay
    seen = sheet.slot_names
    if not select.everything():
        sheet = sheet.in_order  # of words that tell equally much the first are kept, whatever order they were met in
        seen = sheet.slot_names
        kept = select.kept(sheet.table("documents", context.n_classes), bag_rows(counts, context))
        seen = [w for w, k in zip(seen, kept, strict=True) if k]
    return sorted({*seen, *positions, *extra})


def word_table(counts: Counts, context: Context, amount: str, words: Sequence[str], more: int = 0) -> Floats:
    """One amount, words × classes, with `more` empty rows."""
    sheet = counts.sheet("words", WORDS)
    at = pc.index_in(sheet.slots, value_set=array(words, pa.string()))
    at = at.fill_null(scalar(-1, at.type))
    return sheet.table_at(amount, context.n_classes, numpy_of(at).astype(np.int64), len(words) + more)


def bag_rows(counts: Counts, context: Context) -> Floats:
    """How many rows of each class have a bag, empty ones included."""
    table = counts.sheet("rows", N).table("n", context.n_classes)
    return table[0] if len(table) else np.zeros(context.n_classes)
