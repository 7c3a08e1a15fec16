"""The cell of one number, in plain Python: what `cells` says of many at once."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping

MIDDLE_BITS = 8
MIDDLE = 1 << MIDDLE_BITS  # so that the middle 99 % of the first look spans 256 to 512 cells as `fitted` steps
TAIL = 16  # a tail cell is at most 1/16 of its distance from the centre
LARGEST = sys.float_info.max


def cell_code(value: float, centre: float, exponent: int, points: Mapping[float, int]) -> int:
    """The code of a finite number's cell: that of its point, or the number of a general cell.

    >>> cell_code(3.0, 0.0, 0, {3.0: 1 << 40}) == 1 << 40, cell_code(3.5, 0.0, 0, {}), cell_code(-600.0, 0.0, 0, {})
    (True, 3, -275)
    """
    found = points.get(value)
    if found is not None:
        return found
    distance = value - centre
    if not -LARGEST <= distance <= LARGEST:
        distance = math.copysign(LARGEST, distance)
    size, octave = math.frexp(abs(distance))
    octave -= exponent + MIDDLE_BITS
    if octave >= 1 and size > 0:
        step = (octave - 1) * TAIL + math.floor((2 * size - 1) * TAIL)
        return MIDDLE + step if distance > 0 else -MIDDLE - 1 - step
    near = math.ldexp(distance, -exponent)
    return -1 if near == 0 and distance < 0 else math.floor(near)
