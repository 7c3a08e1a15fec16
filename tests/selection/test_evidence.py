"""α from the tally alone, against leaving out occurrences one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_folds import mixed, mixed_schema

import tallybayes as tb
from tallybayes.selection.choose.likeliest import left_out_likelihood, likeliest_alpha


def brute(words: list[tuple[str, str]], k: int, alpha: float) -> float:
    """Each (slot, class) foretold by all others."""
    total = 0.0
    for i, (slot, label) in enumerate(words):
        others = [w for j, w in enumerate(words) if j != i and w[1] == label]
        if others:
            same = sum(w[0] == slot for w in others)
            total += math.log((same + alpha) / (len(others) + alpha * k))
    return total


@pytest.mark.parametrize("alpha", [0.03, 1.0, 40.0])
def test_c8_likelihood_is_that_of_leaving_out_one_by_one(alpha: float) -> None:
    data = mixed(40, seed=9)
    tally = tb.count(data, mixed_schema(data))
    pairs = list(zip(data["colour"], data["y"], strict=True))
    colours = [(c, y) for c, y in pairs if c is not None]
    k = len({c for c, _ in colours})
    assert left_out_likelihood(tally, "colour", alpha) == pytest.approx(brute(colours, k, alpha), rel=1e-12)
    words = [(w, y) for ws, y in zip(data["bag"], data["y"], strict=True) for w in ws]
    assert left_out_likelihood(tally, "bag", alpha) == pytest.approx(brute(words, 3, alpha), rel=1e-12)
    declared = mixed_schema(data).with_column("colour", values=[*"abcdefgh", "never"])
    wide = tb.count(data, declared)
    assert left_out_likelihood(wide, "colour", alpha) == pytest.approx(brute(colours, 9, alpha), rel=1e-12)


def test_c8_the_likeliest_alpha_is_a_maximum() -> None:
    data = mixed(90, seed=2)
    tally = tb.count(data, mixed_schema(data))
    for column in ("colour", "text", "bag"):
        best = likeliest_alpha(tally, column)
        top = left_out_likelihood(tally, column, best)
        for alpha in np.geomspace(1e-5, 1e5, 60):
            assert left_out_likelihood(tally, column, float(alpha)) <= top + 1e-6 * abs(top)


def test_c8_alpha_by_held_out_and_cross_validated_log_loss() -> None:
    data = mixed(120, seed=3)
    alphas = (0.01, 0.1, 1.0, 10.0, 100.0)
    settings = {str(a): tb.Settings(smoothing=tb.Laplace(a)) for a in alphas}
    under = tb.Schema([tb.Column("colour", "category"), tb.Column("text", "text")], target="y")
    found = tb.cross_validate(data, under, settings=settings, stratify=True, folds=5)
    losses = {a: found.figure("log_loss", a)[0] for a in settings}
    assert found.best() == min(losses, key=losses.__getitem__)
    parts = tb.split(data, "y")
    tally = tb.count(parts["train"], under)  # counted once; every α asks the same tally
    held_out = {a: tb.evaluate(tally.model(s), parts["held_out"])["log_loss"] for a, s in settings.items()}
    for a, s in settings.items():
        p = tally.model(s).predict_proba(parts["held_out"])
        names = [str(c) for c in tally.model(s).classes]
        truth = [p[i, names.index(y)] for i, y in enumerate(parts["held_out"]["y"])]
        assert held_out[a] == pytest.approx(-np.mean(np.log(truth)), rel=1e-12)


def test_only_slots_have_an_alpha() -> None:
    data = mixed(20)
    with pytest.raises(tb.SettingsError, match="'size' is a number"):
        likeliest_alpha(tb.count(data, mixed_schema(data)), "size")
    one = tb.count({"x": ["a"], "y": ["p"]}, tb.Schema([tb.Column("x", "category")], target="y"))
    assert left_out_likelihood(one, "x", 1.0) == 0.0
    assert left_out_likelihood(tb.count({"x": ["a", "b"], "y": ["p", "p"]}, one.schema), "x", 0.0) == -math.inf
