"""Whether neighbouring values of a number are alike, and what becomes of those that are names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.selection.choose.values import along_the_line, differ

FOLDS = 10


def counts_of(value: np.ndarray, label: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Values × classes × folds, without values that no row has."""
    out = np.zeros((int(value.max()) + 1, int(label.max()) + 1, FOLDS))
    np.add.at(out, (value, label, fold), 1.0)
    return out[out.sum(axis=(1, 2)) > 0]


def told_by_hand(n: np.ndarray, group: np.ndarray, m: float) -> list[float]:
    """What each value tells beyond its stretch, row by row."""
    told = []
    for v in range(len(n)):
        total = 0.0
        for y in range(n.shape[1]):
            for fold in range(n.shape[2]):
                others = np.delete(n, fold, axis=2).sum(axis=2)
                together = others[group == group[v]].sum(axis=0) + 0.5
                share = together[y] / together.sum()
                p = (others[v, y] + m * share) / (others[v].sum() + m)
                total += n[v, y, fold] * np.log(p / share)
        told.append(total)
    return told


def drawn(n: int, values: int, effect: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    value = rng.integers(0, values, n)
    label = (rng.random(n) < 1 / (1 + np.exp(-effect[value]))).astype(int)
    return counts_of(value, label, rng.permutation(np.arange(n) % FOLDS))


def asked(n: np.ndarray) -> bool:
    return differ(n, along_the_line(n.sum(axis=(1, 2)).astype(int)))


@pytest.mark.parametrize("seed", range(30))
def test_the_answer_is_that_of_the_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = drawn(150, 20, rng.normal(size=20) * rng.uniform(0, 4), seed)
    group = along_the_line(n.sum(axis=(1, 2)).astype(int))
    best = max((told_by_hand(n, group, m) for m in (64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0)), key=sum)
    error = float(np.sqrt(np.square(best).sum()))
    assert differ(n, group) == (sum(best) > max(3.0, 2 * error))


def test_names_that_are_numbers_differ_and_noise_and_smooth_effects_do_not() -> None:
    places, rng = np.arange(100), np.random.default_rng(1)
    names = [asked(drawn(1000, 100, rng.normal(size=100), seed)) for seed in range(40)]
    noise = [asked(drawn(1000, 100, np.zeros(100), seed)) for seed in range(200)]
    smooth = [asked(drawn(1000, 100, 2 * np.sin(places / 16), seed)) for seed in range(100)]
    assert sum(names) >= 30
    assert sum(noise) <= 4
    assert sum(smooth) <= 4


def test_values_that_one_fold_has_alone_tell_nothing() -> None:
    """Patients whose rows are held out together; their codes say nothing of others."""
    patient = np.repeat(np.arange(100), 10)
    n = counts_of(patient, patient % 2, patient % FOLDS)
    assert not asked(n)
    assert asked(counts_of(patient, patient % 2, np.arange(1000) % FOLDS))


def test_few_values_are_not_asked() -> None:
    assert not asked(drawn(1000, 8, np.array([9.0, -9.0] * 4), 0))


def wards(n: int, seed: int, effect: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    ward, age = rng.integers(0, len(effect), n), rng.normal(50, 15, n).round()
    late = rng.random(n) < 1 / (1 + np.exp(-effect[ward] - (age - 50) / 15))
    return {"ward": ward * 10 + 1000, "age": age, "late": np.where(late, "late", "in time")}


def test_codes_of_wards_are_believed_one_by_one() -> None:
    effect = np.random.default_rng(5).normal(size=120) * 2
    model, fresh = tb.fit(wards(2500, 1, effect), "late"), wards(4000, 2, effect)
    as_names = tb.fit(wards(2500, 1, effect), "late", kinds={"ward": "category"})
    unordered, named = (tb.evaluate(m, fresh)["log_loss"] for m in (model, as_names))
    assert unordered == pytest.approx(named, abs=0.02)
    log_odds = effect[(fresh["ward"] - 1000) // 10] + (fresh["age"] - 50) / 15
    p = np.where(fresh["late"] == "late", 1 / (1 + np.exp(-log_odds)), 1 / (1 + np.exp(log_odds)))
    assert unordered < -np.log(p).mean() + 0.06  # of what could be known
    alike = tb.fit({**wards(2500, 1, effect), "ward": wards(2500, 3, effect)["ward"]}, "late")  # that say nothing
    steps = {
        m: len(m.settings.corrections["ward"].cuts) if "ward" in m.settings.corrections else 0 for m in (model, alike)
    }
    assert steps[model] > 90 > 50 >= steps[alike]


def test_their_explanations_add_up_and_a_file_keeps_them(tmp_path: Path) -> None:
    effect = np.random.default_rng(5).normal(size=120) * 2
    model, fresh = tb.fit(wards(2500, 1, effect), "late"), wards(40, 2, effect)
    rows = {name: fresh[name] for name in ("ward", "age")}
    for number, p in enumerate(model.predict_proba(rows)):
        told = model.explain(rows, number)
        odds = told.total - told.total.max()
        np.testing.assert_allclose(np.exp(odds) / np.exp(odds).sum(), p, rtol=0, atol=1e-12)
    model.save(tmp_path / "wards.tb.parquet")
    np.testing.assert_array_equal(tb.load(tmp_path / "wards.tb.parquet").predict_proba(rows), model.predict_proba(rows))
