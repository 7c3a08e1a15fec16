"""The next step of a descent, from the last ones, and the change to numbers that hang together less, each in one call.

The sums are over a few hundred to many thousand numbers.

A sum of products is of eight sums side by side, so that it takes registers whole; NumPy's twin adds in the same order,
so that either way gives the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiling import helper, lazy


@helper
def _dot(a: Any, b: Any) -> Any:
    """Σ a · b; number i belongs to sum i mod 8, and there are as many as fill all eight."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for i in range(0, a.shape[0], 8):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        s4 += a[i + 4] * b[i + 4]
        s5 += a[i + 5] * b[i + 5]
        s6 += a[i + 6] * b[i + 6]
        s7 += a[i + 7] * b[i + 7]
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


@lazy(
    "void(float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64[::1], float64, int64, int64,"
    " float64[::1])"
)
def turn(
    steps: Any, changes: Any, by: Any, shares: Any, curvature: Any, scale: float, first: int, count: int, way: Any
) -> None:
    """Turn minus a slope into the way of `descent.Steps`, in place; the oldest step is in row `first`."""
    most, n = steps.shape[0], way.shape[0]
    for k in range(count - 1, -1, -1):
        j = (first + k) % most
        share = -(by[j] * _dot(steps[j], way))
        shares[j] = share
        change = changes[j]
        for i in range(n):
            way[i] += change[i] * share
    if curvature.shape[0]:
        for i in range(n):
            way[i] /= curvature[i]
    for i in range(n):
        way[i] *= scale
    for k in range(count):
        j = (first + k) % most
        share = -(shares[j] + by[j] * _dot(changes[j], way))
        step = steps[j]
        for i in range(n):
            way[i] += step[i] * share


@lazy("void(int32[:, ::1], float64[:, ::1], float64[:, ::1])")
def pivots(before: Any, ties: Any, d: Any) -> None:
    """d[i] −= tie² / d[neighbour], over the neighbours before each row; the last row of d stands for none."""
    width = d.shape[1]
    for i in range(before.shape[1]):
        for k in range(before.shape[0]):
            tie, at = ties[k, i], np.uint64(before[k, i])
            if tie != 0.0:
                for y in range(width):
                    d[i, y] -= tie * tie / d[at, y]


@lazy("void(int32[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1])")
def tied(after: Any, ties: Any, root: Any, share: Any, u: Any, out: Any) -> None:
    """out = root · u + share · Σ tie · out[neighbour], from the last row to the first; one row more is 0."""
    width, rows = u.shape[1], u.shape[0]
    for back in range(rows):
        i = rows - 1 - back
        for k in range(after.shape[0]):
            tie, at = ties[k, i], np.uint64(after[k, i])
            if tie != 0.0:
                for y in range(width):
                    out[i, y] += tie * out[at, y]
        for y in range(width):
            out[i, y] = root[i, y] * u[i, y] + share[i, y] * out[i, y]


@lazy(
    "void(int32[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1],"
    " float64[:, ::1])"
)
def untied(before: Any, ties: Any, root: Any, share: Any, slopes: Any, felt: Any, out: Any) -> None:
    """s = slope + Σ tie · felt[neighbour], from the first row on; felt = share · s, out = root · s."""
    width = slopes.shape[1]
    for i in range(slopes.shape[0]):
        for k in range(before.shape[0]):
            tie, at = ties[k, i], np.uint64(before[k, i])
            if tie != 0.0:
                for y in range(width):
                    felt[i, y] += tie * felt[at, y]
        for y in range(width):
            every = slopes[i, y] + felt[i, y]
            felt[i, y] = share[i, y] * every
            out[i, y] = root[i, y] * every
