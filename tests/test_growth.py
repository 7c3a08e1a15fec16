"""The measure of growth lets straight work pass and catches quadratic work."""

import pytest
from growth import LARGER, grows_in_step

pytestmark = pytest.mark.core


def straight(given: list[int]) -> int:
    return sum(abs(x) for x in given)


def quadratic(given: list[int]) -> int:
    return sum(abs(x) for _ in given for x in given)


def test_straight_work_passes() -> None:
    assert grows_in_step(straight, [1] * 20_000, [1] * 20_000 * LARGER)


def test_quadratic_work_is_caught() -> None:
    assert not grows_in_step(quadratic, [1] * 300, [1] * 300 * LARGER)


def test_work_without_measurable_time_passes() -> None:
    assert grows_in_step(quadratic, [1], [1] * LARGER)
