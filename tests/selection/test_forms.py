"""Means of forms: their scores, their shares, and what the ladder makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_joint_fit import problem

from tallybayes.selection.choose import ladder as of_ladder
from tallybayes.selection.choose.forms import PRICE, effective_rows, mean_of, mean_of_scores, shares, wider
from tallybayes.selection.choose.ladder import Ladder
from tallybayes.selection.choose.losses import posterior
from tallybayes.selection.choose.pairs import best_pairs
from tallybayes.selection.choose.penalised import Pull, fitted, tempered
from tallybayes.selection.choose.placed import Summand


@pytest.mark.parametrize("classes", [2, 4])
def test_the_mean_of_solutions_scores_as_the_mean_of_their_scores(classes: int) -> None:
    one, _, _ = problem(classes=classes)
    joint = one.joint(None, one.terms())
    first = tempered(joint)
    second = fitted(joint, first, Pull(3.0, 1.0))
    share = np.array([0.25, 0.75])
    expected = 0.25 * joint.scores(first) + 0.75 * joint.scores(second)
    np.testing.assert_allclose(joint.scores(mean_of([first, second], share)), expected, rtol=0, atol=1e-12)


def test_a_form_without_pairs_has_no_corrections_for_them() -> None:
    one, _, _ = problem()
    joint = one.joint(None, one.terms())
    first = tempered(joint)
    chosen = best_pairs(one.pairs, joint, first)
    both, start = wider(joint, first, chosen)
    second = fitted(both, start, Pull(3.0, 1.0, 3.0))
    expected = 0.5 * joint.scores(first) + 0.5 * both.scores(second)
    found = both.scores(mean_of([first, second], np.array([0.5, 0.5])))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("width", [1, 3])
def test_shares_lose_least_at_their_price(width: int) -> None:
    """Beside every mean on a grid."""
    rng = np.random.default_rng(width)
    labels = rng.integers(0, max(width, 2), 200)
    truth = np.where(labels == 1, 1.0, -1.0)[:, None] if width == 1 else np.eye(width)[labels] * 2.0
    scores = [
        np.zeros((200, width)),
        0.7 * truth + rng.normal(0, 1, (200, width)),
        truth + rng.normal(0, 2, (200, width)),
    ]
    weights = rng.uniform(0.5, 1.5, 200)

    def priced(share: np.ndarray) -> float:
        losses, _ = posterior(mean_of_scores(scores, share), labels)
        return float(weights @ losses) + PRICE * float(share @ np.arange(3))

    found = shares(scores, labels, weights)
    assert found.sum() == pytest.approx(1.0)
    assert ((found == 0) | (found >= 0.1)).all()
    steps = np.arange(0.0, 1.01, 0.1)
    grid = [np.array([1 - b - c, b, c]) for b in steps for c in steps if b + c < 1.0 + 1e-9]
    assert priced(found) <= min(map(priced, grid)) + 0.02
    whole = shares(scores, labels, weights, whole=True)
    assert sorted(whole.tolist()) == [0.0, 0.0, 1.0]
    assert priced(whole) == pytest.approx(min(priced(row) for row in np.eye(3)))


def test_what_gains_nothing_has_no_share() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300)
    worse = np.where(labels == 1, -0.1, 0.1)[:, None] + rng.normal(0, 0.5, (300, 1))
    scores = [np.zeros((300, 1)), worse]
    assert shares(scores, labels, np.ones(300)).tolist() == [1.0, 0.0]


def test_the_ladder_writes_down_what_it_was_judged_by() -> None:
    """The fit of all rows is the mean of the fits of the forms, with the shares that judged."""
    one, _, _ = problem(400)
    ladder = Ladder(one)
    means = []
    judged = ladder._mixed

    def mixed(forms):  # type: ignore[no-untyped-def]
        means.append(judged(forms))
        return means[-1]

    ladder._mixed = mixed  # type: ignore[method-assign]
    choice = ladder.climb()
    (rung,) = means
    assert rung.parts and sum(by for by, _ in rung.parts) == pytest.approx(1.0)
    joint = one.joint(None, one.terms())
    each = []
    for _, path in rung.parts:
        at, x, paired = joint, tempered(joint), False
        for pull in path[1:]:
            if pull.pairs < np.inf and not paired:
                (at, x), paired = wider(at, x, best_pairs(one.pairs, at, x)), True
            x = fitted(at, x, pull)
        each.append(at.scores(x))
    expected = mean_of_scores(each, np.array([by for by, _ in rung.parts]))
    np.testing.assert_allclose(choice.joint.scores(choice.solution), expected, rtol=0, atol=1e-9)
    losses, _ = posterior(choice.scores[choice.judged], one.rows.labels[choice.judged])
    np.testing.assert_allclose(losses, choice.row_losses[choice.judged], rtol=0, atol=1e-9)


@pytest.mark.parametrize("weight", [1.0, 0.1, 7.3])
def test_the_bar_of_equal_weights_is_that_of_so_many_rows(weight: float) -> None:
    assert effective_rows(np.full(37, weight)) == 37.0


def test_the_bar_rises_where_few_rows_have_most_of_the_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    one, _, _ = problem(400)
    ladder = Ladder(one)
    joints = {s: one.joint(s, one.terms()) for s in ladder.judges}
    first = ladder._rung("one temperature", (Pull(np.inf),), joints, {s: tempered(j) for s, j in joints.items()})
    judged = int(np.count_nonzero(~np.isnan(first.losses)))
    assert judged == 400
    monkeypatch.setattr(of_ladder, "shares", lambda scores, labels, weights, whole: np.array([0.0, 1.0]))

    def taken(gain: float, weights: np.ndarray) -> bool:
        ladder.weights = weights
        return ladder._mixed([first, replace(first, losses=first.losses - gain)]) is not first

    def bar(rows: int) -> float:
        return of_ladder.NATS * (1 + 25 / rows) / rows

    few = np.where(np.arange(400) % 10 == 0, 1.0, 1e-9)  # as good as 40 rows
    for gain, rows, weights in ((bar(400), 400, np.full(400, 0.3)), (bar(40), 40, few)):
        assert effective_rows(weights) == pytest.approx(rows)
        assert not taken(gain * 0.999, weights) and taken(gain * 1.001, weights)
    spread = np.full(400, 0.1)
    assert ladder._chance(spread) == of_ladder.GAIN  # nothing varies
    gains = np.random.default_rng(0).normal(0.0, 1.0, 400)
    assert ladder._chance(gains) == pytest.approx(of_ladder.ERRORS * (1 + 75 / 40) * ladder.error(gains), rel=1e-6)


def test_a_smooth_effect_costs_the_same_in_few_cells_as_in_many() -> None:
    """Rows as many as cells: the pull on one slope along the line and on its level, whatever the stretches."""
    costs = []
    for cells in (400, 1_600, 6_400):
        term = Summand.of_column("x", np.arange(cells, dtype=np.int32), cells, np.ones(cells, dtype=bool), True)
        assert term.n_rows == pytest.approx(np.sqrt(cells), abs=1)
        assert (np.diff(term.corrected[0, :-1]) >= 0).all()
        line = np.linspace(-1.0, 1.0, term.n_rows)
        a, b = term.edges
        costs.append((float(term.stiff @ (line[b] - line[a]) ** 2), float(term.ridge @ line**2)))
    np.testing.assert_allclose(costs, costs[:1] * 3, rtol=0.1)


def test_few_cells_are_corrected_one_by_one() -> None:
    codes = np.repeat(np.arange(5, dtype=np.int32), 20)
    term = Summand.of_column("x", codes, 6, np.array([True, True, False, True, True, False]), True)
    assert term.n_rows == 4 and term.stiff.tolist() == [1.0] * 3
    assert term.corrected.tolist() == [[0, 1, 4, 2, 3, 4, 4]]
