"""The joint fit of weights and corrections: its tables, its gradient, and the same bits with kernels and without."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from dealt import FOLDS, dealt
from scipy.optimize import check_grad

import tallybayes as tb
from tallybayes.exact.kernels import gate
from tallybayes.families.blend import bounded
from tallybayes.families.smoothing import BackOff, Laplace
from tallybayes.selection.choose.columns import Category, DealtRows, Number, all_entries, cells_for
from tallybayes.selection.choose.forms import merged
from tallybayes.selection.choose.joint import Dense, Joint, Solution
from tallybayes.selection.choose.ladder import Ladder
from tallybayes.selection.choose.losses import against_first, both_classes, posterior
from tallybayes.selection.choose.penalised import Pull, _Packed, _Tied, fitted, tempered
from tallybayes.selection.choose.placed import ShortTables
from tallybayes.selection.choose.problem import Problem
from tallybayes.selection.choose.text.effects import Shared, TextScores
from tallybayes.selection.choose.values import back_off
from tallybayes.selection.choose.written import READ_BY


def table(n: int, classes: int, seed: int = 0) -> dict[str, list[Any]]:
    """Numbers (one with repeated values, one with missing ones) and categories that depend on each other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    x = rng.normal(y, 1.0)
    return {
        "x": [None if rng.random() < 0.1 else float(np.round(v, 3)) for v in x],
        "steps": (np.round(x + rng.normal(0, 0.5, n))).tolist(),
        "c": [f"v{v}" for v in (y + rng.integers(0, 3, n)) % 4],
        "d": [None if rng.random() < 0.1 else "uvw"[v] for v in rng.integers(0, 3, n)],
        "y": [f"k{v}" for v in y],
    }


def problem(
    n: int = 240, classes: int = 2, seed: int = 0, dense: bool = False, given: Laplace | BackOff | None = None
) -> tuple[Problem, tb.Schema, Any]:
    """The columns of a table whose rows stand fold by fold."""
    one, schema, read = dealt(table(n, classes, seed), given)
    rng = np.random.default_rng(1)
    parts = against_first(rng.normal(0, 1, (n, classes)))
    words = [Dense("words", parts, np.log(rng.integers(1, 30, n)))] if dense else []
    return replace(one, dense=words), schema, read


def some_solution(joint: Joint, seed: int = 3) -> Solution:
    rng = np.random.default_rng(seed)
    x = joint.start()
    return Solution(
        rng.random(len(x.weights)), -0.5 * rng.random(len(x.exponents)), rng.normal(0, 0.3, x.offsets.shape),
        rng.normal(0, 0.3, x.added.shape),
    )  # fmt: skip


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("whole", [False, True], ids=["without a fold and a split", "all rows"])
@pytest.mark.parametrize("given", [Laplace(), BackOff(7.0)], ids=str)
def test_tables_are_what_the_families_say_of_the_folds_that_are_counted(
    classes: int, whole: bool, given: Laplace | BackOff
) -> None:
    one, schema, read = problem(classes=classes, given=given)
    training = np.ones((1, FOLDS), dtype=bool) if whole else one.training(2)
    data = table(240, classes)
    for column, coded in zip(schema.counted, one.coded, strict=True):
        block, there = read.blocks[column.name], coded.codes < coded.size
        for k, counted in enumerate(training):
            kept = counted[one.rows.folds]
            rows = {n: [v for v, t in zip(vs, kept, strict=True) if t] for n, vs in data.items()}
            tally = tb.count(rows, tb.Schema([column], target="y"))
            for r, family in enumerate(READ_BY if isinstance(coded, Number) else (None,)):
                if isinstance(family, tb.families.Bins) and not whole:
                    continue  # a family cuts its bins by the rows it has counted, a table by all of them
                by = given if isinstance(coded, Category) else Laplace()
                settings = tb.Settings(families={} if family is None else {column.name: family}, smoothing=by)
                said = tally.model(settings).beliefs[column.name].parts(block)
                found = coded.tables(training)[r, k][coded.codes]
                assert (found[~there] == 0).all()
                own = there & np.isin(coded.codes, _alone(coded)) if isinstance(coded, Number) else there
                expected = said if family is None else bounded(said)
                np.testing.assert_allclose(against_first(found[own]), against_first(expected[own]), atol=1e-6)


