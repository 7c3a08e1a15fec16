"""The way down from the last steps: by the formula of the inverse curvature, and by kernels and NumPy alike."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from tallybayes.selection.choose.descent import _MEMORY, Steps, descend


def taken(n: int, count: int, seed: int, curved: bool) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray | None]:
    """Steps of a descent with how the slope changed along each, and curvatures."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(count, n))
    return [(s, s * np.exp(rng.normal(size=n))) for s in steps], np.exp(rng.normal(size=n)) if curved else None


def by_formula(
    steps: list[tuple[np.ndarray, np.ndarray]], curvature: np.ndarray | None, slope: np.ndarray
) -> np.ndarray:
    """−H · slope, where every step turns H into (1 − s yᵀ/sᵀy) H (1 − y sᵀ/sᵀy) + s sᵀ/sᵀy."""
    diagonal = np.ones(len(slope)) if curvature is None else 1 / curvature
    step, change = steps[-1]
    inverse = np.diag(diagonal) * float(step @ change) / float(change @ (change * diagonal))
    for step, change in steps:
        product = float(step @ change)
        left = np.eye(len(slope)) - np.outer(step, change) / product
        inverse = left @ inverse @ left.T + np.outer(step, step) / product
    return np.asarray(-inverse @ slope)


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("count", [1, 3, _MEMORY, _MEMORY + 4])
@pytest.mark.parametrize("wish", ["on", "off"])
def test_the_way_is_that_of_the_inverse_curvature(
    wish: str, count: int, curved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYBAYES_KERNELS", wish)
    steps, curvature = taken(13, count, count, curved)
    of = Steps(13, curvature)
    for step, change in steps:
        of.add(step, change)
    slope = np.random.default_rng(99).normal(size=13)
    assert of.way(slope) == pytest.approx(by_formula(steps[-_MEMORY:], curvature, slope), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 1003])
@pytest.mark.parametrize("curved", [False, True])
def test_kernels_and_numpy_go_the_same_way_to_the_last_bit(
    n: int, curved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, curvature = taken(n, _MEMORY + 3, n, curved)
    slope, ways = np.random.default_rng(98).normal(size=n), []
    for wish in ("on", "off"):
        monkeypatch.setenv("TALLYBAYES_KERNELS", wish)
        of = Steps(n, curvature)
        ways.append([of.way(slope)])
        for step, change in steps:
            of.add(step, change)
            ways[-1].append(of.way(slope))
    assert all(np.array_equal(a, b) for a, b in zip(*ways, strict=True))


def test_a_step_along_which_the_slope_does_not_rise_is_not_remembered() -> None:
    of, slope = Steps(4, None), np.array([1.0, 2.0, 3.0, 4.0])
    of.add(np.ones(4), -np.ones(4))
    assert of.way(slope).tolist() == (-slope).tolist()
    of.add(np.ones(4), 2 * np.ones(4))
    assert of.way(slope).tolist() == (-slope / 2).tolist()
    of.forget()
    assert of.way(slope).tolist() == (-slope).tolist()


def test_the_descent_finds_the_least_of_a_long_valley() -> None:
    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        return float(scipy.optimize.rosen(x)) + 1.0, np.asarray(scipy.optimize.rosen_der(x))

    found = descend(loss, np.array([-1.0, 1.5]), np.array([800.0, 200.0]), 1e-14)
    assert found == pytest.approx(np.ones(2), abs=1e-3)
