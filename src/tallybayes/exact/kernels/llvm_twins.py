"""What the instructions of `llvm` do, in NumPy: under the same names, with the same arguments, for anybody to read.

A kernel that is checked is read by Python with these in their place. Arrays are given whole with a place in them, as
if they were flat, and are written to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_FAR = 1e298  # as in `llvm`


def _some(array: Any, place: Any, count: int = 8) -> Any:
    """So many elements from a place on, to be read or written."""
    return array.reshape(-1)[int(place) : int(place) + count]


def eight(data: Any, place: Any) -> Any:
    """The eight bytes from a place on as one number, the first in the lowest place."""
    return np.uint64(int.from_bytes(_some(data, place).tobytes(), "little"))


def trailing_zeros(word: Any) -> Any:
    """The lowest bit that is set; 64 if none is."""
    number = int(word)
    return np.uint64((number & -number).bit_length() - 1 if number else 64)


def ones(word: Any) -> Any:
    """How many bits are set."""
    return np.uint64(int(word).bit_count())


def prefetch(array: Any, place: Any) -> None:
    """Nothing that can be seen."""


def fold_block(data: Any, place: Any, out: Any, to: Any, lower: Any) -> Any:
    """Copy 64 bytes, ASCII letters in lower case if asked for; the bits say which belong to words or are not ASCII."""
    given = _some(data, place, 64).tobytes()
    _some(out, to, 64)[:] = np.frombuffer(given.lower() if lower else given, dtype=np.uint8)
    bits = 0
    for i, byte in enumerate(given):
        bits |= (byte >= 128 or chr(byte).isalnum() or byte == ord("_")) << i
    return np.uint64(bits)


def marks_of(data: Any, place: Any, sign: Any) -> Any:
    """A bit for each of the 64 bytes from a place on: whether it is this sign or ends a line."""
    given = _some(data, place, 64)
    return np.packbits((given == sign) | (given == 10) | (given == 13), bitorder="little").view(np.uint64)[0]


def add_table_rows(table: Any, rows: Any, start: Any, stop: Any, width: Any, left: Any, out: Any, to: Any) -> None:
    """Add to eight doubles of `out` those from `left` on in some rows of a table of this width, by fours of rows."""
    total = np.zeros(8)
    for first in range(4 * int(start), 4 * int(stop), 4):
        w, x, y, z = (_some(table, int(row) * int(width) + int(left)) for row in rows[first : first + 4])
        total = total + ((w + x) + (y + z))
    _some(out, to)[:] += total


def _adding(size: int) -> Callable[..., None]:
    def one(table: Any, a: Any, out: Any, to: Any) -> None:
        """Add to some doubles of `out` those from a place on in a table."""
        _some(out, to, size)[:] += _some(table, a, size)

    return one


add_eight, add_four, add_two, add_one = (_adding(size) for size in (8, 4, 2, 1))


def _gathering(*sizes: int) -> Callable[..., None]:
    def rows(
        numbers: Any, first: Any, step: Any, count: Any, table: Any, width: Any, out: Any, to: Any, left: Any,
        last: Any, anew: Any,
    ) -> None:  # fmt: skip
        """Add to blocks of doubles of `out` those of some rows of a table, one row after the other."""
        begins = [*(left + sum(sizes[:i]) for i in range(len(sizes) - 1)), last]
        places = np.concatenate([np.arange(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)])
        flat, target = table.reshape(-1), out.reshape(-1)
        sums = np.zeros(len(places)) if anew else target[to + places]
        for k in range(count):
            sums = sums + flat[int(numbers.reshape(-1)[first + k * step]) * width + places]
        target[to + places] = sums

    return rows


gather_1, gather_4, gather_8, gather_12 = (_gathering(*s) for s in ((1,), (2, 2), (4, 4), (8, 4)))
gather_16, gather_20, gather_24, gather_28 = (_gathering(*s) for s in ((8, 8), (8, 8, 4), (8, 8, 8), (8, 8, 8, 4)))
gather_32 = _gathering(8, 8, 8, 8)


def products_of_four(
    words: Any, amounts: Any, start: Any, stop: Any, codes: Any, first: Any, tables: Any, column: Any, out: Any,
    to: Any, step: Any,
) -> None:  # fmt: skip
    """Σ amount · (eight doubles of a table) over some words, for four classes."""
    for y in range(4):
        total = np.zeros(8)
        for place in range(int(start), int(stop)):
            code = int(codes.reshape(-1)[int(words[place]) + int(first) + y])
            total = total + amounts[place] * _some(tables, code + int(column))
        _some(out, int(to) + y * int(step))[:] = total


def _slicing(masked: bool) -> Callable[..., None]:
    def sums(
        x: Any, places: Any, start: Any, stop: Any, left: Any, magic: Any, units: Any, lane: Any, out: Any, to: Any,
        lost: Any,
    ) -> None:  # fmt: skip
        """Cut eight numbers from each of some places on into slices of 21 bits, and add the slices up."""
        high, unit, square = _some(magic, lane), _some(units, 2 * int(lane)), _some(units, 2 * int(lane) + 8)
        total = np.zeros((8, 8))  # (a + b), c, a², ab, ac, b², bc, c²
        for place in range(int(start), int(stop)):
            rest = _some(x, int(places[place]) + int(left)).copy()
            if masked:
                rest[np.isnan(rest)] = 0.0
            slices = []
            for cut in (high, high * 2.0**-21, high * 2.0**-42):
                slices.append((rest + cut) - cut)
                rest = rest - slices[-1]
            fits = rest == 0
            lost[place] = np.packbits(~fits, bitorder="little")[0]
            a, b, c = (np.where(fits, s, 0.0) for s in slices)
            total += [a + b, c, a * a, a * b, a * c, b * b, b * c, c * c]
        upper, lower, aa, ab, ac, bb, bc, cc = total
        whole = [upper * unit, lower * (unit * 2.0**21)]
        whole += [s * (square * 2.0 ** (21 * k)) for k, s in enumerate((aa, ab, (ac + ac) + bb, bc, cc))]
        _some(out, to, 56)[:] += np.concatenate(whole).astype(np.int64)

    return sums


slice_sums, slice_sums_of_some = (_slicing(masked) for masked in (False, True))


def _four_rows(masked: bool) -> Callable[..., Any]:
    def rows(
        x: Any, place: Any, step: Any, left: Any, bells: Any, bell: Any, whole: Any, of: Any, out: Any, to: Any
    ) -> Any:
        """For four rows and two classes: whole − Σ ((x − μ)·s)², eight columns at a time."""
        sums = np.zeros((4, 2, 8))
        for k in range(len(left)):
            for row in range(4):
                v = _some(x, int(place) + int(step) * row + int(left[k]))
                for y in range(2):
                    mean, inverse, constant = _some(bells, int(bell) + 48 * k + 24 * y, 24).reshape(3, 8)
                    z = (v - mean) * inverse
                    added = np.where(np.isnan(v), 0.0, z * z - constant) if masked else z * z
                    sums[row, y] += added
        each = sums.sum(axis=2).ravel()
        _some(out, to)[:] = _some(whole, of) - each
        return bool((each < _FAR).all())

    return rows


normals_of_four, normals_without_nan = (_four_rows(masked) for masked in (False, True))
