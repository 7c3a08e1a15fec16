"""Exact sums by class: the readable way in NumPy, or its Numba twin when a batch is large enough to repay it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints, has_infinity
from ..base.arrow import array
from .cells import REACH, Cells, codes_at
from .kernels import gate
from .limbs import LIMB_BITS, MASK, Limbs, add_limbs, canonical, two_product
from .sheet import Sheet

_CHUNK_ROWS = 1 << 20  # of partial limbs below 2^33: every float64 sum stays an exact integer (≤ 2^53)
_WHOLE = float(1 << 53)  # integers up to here are float64 values, whatever the order they are added in
_MOST_PLACES, _PLACES_PER_ROW = 1 << 22, 16  # of a full table of codes and classes: 32 MB, or 128 bytes per row
_MOST_GROUPS = 20_000  # at a time: each takes 204 limbs, so this is 32 MB


def exact_sums(groups: Ints, n_groups: int, factors: Sequence[Floats]) -> Limbs:
    """Σ of the product of the factors, by group, with no rounding at all (no factors: how many rows).

    Every factor must be finite. Products are expanded into exact terms (Dekker's two-product), each term is cut
    into 32-bit limbs by its exponent, and the limbs are added as integers.

    >>> x = np.array([1e16, 1.0, -1e16])
    >>> exact_sums(np.zeros(3, dtype=np.int64), 1, [x])
    Limbs(lowest=0, array=array([[1]]))
    """
    if not factors:
        return canonical(Limbs(0, np.bincount(groups, minlength=n_groups).astype(np.int64)[:, None]))
    if whole_and_small(factors, len(groups)):
        product = factors[0].copy()
        for factor in factors[1:]:
            product *= factor
        sums = np.bincount(groups, weights=product, minlength=n_groups)
        return canonical(Limbs(0, sums.astype(np.int64)[:, None]))
    parts = []
    for start in range(0, len(groups), _CHUNK_ROWS):
        some = slice(start, start + _CHUNK_ROWS)
        terms, shift = _exact_terms([f[some] for f in factors])
        parts.append(add_limbs([_deposit(groups[some], n_groups, term, shift) for term in terms]))
    return canonical(add_limbs(parts))


def whole_and_small(factors: Sequence[Floats], rows: int) -> bool:
    """Whether plain float64 sums of the product are exact: whole numbers whose sum of sizes stays within 2^53."""
    bound = float(rows)
    for factor in factors:
        bound *= float(np.max(np.abs(factor), initial=0.0))
        if not bound <= _WHOLE:
            return False
    return all(bool(np.all(np.rint(factor) == factor)) for factor in factors)


def _exact_terms(factors: Sequence[Floats]) -> tuple[list[Floats], Ints]:
    """Terms tᵢ and a shift s with product = Σ tᵢ · 2^s exactly; scaling by frexp keeps clear of over- and underflow."""
    first, exponent = np.frexp(factors[0])
    terms, shift = [first], exponent.astype(np.int64)
    for factor in factors[1:]:
        mantissa, exponent = np.frexp(factor)
        shift = shift + exponent
        terms = [half for term in terms for half in two_product(term, mantissa)]
    return terms, shift


def _deposit(groups: Ints, n_groups: int, term: Floats, shift: Ints) -> Limbs:
    """The sum by group of term · 2^shift: each value is cut at the limb boundaries that its exponent picks."""
    some = term != 0
    if not some.any():
        return Limbs(0, np.zeros((n_groups, 1), dtype=np.int64))
    mantissa, exponent = np.frexp(term[some])
    whole = np.ldexp(mantissa, 53).astype(np.int64)  # below 2^53 in size
    power = exponent + shift[some] - 53
    limb, rest = power >> 5, power & 31
    size, sign = np.abs(whole), np.sign(whole)
    low = (size & MASK) << rest  # below 2^63
    high = (size >> LIMB_BITS) << rest  # below 2^52
    lowest = int(limb.min())
    width = int(limb.max()) - lowest + 3
    place = groups[some] * width + (limb - lowest)
    sums = np.zeros(n_groups * width, dtype=np.int64)
    for step, piece in enumerate((low & MASK, (low >> LIMB_BITS) + (high & MASK), high >> LIMB_BITS)):
        added = np.bincount(place + step, weights=(piece * sign).astype(np.float64), minlength=n_groups * width)
        sums += added.astype(np.int64)
    return Limbs(lowest, sums.reshape(n_groups, width))


@gate.guarded
def code_sums(codes: Ints, n_codes: int, labels: Ints, n_labels: int, weights: Floats | None) -> Limbs:
    """How many rows (or their weight) have each code and class: group code · n_labels + class; −1 adds nothing."""
    if weights is None and (fast := gate.kernels("codes", len(codes))) is not None:
        table = np.zeros((n_codes, n_labels), dtype=np.int64)
        fast.count(np.ascontiguousarray(codes), labels, table)
        return Limbs(0, table.reshape(-1, 1))
    some = codes >= 0
    key = codes[some].astype(np.int64) * n_labels + labels[some]
    return exact_sums(key, n_codes * n_labels, [] if weights is None else [weights[some]])


def code_sheet(
    slots: Sequence[str] | pa.Array, codes: Ints, labels: Ints, n_labels: int, weights: Floats | None
) -> Sheet:
    """The same as a sheet; by way of a full table, unless that had far more places than there are rows."""
    if len(slots) * n_labels <= max(_MOST_PLACES, _PLACES_PER_ROW * len(codes)):
        return Sheet.dense(slots, n_labels, {"n": code_sums(codes, len(slots), labels, n_labels, weights)})
    some = codes >= 0
    key, group = np.unique(codes[some].astype(np.int64) * n_labels + labels[some], return_inverse=True)
    sums = exact_sums(group, len(key), [] if weights is None else [weights[some]])
    row, place = np.nonzero(sums.array)
    slot, label = np.divmod(key[row], n_labels)
    names = slots if isinstance(slots, pa.Array) else array(slots, pa.string())
    return Sheet.of_entries(("n",), names, slot, place + sums.lowest, label, sums.array[row, place][:, None])


@gate.guarded
def cell_sums(values: Floats, labels: Ints, n_labels: int, cells: Cells) -> tuple[Ints, Limbs] | None:
    """The codes of the cells that hold any of the values, and how many of each class; NaN is left out.

    None where the short way cannot go: few values, or one out of reach.
    """
    places = 2 * REACH + len(cells.points)
    fast = gate.kernels("codes", len(values)) if places * n_labels <= max(len(values), 1 << 14) else None
    if fast is None or abs(cells.exponent) > 1000:  # beyond, one over the width is no float64
        return None
    table = np.zeros((places, n_labels), dtype=np.int64)
    scale = math.ldexp(1.0, -cells.exponent)
    if not fast.count_cells(np.ascontiguousarray(values), labels, cells.centre, scale, cells.point_values, table):
        return None
    used = np.flatnonzero(table.any(axis=1))
    return codes_at(used), Limbs(0, table[used].reshape(-1, 1))


def stacked(pieces: Sequence[Limbs]) -> Limbs:
    """The groups of several pieces, one after the other."""
    if not pieces:
        return Limbs(0, np.zeros((0, 1), dtype=np.int64))
    lowest = min(p.lowest for p in pieces)
    highest = max(p.lowest + p.array.shape[1] for p in pieces)
    out = np.zeros((sum(len(p.array) for p in pieces), highest - lowest), dtype=np.int64)
    start = 0
    for p in pieces:
        out[start : start + len(p.array), p.lowest - lowest : p.lowest - lowest + p.array.shape[1]] = p.array
        start += len(p.array)
    return Limbs(lowest, out)


@gate.guarded
def moments(labels: Ints, n_labels: int, x: Floats, weights: Floats | None) -> tuple[Limbs, Limbs, Limbs] | None:
    """Σ w, Σ w·x and Σ w·x² for each position of a matrix, exactly: group position · n_labels + class.

    NaN adds nothing. None where a value is infinite.
    """
    width = x.shape[1]
    if weights is None and (fast := gate.kernels("moments", x.size)) is not None:
        step = max(_MOST_GROUPS // n_labels, 1)
        pieces = [fast.moments(labels, n_labels, x[:, i : i + step]) for i in range(0, width, step)]
        if None in pieces:
            return None
        n, x_sum, xx_sum = (stacked([p[k] for p in pieces]) for k in range(3))
        return n, canonical(x_sum), canonical(xx_sum)
    if has_infinity(x):
        return None
    groups, values = (labels[:, None] + n_labels * np.arange(width)).ravel(), x.ravel()
    w = [] if weights is None else [np.repeat(weights, width)]
    there = ~np.isnan(values)
    if not there.all():
        groups, values, w = groups[there], values[there], [each[there] for each in w]
    n, x_sum, xx_sum = (exact_sums(groups, width * n_labels, f) for f in (w, [*w, values], [*w, values, values]))
    return n, x_sum, xx_sum
