"""Columns that give the label away: nobody has them where an answer is wanted, so they are no evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...base.arrays import Ints, nearest_quantiles
from .. import encode
from ..blocks import Codes
from ..copies import copies, of_class, row_hashes
from ..kinds import Reason
from ..schema import Column, Schema
from ..sources import Batch
from .look import Looked

_LEAK_ROWS = 50  # below this nothing is called a leak: chance alone separates the classes
_LEAK = 0.995  # a column that names the class this often, each row left out, is not evidence but the answer
_LEAK_BY_ABSENCE = 0.95
_STRETCHES = 40  # of a number column, at most


def leaks_among(
    columns: Mapping[str, tuple[Looked, Sequence[Column]]], look: Batch, schema: Schema, labels: Codes
) -> dict[str, str]:
    """Why columns are the answer in disguise, of those that are: each as it was looked at, and what it may be.

    A row that is written several times tells its label by any of its values, the number of a document, say: so columns
    that seem to give it away are asked again with each row once. The schema says how the look is read; its columns are
    those that are proposed.
    """
    found = {name: why for name, (looked, proposed) in columns.items() if (why := gives_away(looked, proposed, labels))}
    if not found:
        return {}
    once = _written_once(schema._with(columns=[c for _, proposed in columns.values() for c in proposed]), look)
    return {name: why for name in found if (why := gives_away(*columns[name], labels, once))}


def _written_once(schema: Schema, look: Batch) -> Ints | slice:
    """The rows of a look but for further copies of them."""
    rows = encode.labelled(schema, look)
    hashes = row_hashes(rows.blocks, len(rows.rows))
    together = copies(rows, hashes)
    first = np.zeros(len(hashes), dtype=bool)
    first[np.unique(of_class(hashes, rows.labels), return_index=True)[1]] = True
    return rows.rows[first | ~together] if together.any() else slice(None)


def gives_away(
    looked: Looked, proposed: Sequence[Column], labels: Codes, some: Ints | slice = slice(None)
) -> str | None:
    """Why a column is the answer in disguise, or None; `some` are the rows that are asked."""
    if (
        proposed[0].about.read_as not in ("category", "number")
        or proposed[0].part
        or isinstance(looked.raw, np.ndarray)
    ):
        return None
    codes, y = _coarse(looked, proposed[0])[some], labels.codes[some]
    if y.min(initial=0) < 0:
        codes, y = codes[y >= 0], y[y >= 0]
    n_classes = len(labels.slots)
    if len(y) < _LEAK_ROWS:
        return None
    places = (int(codes.max()) + 2) * n_classes
    table = np.bincount((codes + np.int64(1)) * n_classes + y, minlength=places).reshape(-1, n_classes)
    absent, there = table[0], table[1:].sum(axis=0)
    if np.count_nonzero(absent + there) < 2:
        return None
    base = float((absent + there).max() / len(y))
    by_absence = _left_out_accuracy(np.stack([absent, there]))
    if absent.any() and by_absence >= _LEAK_BY_ABSENCE and base < _LEAK_BY_ABSENCE - 0.05:
        return f"it gives the label away: whether it is missing names the class of {by_absence:.1%} of the rows"
    accuracy = _left_out_accuracy(table)
    if accuracy >= _LEAK and base < _LEAK - 0.05:
        return f"it gives the label away: it alone names the class of {accuracy:.1%} of the rows"
    if absent.sum() / len(y) > 0.5 and there.sum() >= 30 and there.max() >= 0.99 * there.sum() and base < 0.9:
        name = labels.slots[int(np.argmax(there))]
        why = "it gives the label away: where it has a value, the class is "
        return Reason(f"{why}{name!r}", f"{why}nearly always the same")
    return None


def _coarse(looked: Looked, column: Column) -> Ints:
    """A code per row, −1 for missing: the value of a category, a stretch of a number."""
    if column.kind == "category":
        return looked.codes(column.missing, fold=column.spelling is not None and column.spelling.fold).codes
    x = looked.numbers(column.name, column.missing, column.spelling)
    edges = x.distinct()
    if len(edges) > _STRETCHES:
        edges = np.unique(nearest_quantiles(x.values, np.linspace(0, 1, _STRETCHES + 1)[1:-1]))
    codes = np.searchsorted(edges, x.given)
    codes[np.isnan(x.given)] = -1
    return codes


def _left_out_accuracy(table: Ints) -> float:
    """How often the other rows with the same value have, for the most part, the row's class; values × classes."""
    top = np.sort(table, axis=1)
    best, second = top[:, -1:], top[:, -2:-1]
    others = np.where(table == best, np.where(np.sum(table == best, axis=1, keepdims=True) > 1, best, second), best)
    right = (table - 1 > 0) & (table - 1 >= others)
    return float(np.sum(np.where(right, table, 0)) / np.sum(table))