def left_out(n: np.ndarray, m: float) -> float:
    """What the other rows of a value say of each row's class, one after the other; with what is believed before."""
    total, share = -0.5 * np.log(m / 4) ** 2, n.sum(axis=0) / n.sum()
    for v, y in np.argwhere(n):
        for _ in range(int(n[v, y])):
            others = n[v] - np.eye(n.shape[1])[y]
            total += np.log((others[y] + m * share[y]) / (others.sum() + m))
    return total


@pytest.mark.parametrize("seed", range(12))
def test_values_back_off_as_rows_that_are_left_out_find_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spread = 2.0 ** rng.integers(-3, 8)
    chances = rng.dirichlet(spread * rng.dirichlet([5.0] * 3), 40)
    n = np.array([rng.multinomial(rng.integers(0, 12), p) for p in chances]).astype(float)
    found = back_off(n)
    each = {m: left_out(n, m) for m in 2.0 ** np.arange(7)}
    assert each[found] == pytest.approx(max(each.values()), abs=1e-9)


def test_noise_backs_off_and_a_law_does_not() -> None:
    rng = np.random.default_rng(0)
    assert back_off(rng.multinomial(10, [0.8, 0.2], 300).astype(float)) == 64
    assert back_off(np.repeat(np.eye(2) * 10, 150, axis=0)) == 1
    assert back_off(np.zeros((4, 2))) == back_off(np.zeros((0, 2))) == 1
    assert np.isfinite(back_off(rng.random((30, 3))))  # rows that weigh less than one


def test_a_strength_is_found_without_the_rows_that_judge() -> None:
    one, _, _ = problem()
    column = next(c for c in one.coded if isinstance(c, Category))
    rows = one.rows
    judged = np.flatnonzero(one.splits == 2)
    labels = rows.labels.copy()
    labels[judged] = 1 - labels[judged]
    other = replace(column, rows=replace(rows, labels=labels))
    fitting = one.training(2)[rows.folds[one.splits != 2]]
    assert np.array_equal(column.tables(fitting), other.tables(fitting))


def _alone(coded: Number) -> np.ndarray:
    """The cells of a number that hold one value: of the others the tables have the middle."""
    return np.array([c for c in range(coded.size) if len(set(coded.z[coded.codes == c].tolist())) <= 1])


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("pull", [None, Pull(3.0), Pull(3.0, 0.7, 2.0)], ids=str)
def test_the_gradient_is_that_of_the_loss(classes: int, pull: Pull | None) -> None:
    one, _, _ = problem(classes=classes, dense=True)
    terms = [*one.terms(), *(p.term() for p in one.pairs[:2])]
    joint = one.joint(1, one.terms())
    joint = Joint(
        joint.rows, terms, [*joint.tables, None, None], joint.log_prior, joint.training, joint.held, joint.dense
    )  # fmt: skip
    packed: _Packed | _Tied
    if pull is None:
        packed, u = _Tied(joint, joint.start()), np.array([0.4, -0.7])
    else:
        packed = _Packed(joint, joint.start(), pull)
        u = packed.packed(some_solution(joint))
    wrong = check_grad(lambda v: packed.loss(v)[0], lambda v: packed.loss(v)[1], u)
    assert wrong < 1e-3 * max(1.0, float(np.linalg.norm(packed.loss(u)[1])))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("cells", [False, True], ids=["a text alone", "beside cells"])
