"""Straight effects: what a line costs, and that numbers which tell something only beside others are found."""

from __future__ import annotations

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.selection.choose.placed import Placed, Summand
from tallybayes.selection.choose.straight import SHARE, Straight

RNG = np.random.default_rng(3)


def placed(*lines: np.ndarray | None) -> Placed:
    """Terms of as many stretches as lines have places, of four where there is none."""
    terms = []
    for j, line in enumerate(lines):
        count = 4 if line is None else len(line)
        chain = np.arange(count - 1)
        edges = (chain, chain + 1) if line is not None else (np.zeros(0, dtype=np.int64),) * 2
        pulls, rows = (np.ones(count), np.ones(len(edges[0]))), np.arange(count + 1)[None]
        terms.append(Summand(f"x{j}", np.zeros(0, np.int32), count, rows, count, edges, *pulls, line=line))
    none = np.zeros((1, 0), np.int32)
    return Placed(None, terms, np.zeros((len(lines), 0), np.int32), [], none)  # type: ignore[arg-type]


def cost(of: Placed, ridge: np.ndarray, strength: np.ndarray, added: np.ndarray) -> float:
    """Of corrections, by the formula."""
    a, b, _ = of.edges
    return float((ridge * added**2).sum() + (strength[:, None] * (added[b] - added[a]) ** 2).sum())


@pytest.fixture
def some() -> tuple[Placed, np.ndarray, np.ndarray, Straight]:
    of = placed(np.linspace(-2, 2, 7), None, np.array([-1.0, -0.2, 0.1, 1.1]), None)
    ridge, strength = RNG.uniform(0.1, 1, (of.n_added, 1)), RNG.uniform(0.5, 2, len(of.edges[0]))
    found = Straight.of(of, ridge, strength)
    assert found is not None
    return of, ridge, strength, found


def test_slopes_are_those_that_leave_what_is_pulled_least(
    some: tuple[Placed, np.ndarray, np.ndarray, Straight],
) -> None:
    of, ridge, strength, straight = some
    added = RNG.normal(size=(of.n_added, 3))
    slopes = straight.slopes(added)
    assert slopes.shape == (2, 3)

    def left(by: np.ndarray) -> float:
        out = added.copy()
        straight.add_along(-by, out)
        return cost(of, ridge, strength, out)

    for _ in range(20):
        assert left(slopes) <= left(slopes + RNG.normal(size=slopes.shape) * 0.1)


def test_a_line_costs_its_share(some: tuple[Placed, np.ndarray, np.ndarray, Straight]) -> None:
    of, ridge, strength, straight = some
    slopes, along = RNG.normal(size=(2, 3)), np.zeros((of.n_added, 3))
    straight.add_along(slopes, along)
    held, slope = straight.held(slopes)
    assert held == pytest.approx(SHARE * cost(of, ridge, strength, along))
    step = 1e-6 * RNG.normal(size=slopes.shape)
    assert straight.held(slopes + step)[0] - held == pytest.approx(float((slope * step).sum()), rel=1e-4)
    np.testing.assert_allclose(straight.slopes(along), slopes)


def test_what_a_loss_feels_of_slopes_is_the_chain_rule(some: tuple[Placed, np.ndarray, np.ndarray, Straight]) -> None:
    of, _, _, straight = some
    weights = RNG.normal(size=(of.n_added, 2))  # of a loss that is Σ weights · δ
    slopes, along = RNG.normal(size=(2, 2)), np.zeros((of.n_added, 2))
    straight.add_along(slopes, along)
    assert float((weights * along).sum()) == pytest.approx(float((straight.felt(weights) * slopes).sum()))


def test_without_numbers_there_is_no_line() -> None:
    of = placed(None, None)
    assert Straight.of(of, np.ones((of.n_added, 1)), np.zeros(0)) is None


def heights(n: int, seed: int) -> dict[str, np.ndarray]:
    """A parent's height says nothing of a child's sex by itself, and much beside the child's height."""
    rng = np.random.default_rng(seed)
    girl, father, mother = rng.random(n) < 0.5, rng.normal(178, 7, n), rng.normal(165, 6, n)
    child = (father + mother) / 2 + np.where(girl, -6, 7) + rng.normal(0, 4, n)
    return {"father": father, "mother": mother, "child": child, "sex": np.where(girl, "girl", "boy")}


def test_columns_that_tell_something_beside_others_only_are_believed() -> None:
    model, fresh = tb.fit(heights(700, 0), "sex"), heights(5000, 1)
    beside = fresh["child"] - (fresh["father"] + fresh["mother"]) / 2
    log_odds = (6.5 * 2 * (beside - 0.5)) / 16  # of a boy
    p = 1 / (1 + np.exp(np.where(fresh["sex"] == "boy", -log_odds, log_odds)))
    known, found = -np.log(p).mean(), tb.evaluate(model, fresh)["log_loss"]
    assert found < known + 0.06
    told = model.settings.corrections["father"].added
    assert np.ptp(told[-1] - told[0]) > 1  # tall fathers have tall girls
