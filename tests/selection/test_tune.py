"""Tuning: planted answers are found, the figures are those of cross-validation, and bad requests are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.selection.choose.likeliest import likeliest_alpha

F = tb.families


def planted(n: int = 300, seed: int = 0) -> dict[str, list[Any]]:
    """Numbers in two heaps of which one class has both and the other the middle; a category, and words."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    side = rng.choice([-3.0, 3.0], n)
    words = np.array(["red", "green", "blue", "grey"])
    return {
        "heaps": np.round(np.where(y == 1, side, 0.0) + rng.normal(0, 0.7, n), 3).tolist(),
        "colour": words[np.where(rng.random(n) < 0.6, y, rng.integers(0, 4, n))].tolist(),
        "text": [" ".join(rng.choice(["win", "now", "free"] if v else ["see", "you", "free"], 5)) for v in y],
        "y": [["ham", "spam"][v] for v in y],
    }


SCHEMA = tb.Schema(
    [
        tb.Column("heaps", "number", cells=tb.infer(planted(), target="y")["heaps"].cells),
        tb.Column("colour", "category"),
        tb.Column("text", "text"),
    ],
    target="y",
)


def test_f4_tuning_by_held_out_rows_finds_the_planted_family() -> None:
    data = planted()
    only = tb.Schema([SCHEMA["heaps"], SCHEMA["colour"]], target="y")
    found = tb.tune(data, only, families={"heaps": ["gaussian-shared", "kernel"]})
    assert isinstance(found, tb.Tuned)
    assert found.settings.families["heaps"].name == "kernel"  # a shared bell curve cannot see two heaps
    assert found.after < found.before - 0.1
    assert found.model.settings == found.settings
    table = found.to_pandas()
    best = table[table["column"] == "heaps"].sort_values("log loss").iloc[0]
    assert "kernel" in best["family"]
    assert best["log loss"] == pytest.approx(found.after, abs=1e-9)
    assert "nested" not in repr(found)
    assert "kernel" in repr(found)


def test_f4_counts_are_tried_as_levels_and_texts_with_fewer_words() -> None:
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, 300)
    data = {
        "parity": (2 * rng.integers(0, 4, 300) + np.where(rng.random(300) < 0.9, y, 1 - y)).astype(float).tolist(),
        "text": [" ".join([*rng.choice(["win", "see"], 3), f"only{i}"]) for i in range(300)],
        "y": [["even", "odd"][v] for v in y],
    }
    parity = tb.Column("parity", "number", cells=tb.Cells(0.0, 0, points=tuple(range(8))))
    schema = tb.Schema([parity, tb.Column("text", "text")], target="y")
    found = tb.tune(data, schema, seed=2)
    assert isinstance(found, tb.Tuned)
    tried = {(c.column, c.family, c.smoothing): c.loss for c in found.tried}
    candidates = {
        F.Levels(): "parity",
        F.Multinomial(presence=True, select=F.Selection(min_rows=2)): "text",
        F.Multinomial(presence=True, select=F.Selection(top=1_000)): "text",
    }
    for family, column in candidates.items():
        smoothing = tb.Laplace(0.3)
        other = replace(
            found.plain,
            families={**found.plain.families, column: family},
            smoothing={**found.plain.smoothing, column: smoothing},
        )
        again = tb.cross_validate(data, schema, settings=other, folds=5, stratify=True, seed=2)
        assert tried[column, family, smoothing] == pytest.approx(again["log_loss"], abs=1e-9)
        assert again["log_loss"] < 0.45  # no bell and no Poisson sees odd and even


def test_f4_the_figures_are_those_of_cross_validation() -> None:
    data = planted(150)
    found = tb.tune(data, SCHEMA, smoothing=[tb.Laplace(0.1), tb.Laplace(2.0)], seed=4)
    assert isinstance(found, tb.Tuned)
    start = tb.Settings(
        families={n: next(c.family for c in found.tried if c.column == n) for n in SCHEMA.names},
    )
    by_hand = tb.cross_validate(data, SCHEMA, settings=[start, found.plain], folds=5, stratify=True, seed=4)
    losses = [by_hand.figure("log_loss", n)[0] for n in by_hand.names]
    assert found.before == pytest.approx(losses[0], abs=1e-12)
    assert found.after == pytest.approx(losses[1], abs=1e-12)


def test_every_candidate_is_judged_with_the_others_as_chosen() -> None:
    data = planted(120)
    found = tb.tune(data, SCHEMA, smoothing=[tb.Laplace(0.1)], families={"text": ["multinomial"]})
    assert isinstance(found, tb.Tuned)
    chosen = {n: (found.plain.families[n], found.plain.smoothing_of(n)) for n in SCHEMA.names}
    at_the_end = [c for c in found.tried if (c.family, c.smoothing) == chosen[c.column]]
    assert {c.column for c in at_the_end} == set(SCHEMA.names)
    assert all(c.loss == pytest.approx(found.after, abs=1e-9) for c in at_the_end)
    assert min(c.loss for c in found.tried) > found.after - 1e-8  # nothing left to gain by one change