@pytest.mark.parametrize("tokens", [(1, 6), (300, 380), (4_000, 9_000)], ids=["words", "characters", "books"])
def test_one_temperature_of_long_texts_is_the_best_there_is(tokens: tuple[int, int], cells: bool, classes: int) -> None:
    """Length to an exponent is nearly a temperature: they are sought together, and none of them runs away."""
    one, _, _ = problem(classes=classes)
    rng, n = np.random.default_rng(3), len(one.rows.labels)
    length = rng.integers(*tokens, n)
    said = (np.eye(classes)[one.rows.labels] + rng.normal(0, 2.0, (n, classes))) * length[:, None] ** 0.6
    words = Dense("words", against_first(said), np.log(length))
    whole = one.joint(1, one.terms())
    joint = Joint(
        one.rows, whole.terms if cells else [], whole.tables if cells else [], whole.log_prior, whole.training,
        whole.held, [words],
    )  # fmt: skip
    x, tied = tempered(joint), _Tied(joint, joint.start())
    tau = float(x.weights[-1])
    assert 0.01 < tau < 5.0 and -1.5 < x.exponents[0] < 0.5
    np.testing.assert_allclose(x.weights, tau * joint.even)
    found = tied.loss(np.array([np.log(tau), *x.exponents]))[0]
    grid = [tied.loss(np.array([t, e]))[0] for t in np.linspace(-6, 6, 49) for e in np.linspace(-1.5, 0.5, 33)]
    assert found < min(grid) + 1e-3


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("dense", [False, True], ids=["cells", "and a text"])
@pytest.mark.parametrize("short", [0, 10**9], ids=["reader by reader", "all readers at once"])
def test_kernels_and_reference_give_the_same_bits(
    classes: int, dense: bool, short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = gate.kernels("joint", 10**9)
    if kernels is None:
        pytest.skip("the kernels are not here: Numba is not installed, or they are switched off")
    monkeypatch.setattr("tallybayes.selection.choose.joint._SHORT_TABLE", short)
    one, _, _ = problem(classes=classes, dense=dense)
    fast, slow = one.joint(1, one.terms()), one.joint(1, one.terms())
    fast._kernels, slow._kernels = kernels, None
    x = some_solution(fast)
    np.testing.assert_array_equal(fast.scores(x), slow.scores(x))
    for pull in (Pull(3.0), Pull(3.0, 1.0)):
        for a, b in zip(fitted(fast, tempered(fast), pull), fitted(slow, tempered(slow), pull), strict=True):
            np.testing.assert_array_equal(a, b)


def test_sums_by_cell_are_the_same_bits_for_every_number_of_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are added up by blocks of two, four and eight classes, of which the last may overlap the one before."""
    kernels = gate.kernels("joint", 10**9)
    if kernels is None:
        pytest.skip("the kernels are not here: Numba is not installed, or they are switched off")
    monkeypatch.setattr("tallybayes.selection.choose.joint._NEAR", 150)  # a few rows at a time
    monkeypatch.setattr("tallybayes.selection.choose.joint._SHORT_RUN", 0)  # however short runs are
    one, _, _ = problem()
    rng = np.random.default_rng(0)
    for width in range(1, 43):
        spoken = [rng.normal(0, 1, (2, len(used), width)) for used in one._placed.used]
        prior = rng.normal(0, 1, (one.rows.n_folds, width))
        fast, slow = (Joint(one.rows, one.terms(), spoken, prior, one.training(1), (50, 90)) for _ in range(2))
        fast._kernels, slow._kernels = kernels, None
        x = some_solution(fast)
        np.testing.assert_array_equal(fast.scores(x), slow.scores(x))
        residual = rng.normal(0, 1, (fast.n, width))
        expected = slow.sums(residual)
        runs = [fast._runs(some) for some in fast.fitting]
        assert width == 1 or all(each is not None for each in runs)  # by runs of rows of one cell, and one by one
        np.testing.assert_array_equal(fast.sums(residual), expected)
        fast._sorted = {some.start: None for some in fast.fitting}
        np.testing.assert_array_equal(fast.sums(residual), expected)
        for square in (False, True):
            np.testing.assert_array_equal(fast.heard(expected, square), slow.heard(expected, square))


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_readers_say_the_same_bits_one_by_one_and_all_at_once(classes: int) -> None:
    one, _, _ = problem(classes=classes)
    one = replace(one, coded=[*one.coded[::2], *one.coded[1::2]])  # a category between two numbers
    by_reader, at_once = one.joint(1, one.terms()), one.joint(1, one.terms())
    short = ShortTables.of(at_once.spans, at_once.logs)
    assert [type(entries) for entries, _, _ in short.nth] == [slice, np.ndarray, np.ndarray, np.ndarray]
    vars(by_reader).update(_kernels=None, _short=None)
    vars(at_once).update(_kernels=None, _short=short)
    x = some_solution(at_once)
    np.testing.assert_array_equal(by_reader.scores(x), at_once.scores(x))
    sums = by_reader.sums(np.random.default_rng(0).normal(0, 1, (at_once.n, at_once.width)))
    for square in (False, True):
        np.testing.assert_array_equal(by_reader.heard(sums, square), at_once.heard(sums, square))
        assert np.abs(at_once.heard(sums, square)).min() > 0


def test_scores_are_the_sum_in_the_formula() -> None:
    one, _, _ = problem(classes=3, dense=True)
    joint = one.joint(0, one.terms())
    x = some_solution(joint)
    scores = joint.scores(x)
    for i in (0, 50, 239):
        fold = one.rows.folds[i]
        expected = joint.log_prior[fold] + x.offsets
        reader = row = 0
        for coded, term in zip(one.coded, joint.terms, strict=True):
            for r in against_first(coded.tables(joint.training)):
                expected = expected + x.weights[reader] * r[fold, coded.codes[i]]
                reader += 1
            (at,) = term.corrected[:, coded.codes[i]]
            expected = expected + (x.added[row + at] if at < term.n_rows else 0.0)
            row += term.n_rows
        words = one.dense[0]
        assert words.log_length is not None
        expected = expected + x.weights[reader] * np.exp(x.exponents[0] * words.log_length[i]) * words.parts[i]
        np.testing.assert_allclose(scores[i], expected, atol=1e-12)


def test_rows_that_judge_have_no_part_in_what_they_judge() -> None:
    one, _, _ = problem()
    labels = one.rows.labels.copy()
    judged = one.splits == 3
    labels[judged] = 1 - labels[judged]
    rows = DealtRows(labels, one.rows.folds, one.rows.weights, 2, FOLDS)
    other = Problem(rows, [replace(c, rows=rows) for c in one.coded], [], [])
    for pull in (Pull(3.0), Pull(3.0, 1.0)):
        found = [fitted(p.joint(3, p.terms()), tempered(p.joint(3, p.terms())), pull) for p in (one, other)]
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_strong_pull_leaves_no_corrections_and_a_weak_one_fits_better() -> None:
    one, _, _ = problem()
    joint = one.joint(None, one.terms())
    plain = fitted(joint, tempered(joint), Pull(3.0))
    losses = []
    for strength in (1e9, 10.0, 0.1):
        x = fitted(joint, plain, Pull(3.0, strength))
        losses.append(float(posterior(joint.scores(x), one.rows.labels)[0].mean()))
        assert (np.abs(x.added).max() < 1e-4) == (strength == 1e9)
        assert (x.weights >= 0).all()
    assert losses[0] > losses[1] > losses[2]


def test_blended_readers_say_what_they_said() -> None:
    one, _, _ = problem(classes=3)
    joint = one.joint(None, one.terms())
    x = fitted(joint, tempered(joint), Pull(3.0))
    less, y = merged(joint, x)
    assert less.readers == len(one.coded) < joint.readers
    np.testing.assert_allclose(less.scores(y), joint.scores(x), atol=1e-9)


def test_two_classes_are_told_by_their_odds() -> None:
    logs = np.random.default_rng(0).normal(0, 1, (4, 2))
    np.testing.assert_allclose(np.diff(both_classes(against_first(logs), 2), axis=1), np.diff(logs, axis=1))
    many = np.random.default_rng(0).normal(0, 1, (4, 3))
    np.testing.assert_allclose(both_classes(against_first(many), 3).sum(axis=1), 0, atol=1e-12)


def test_wide_tables_and_many_classes_have_fewer_cells() -> None:
    assert cells_for(10, 2) == 256
    assert cells_for(2_000, 2) < cells_for(500, 2) < 256
    assert cells_for(16, 200) < 100
    assert cells_for(100_000, 1_000) == 16


def test_the_ladder_takes_what_gains_beyond_chance_only() -> None:
    one, _, _ = problem(800)
    choice = Ladder(one).climb()
    assert choice.form != ("one temperature",)
    rng = np.random.default_rng(5)
    noise = DealtRows(rng.integers(0, 2, 800), one.rows.folds, one.rows.weights, 2, FOLDS)
    blank = Problem(noise, [replace(c, rows=noise) for c in one.coded], [], [])
    refused = Ladder(blank).climb()
    assert refused.form == ("one temperature",)
    assert refused.losses["one temperature"] > np.log(2) - 0.01


@pytest.mark.parametrize("classes", [2, 9])
def test_columns_of_numbers_say_the_same_alone_and_together(classes: int) -> None:
    one, _, _ = problem(n=300, classes=classes)
    wider, _, _ = problem(n=300, classes=classes, seed=5)
    columns = [*one.coded, *wider.coded]
    each = [one.training(s) for s in (1, 0, None)]
    rng, used = np.random.default_rng(0), []
    for c in columns:
        every = FOLDS * (c.size + 1)
        last = c.size + (c.size + 1) * np.arange(FOLDS)  # what is missing says nothing
        used.append(np.unique(np.concatenate([rng.choice(every, every // 3), last])))
    for column, own, said in zip(columns, used, all_entries(columns, used, each), strict=True):
        for k, training in enumerate(each):
            table = column.tables(training)
            expected = table.reshape(len(table), -1, classes)[:, own]
            np.testing.assert_array_equal(said[:, k * len(own) : (k + 1) * len(own)], expected)


@pytest.mark.parametrize("classes", [2, 9])
def test_tables_of_all_splits_at_once_are_those_of_each(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    once, alone = problem(classes=classes)[0], problem(classes=classes)[0]
    assert once._at_once
    monkeypatch.setattr("tallybayes.selection.choose.problem._AT_ONCE", 0)
    assert not alone._at_once
    for split in (*range(5), None):
        one, other = (p.joint(split, p.terms()) for p in (once, alone))
        np.testing.assert_array_equal(one.logs, other.logs)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("most", [1, 3], ids=["once", "counted"])
def test_words_are_added_up_to_the_same_bits_by_kernels(classes: int, most: int) -> None:
    kernels = gate.kernels("joint", 10**9)
    if kernels is None:
        pytest.skip("the kernels are not here: Numba is not installed, or they are switched off")
    rng = np.random.default_rng(0)
    amounts = rng.integers(1, most + 1, (60, 40)) * (rng.random((60, 40)) < 0.3)
    rows = scipy.sparse.csr_array(amounts.astype(np.float64))
    rows = type(rows)((rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)), shape=rows.shape)
    fast, slow = Shared(rows, classes), Shared(rows, classes)
    vars(fast)["_kernels"], vars(slow)["_kernels"] = kernels, None
    added, residual = rng.normal(0, 1, (40, fast.effects)), rng.normal(0, 1, (60, classes))
    np.testing.assert_array_equal(fast.told(added), slow.told(added))
    np.testing.assert_array_equal(fast.slopes(residual), slow.slopes(residual))
    np.testing.assert_array_equal(fast.bends(residual), slow.bends(residual))


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("corrected", [False, True], ids=["as counted", "corrected"])
def test_the_scores_of_texts_are_the_same_bits_by_kernels(classes: int, corrected: bool) -> None:
    if gate.kernels("rows", 10**9) is None:
        pytest.skip("the kernels are not here: Numba is not installed, or they are switched off")
    rng = np.random.default_rng(classes)
    parts = tuple(rng.normal(0, 5, (300, classes)) for _ in range(3))
    given = parts, rng.normal(0, 1, (300, classes)), rng.integers(0, classes, 300), rng.random(300)
    fast, slow = TextScores(*given), TextScores(*given)
    vars(fast)["_kernels"], vars(slow)["_kernels"] = gate.kernels("rows", 10**9), None
    factors, told = rng.random((3, 300)), list(rng.normal(0, 1, (3 * corrected, 300, classes)))
    asked = rng.random(3), told, list(factors), rng.normal(0, 1, classes)
    for a, b in zip(fast.scores(*asked), slow.scores(*asked), strict=True):
        np.testing.assert_array_equal(a, b)
    (losses, residual), (others, expected) = (each.left_over(each.scores(*asked)[1]) for each in (fast, slow))
    np.testing.assert_array_equal(losses, others)
    np.testing.assert_array_equal(residual, expected)
    np.testing.assert_array_equal(fast.whole(residual), slow.whole(expected))
    np.testing.assert_array_equal(fast.scaled(residual, factors[0]), slow.scaled(expected, factors[0]))
