"""The two grids of a pair's corrections: a smooth surface of broad cells, and fine cells beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dealt import dealt
from scipy.optimize import check_grad

import tallybayes as tb
from tallybayes.exact.kernels import gate
from tallybayes.selection.choose import ladder as of_ladder
from tallybayes.selection.choose import pairs as of_pairs
from tallybayes.selection.choose.forms import wider
from tallybayes.selection.choose.joint import Joint, Solution
from tallybayes.selection.choose.pairs import BROAD, FEWEST, STRETCHES, ColumnPair
from tallybayes.selection.choose.penalised import Pull, _Packed, fitted, tempered
from tallybayes.selection.choose.problem import Problem


def table(n: int, classes: int) -> dict[str, list[Any]]:
    """Two numbers, one of them sometimes missing, and two categories."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, classes, n)
    return {
        "a": [None if rng.random() < 0.1 else float(v) for v in rng.normal(y, 1.0).round(1)],
        "b": rng.normal(0, 1, n).round(1).tolist(),
        "c": [f"v{v}" for v in rng.integers(0, 4, n)],
        "d": [f"w{v}" for v in rng.integers(0, 3, n)],
        "y": [f"k{v}" for v in y],
    }


def problem(n: int = 400, classes: int = 2) -> Problem:
    return dealt(table(n, classes))[0]


def pair(of: Problem, name: str) -> ColumnPair:
    return next(p for p in of.pairs if p.name == name)


def paired(of: Problem, split: int | None = 1) -> tuple[Joint, Solution]:
    """With all pairs, and some corrections."""
    joint, x = wider(of.joint(split, of.terms()), of.joint(split, of.terms()).start(), of.pairs)
    rng = np.random.default_rng(3)
    return joint, x._replace(weights=rng.random(len(x.weights)), added=rng.normal(0, 0.3, x.added.shape))


