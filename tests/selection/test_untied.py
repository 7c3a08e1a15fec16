"""Corrections as numbers that hang together less: there and back, the slopes of both, the same bits by either road."""

from __future__ import annotations

import numpy as np
import pytest
from dealt import dealt

from tallybayes.exact.kernels import gate
from tallybayes.selection.choose.penalised import Pull, _Packed, fitted, tempered
from tallybayes.selection.choose.untied import Ties, Untied


def grid(height: int, width: int, holes: int = 0, seed: int = 0) -> tuple[np.ndarray, np.ndarray, int]:
    """Ties between neighbouring cells of a grid of which some are missing; a line is a grid of one row."""
    rng = np.random.default_rng(seed)
    there = np.ones(height * width, dtype=bool)
    there[rng.choice(len(there), holes, replace=False)] = False
    rows = int(there.sum())
    place = np.where(there, np.cumsum(there) - 1, rows).reshape(height, width)
    a = np.concatenate([place[:-1].ravel(), place[:, :-1].ravel()])
    b = np.concatenate([place[1:].ravel(), place[:, 1:].ravel()])
    kept = (a < rows) & (b < rows)
    return a[kept].astype(np.int32), b[kept].astype(np.int32), rows


GRIDS = {"line": (1, 9, 0), "grid": (4, 5, 0), "holes": (6, 7, 11), "nothing tied": (1, 1, 0)}


def untied(name: str, classes: int = 3, kernels: object = None) -> tuple[Untied, np.ndarray]:
    """The change of a grid, and H of each class."""
    a, b, rows = grid(*GRIDS[name])
    rng = np.random.default_rng(2)
    ties, own = rng.random(len(a)) * 5, rng.random((rows, classes)) + 0.1
    whole = np.zeros((classes, rows, rows))
    whole[:, a, b] = whole[:, b, a] = -ties
    curved = own - whole.sum(axis=2).T
    whole[:, np.arange(rows), np.arange(rows)] = curved.T
    return Untied(Ties.of(a, b, rows), ties, curved, kernels), whole


@pytest.mark.parametrize("name", GRIDS)
def test_there_and_back(name: str) -> None:
    change, whole = untied(name)
    u, g = np.random.default_rng(3).normal(size=(2, whole.shape[1], len(whole)))
    added = change.added(u)
    np.testing.assert_allclose(change.numbers(added), u, atol=1e-12)
    # how the loss changes with u is how it changes with δ, along the same way
    assert np.vdot(change.slopes(g), u) == pytest.approx(np.vdot(g, added), abs=1e-10)


@pytest.mark.parametrize("name", GRIDS)
def test_in_u_the_curvature_is_one_along_a_line_and_near_it_on_a_grid(name: str) -> None:
    change, whole = untied(name)
    rows = whole.shape[1]
    for y, h in enumerate(whole):
        root = np.stack([change.added(np.eye(rows)[:, [i]] * np.ones((1, 3)))[:, y] for i in range(rows)], axis=1)
        in_u = root.T @ h @ root  # Lᵀ·u is what it was made of
        if name != "grid" and name != "holes":
            np.testing.assert_allclose(in_u, np.eye(rows), atol=1e-10)
        spread = np.linalg.eigvalsh(in_u)
        scaled = np.linalg.eigvalsh(h / np.sqrt(np.outer(np.diag(h), np.diag(h))))
        assert spread[-1] / spread[0] <= max(0.5 * scaled[-1] / scaled[0], 1 + 1e-9)


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("classes", [1, 3, 9])
def test_kernels_and_reference_give_the_same_bits(name: str, classes: int) -> None:
    kernels = gate.kernels("steps", 10**9)
    if kernels is None:
        pytest.skip("the kernels are not here: Numba is not installed, or they are switched off")
    (fast, whole), (slow, _) = untied(name, classes, kernels), untied(name, classes)
    u = np.random.default_rng(4).normal(size=(whole.shape[1], classes))
    np.testing.assert_array_equal(fast.added(u), slow.added(u))
    np.testing.assert_array_equal(fast.slopes(u), slow.slopes(u))
    np.testing.assert_array_equal(fast.numbers(u), slow.numbers(u))


@pytest.mark.parametrize("classes", [2, 5])
def test_a_fit_ends_where_it_did_without_and_in_fewer_steps(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, 400)
    data = {f"x{j}": rng.normal(y * 0.7, 1.0).tolist() for j in range(4)} | {"y": [f"k{v}" for v in y]}
    problem, _, _ = dealt(data)
    joint = problem.joint(1, problem.terms())
    pull, begin, asked = Pull(30.0, 30.0), tempered(joint), [0]
    loss = _Packed.loss

    def counted(self: _Packed, u: np.ndarray) -> tuple[float, np.ndarray]:
        asked[0] += 1
        return loss(self, u)

    monkeypatch.setattr(_Packed, "loss", counted)
    found = fitted(joint, begin, pull, 1e-6)
    steps, asked[0] = asked[0], 0
    none = np.zeros(0, dtype=np.int32)
    joint.placed.__dict__["neighbours"] = Ties.of(none, none, joint.n_added)
    init = Untied.__init__
    monkeypatch.setattr(Untied, "__init__", lambda self, near, ties, *more: init(self, near, np.zeros(0), *more))
    plain = fitted(joint, begin, pull, 1e-6)
    assert steps < asked[0]
    packed = _Packed(joint, begin, pull)
    best, other = (loss(packed, packed.packed(x))[0] for x in (found, plain))
    assert best <= other + 1e-4 * abs(other)