def test_priors_are_tried() -> None:
    data = planted(200)
    rare = [i for i, y in enumerate(data["y"]) if y == "ham" or i % 10 == 0]
    skewed = {n: [v[i] for i in rare] for n, v in data.items()}
    only = tb.Schema([SCHEMA["colour"]], target="y")
    found = tb.tune(skewed, only, priors=["uniform", "counted"])
    assert isinstance(found, tb.Tuned)
    assert found.settings.prior == "counted"


def test_nested_is_the_honest_figure() -> None:
    rng = np.random.default_rng(1)
    noise = {f"c{i}": rng.integers(0, 6, 60).astype(str).tolist() for i in range(8)} | {"y": list("pq") * 30}
    schema = tb.Schema([tb.Column(f"c{i}", "category") for i in range(8)], target="y")
    found = tb.tune(noise, schema, nested=True, folds=3, smoothing=[tb.Laplace(a) for a in (0.01, 1.0, 100.0)])
    assert isinstance(found, tb.Tuned)
    assert found.nested is not None
    assert found.nested["log_loss"] > found.after  # what was chosen for being low flatters
    assert "nested" in repr(found)


def test_from_the_tally_alone_alpha_is_the_likeliest() -> None:
    tally = tb.count(planted(), SCHEMA)
    found = tb.tune(tally)
    assert isinstance(found, tb.Settings)
    assert found.smoothing == {n: tb.Laplace(likeliest_alpha(tally, n)) for n in ("colour", "text")}
    kept = tb.tune(tally, settings=tb.Settings(smoothing={"colour": tb.Laplace(7.0)}, prior="uniform"))
    assert isinstance(kept, tb.Settings)
    assert kept.smoothing_of("colour") == tb.Laplace(7.0)
    assert kept.prior == "uniform"


def test_a_candidate_under_which_values_are_impossible_loses() -> None:
    """Without smoothing a value seen in one class only makes the other impossible: −∞ must not become NaN."""
    rng = np.random.default_rng(2)
    n = 80
    data = {
        "a": [f"v{i}" for i in rng.integers(0, 30, n)],
        "b": [f"w{i}" for i in rng.integers(0, 30, n)],
        "y": list("pq") * (n // 2),
    }
    schema = tb.Schema([tb.Column("a", "category"), tb.Column("b", "category")], target="y")
    found = tb.tune(data, schema, smoothing=[tb.MaximumLikelihood(), tb.Laplace(1.0), tb.Laplace(50.0)])
    assert isinstance(found, tb.Tuned)
    assert all(np.isfinite(c.loss) for c in found.tried)
    assert tb.MaximumLikelihood() not in found.settings.smoothing.values()  # type: ignore[union-attr]
    hopeless = tb.tune(data, schema, smoothing=[], settings=tb.Settings(smoothing=tb.MaximumLikelihood()))
    assert isinstance(hopeless, tb.Tuned)
    with pytest.warns(tb.TallybayesWarning, match="probability 0"):
        again = tb.cross_validate(data, schema, settings=hopeless.plain, folds=5, stratify=True)
    assert hopeless.after == pytest.approx(again["log_loss"], abs=1e-12)


def test_a_leak_that_only_the_held_out_row_has_is_not_found() -> None:
    """Every row carries a value and a word of its own that name its class: counted they tell all, held out nothing."""
    rng = np.random.default_rng(3)
    y = rng.choice(["p", "q"], 120).tolist()
    data = {
        "id": [f"{v} {i}" for i, v in enumerate(y)],
        "note": [f"word{i}" for i in range(120)],
        "y": y,
    }
    schema = tb.Schema([tb.Column("id", "category"), tb.Column("note", "text")], target="y")
    found = tb.tune(data, schema)
    assert isinstance(found, tb.Tuned)
    assert found.after > np.log(2) - 0.02
    right = np.mean(found.model.predict(data) == np.array(y))
    assert right > 0.95  # the same leak, seen


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ({"families": {"heap": ["gaussian"]}}, "'heap' that is not counted"),
        ({"families": {"heaps": []}}, "nothing to choose among"),
        ({"families": {"heaps": ["gausian"]}}, "no family 'gausian'"),
        ({"priors": []}, "nothing to choose among"),
        ({"settings": tb.Settings(lengths={"text": -0.5})}, "length exponents"),
        ({"settings": tb.Settings(isotonic=tb.Isotonic((0.0,), (0.0,)))}, "isotonic"),
    ],
)
def test_bad_requests_are_refused(how: dict[str, Any], found: str) -> None:
    with pytest.raises(tb.SettingsError, match=found) as caught:
        tb.tune(planted(40), SCHEMA, **how)
    assert "Hint" in str(caught.value)


def test_a_tally_has_no_rows_to_hold_out() -> None:
    tally = tb.count(planted(40), SCHEMA)
    for how in ({"nested": True}, {"families": {"heaps": ["kernel"]}}, {"smoothing": [tb.Laplace(1.0)]}):
        with pytest.raises(tb.SettingsError, match="no rows"):
            tb.tune(tally, **how)  # type: ignore[arg-type]
    with pytest.raises(tb.SettingsError, match="nothing to choose among"):
        tb.tune(planted(40), tb.Schema([], target="y"))