@pytest.mark.parametrize(
    ("name", "sides", "ordered"),
    [("a × b", (STRETCHES, STRETCHES), (True, True)), ("a × c", (STRETCHES, 4), (True, False))],
    ids=["two numbers", "a number and a category"],
)
def test_a_cell_is_the_sum_of_a_broad_one_and_itself(
    name: str, sides: tuple[int, int], ordered: tuple[bool, bool]
) -> None:
    one = pair(problem(2_000), name)
    term, codes = one.term(), one.codes()
    assert (one.one.size, one.other.size) == sides
    rows = np.bincount(codes, minlength=one.size + 1)[: one.size].reshape(sides)
    stretch = [np.arange(s) * BROAD // s if o else np.arange(s) for s, o in zip(sides, ordered, strict=True)]
    of_broad = np.zeros((int(stretch[0][-1]) + 1, int(stretch[1][-1]) + 1))
    np.add.at(of_broad, (stretch[0][:, None], stretch[1][None]), rows)
    broad, fine = term.corrected[:, :-1].reshape(2, *sides)
    assert (term.corrected[:, -1] == term.n_rows).all()  # where a value is missing
    for u in range(sides[0]):
        for v in range(sides[1]):
            at = stretch[0][u], stretch[1][v]
            assert (broad[u, v] < term.n_rows) == (of_broad[at] >= FEWEST)
            assert (fine[u, v] < term.n_rows) == (rows[u, v] >= FEWEST)
    assert len(np.unique(broad[broad < term.n_rows])) == int((of_broad >= FEWEST).sum())
    own = fine[fine < term.n_rows]
    assert len(np.unique(own)) == len(own) and own.min() == broad[broad < term.n_rows].max() + 1
    assert own.max() + 1 == term.n_rows == len(term.ridge) and len(term.stiff) == len(term.edges[0])


@pytest.mark.parametrize("name", ["a × b", "a × c", "c × d"])
def test_neighbours_are_cells_beside_each_other_on_one_grid(name: str) -> None:
    one = pair(problem(2_000), name)
    term = one.term()
    ordered = one.one.ordered, one.other.ordered
    found = set(zip(*(e.tolist() for e in term.edges), strict=True))
    assert len(found) == len(term.edges[0])
    expected = set()
    for level, rows in enumerate(term.corrected[:, :-1]):
        grid = rows.reshape(one.one.size, one.other.size)
        if level == 0 and any(ordered):  # a broad cell once
            grid = grid[:: STRETCHES // BROAD if ordered[0] else 1, :: STRETCHES // BROAD if ordered[1] else 1]
        for u, v in np.ndindex(*grid.shape):
            for du, dv in ((1, 0), (0, 1)):
                if not ordered[dv] or u + du >= grid.shape[0] or v + dv >= grid.shape[1]:
                    continue
                ends = int(grid[u, v]), int(grid[u + du, v + dv])
                if max(ends) < term.n_rows:
                    expected.add(ends)
    assert found == expected and (len(found) > 0) == any(ordered)
    if not any(ordered):
        assert len(term.corrected) == 1 and (term.ridge == 1.0).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_the_sum_of_both(classes: int) -> None:
    one = problem(classes=classes)
    joint, x = paired(one)
    scores, row = joint.scores(x), 0
    without = joint.scores(x._replace(added=np.zeros_like(x.added)))
    told = np.zeros_like(scores)
    for term in joint.terms:
        padded = np.concatenate([x.added[row : row + term.n_rows], np.zeros((1, joint.width))])
        for i, code in enumerate(term.codes.tolist()):
            for level in term.corrected:
                told[i] += padded[level[code]]
        row += term.n_rows
    np.testing.assert_allclose(scores - without, told, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_gradient_is_that_of_the_loss(classes: int) -> None:
    joint, x = paired(problem(200, classes))
    packed = _Packed(joint, joint.start(), Pull(3.0, 1.0, 2.0))
    u = packed.packed(x)
    wrong = check_grad(lambda v: packed.loss(v)[0], lambda v: packed.loss(v)[1], u)
    assert wrong < 1e-3 * max(1.0, float(np.linalg.norm(packed.loss(u)[1])))


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_the_same_bits_by_kernels(classes: int) -> None:
    kernels = gate.kernels("joint", 10**9)
    if kernels is None:
        pytest.skip("the kernels are not here: Numba is not installed, or they are switched off")
    one = problem(classes=classes)
    (fast, x), (slow, _) = paired(one), paired(one)
    fast._kernels, slow._kernels = kernels, None
    np.testing.assert_array_equal(fast.scores(x), slow.scores(x))
    for a, b in zip(*(fitted(j, tempered(j), Pull(3.0, 1.0, 1.0)) for j in (fast, slow)), strict=True):
        np.testing.assert_array_equal(a, b)


def loss_on_fresh(seen: dict[str, Any], fresh: dict[str, Any]) -> float:
    return tb.evaluate(tb.fit(seen, target="y"), fresh)["log_loss"]


def smooth(n: int, seed: int) -> dict[str, Any]:
    """What one number says turns round with the other."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0, 1, (2, n))
    return {"a": a, "b": b, "y": np.where(rng.random(n) < 1 / (1 + np.exp(-2 * a * b)), "yes", "no")}


def met_again(n: int, seed: int) -> dict[str, Any]:
    """Two numbers say which of some 300 things it is, and things are as they are."""
    rng, things = np.random.default_rng(seed), np.random.default_rng(50)
    at, kind = things.integers(0, 40, (300, 2)), things.random(300) < 0.5
    which = rng.integers(0, 300, n)
    seen = kind[which] ^ (rng.random(n) < 0.05)
    return {"a": at[which, 0] / 4, "b": at[which, 1] / 7, "y": np.where(seen, "yes", "no")}


@pytest.mark.parametrize("data", [smooth, met_again])
def test_what_is_smooth_and_what_is_met_again_are_both_found(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broad cells alone cannot tell things apart, fine cells alone need too many rows for what is smooth."""
    seen, fresh = data(1_500, 0), data(4_000, 1)
    of = "tallybayes.selection.choose.pairs."
    both = loss_on_fresh(seen, fresh)
    with monkeypatch.context() as patch:
        patch.setattr(of + "STRETCHES", BROAD)
        broad = loss_on_fresh(seen, fresh)
    with monkeypatch.context() as patch:
        patch.setattr(of + "BROAD", STRETCHES)
        fine = loss_on_fresh(seen, fresh)
    if data is smooth:
        assert both < broad + 0.01 and both < fine - 0.005
    else:
        assert both < fine + 0.02 and both < broad - 0.15


def test_the_last_fit_has_the_pairs_that_it_was_judged_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """By chance a pair may explain least where all rows are asked; the fits that judged had it."""
    proposed, asked = of_ladder.best_pairs, []

    def unlucky(pairs: Any, joint: Joint, fitted: Solution, **named: Any) -> list[ColumnPair]:
        found = proposed(pairs, joint, fitted)
        if joint.held == (0, 0):
            asked.append(named["anyway"])
            monkeypatch.setattr(of_pairs, "_gain", lambda *given: -1.0)
            found = proposed(pairs, joint, fitted, **named)
        return found

    monkeypatch.setattr(of_ladder, "best_pairs", unlucky)
    model = tb.fit(met_again(1_500, 0), target="y")
    assert asked == [frozenset({"a × b"})]
    assert [c.name for c in model.schema.counted if c.kind == "pair"] == ["a × b"]


def test_pairs_that_are_named_are_there_however_many_explain_more() -> None:
    of = problem()
    joint = of.joint(None, of.terms())
    x = tempered(joint)
    best = [p.name for p in of_pairs.best_pairs(of.pairs, joint, x, len(of.pairs), [p.name for p in of.pairs])]
    assert sorted(best) == sorted(p.name for p in of.pairs)
    found = [p.name for p in of_pairs.best_pairs(of.pairs, joint, x, 0, [best[-1], best[1]])]
    assert found == [best[1], best[-1]]


def test_a_smooth_pair_is_found_among_many_of_noise() -> None:
    """By fine cells of 600 rows it explains less than noise does; of all pairs that do most are noise."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        data: dict[str, Any] = {f"x{i}": rng.normal(0, 1, 600) for i in range(10)}
        data["y"] = np.where(rng.random(600) < 1 / (1 + np.exp(-1.5 * data["x0"] * data["x1"])), "yes", "no").tolist()
        of = dealt({k: list(v) for k, v in data.items()})[0]
        joint = of.joint(None, of.terms())
        all_of_them, few = (
            [p.name for p in of_pairs.best_pairs(of.pairs, joint, tempered(joint), few=f)] for f in (False, True)
        )
        assert few[0] == "x0 × x1" and len(few) <= 6 < 12 < len(all_of_them)
        found = [c.name for c in tb.fit(data, target="y").schema.counted if c.kind == "pair"]
        assert "x0 × x1" in found and len(found) <= 6
