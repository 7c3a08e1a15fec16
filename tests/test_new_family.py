"""A family made here, outside the package: the class below and the case are all it needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.families import Belief, Context, Family, Table, named, register
from tallybayes.families.moments import read_moments


@dataclass(frozen=True)
class Geometric(Family):
    """P(x) = p·(1 − p)^x for x = 0, 1, 2 …, with p = (n + 1)/(n + Σx + 2)."""

    name = "geometric"
    kinds = ("number",)

    def estimate(self, counts, context: Context) -> GeometricBelief:
        m = read_moments(counts, context.n_classes)
        n, total = m.n[0], m.n[0] * m.mean[0]
        return GeometricBelief((n + 1) / (n + total + 2))


@dataclass(frozen=True)
class GeometricBelief(Belief):
    p: np.ndarray

    def parts(self, block) -> np.ndarray:
        out = np.log(self.p) + block.values[:, None] * np.log1p(-self.p)
        out[~block.present()] = 0.0
        return out

    def sample(self, labels, rng):
        return pa.array((rng.geometric(self.p[labels]) - 1).astype(float))

    def parameters(self) -> tuple[int, int]:
        return len(self.p), len(self.p)

    def table(self) -> Table:
        return Table("geometric", ["p"], self.p[None, :])


SCHEMA = tb.Schema([tb.Column("tries", "number"), tb.Column("colour", "category")], target="y")
SETTINGS = tb.Settings(families={"tries": Geometric()})


def rows(n: int = 300, seed: int = 1) -> dict:
    rng = np.random.default_rng(seed)
    y = rng.choice(["slow", "fast"], n)
    return {
        "tries": rng.geometric(np.where(y == "fast", 0.7, 0.2)) - 1.0,
        "colour": rng.choice(["red", "blue"], n),
        "y": y,
    }


def cut(data: dict, keep: np.ndarray) -> dict:
    return {k: np.asarray(v)[keep] for k, v in data.items()}


def test_density_equals_scipy() -> None:
    data = rows()
    model = tb.count(data, SCHEMA).model(SETTINGS)
    p = model.table("tries").values[0]
    want = np.stack([stats.geom.logpmf(data["tries"] + 1, q) for q in p], axis=1)
    np.testing.assert_allclose(model.parts(data)["tries"], want, rtol=1e-10)
    assert np.mean(model.predict(data) == data["y"]) > 0.7


def test_merge_forget_and_folds_come_free() -> None:
    data = rows()
    fold = np.arange(300) % 5
    parts = [tb.count(cut(data, fold == k), SCHEMA) for k in range(5)]
    total = sum(parts)
    assert total == tb.count(data, SCHEMA)
    for k in range(5):
        rest = tb.count(cut(data, fold != k), SCHEMA)
        assert total - parts[k] == rest == total.forget(cut(data, fold == k))
        by_subtraction = (total - parts[k]).model(SETTINGS).log_joint(data)
        np.testing.assert_array_equal(by_subtraction, rest.model(SETTINGS).log_joint(data))


def test_sampling_recovers_the_parameters() -> None:
    model = tb.count(rows(), SCHEMA).model(SETTINGS)
    again = tb.count(model.sample(50_000, seed=3), SCHEMA).model(SETTINGS)
    np.testing.assert_allclose(again.table("tries").values, model.table("tries").values, rtol=0.03)


def test_explanation_and_views_come_free() -> None:
    data = rows()
    model = tb.count(data, SCHEMA).model(SETTINGS)
    explained = model.explain(data, 7)
    np.testing.assert_allclose(explained.total, model.log_joint(data)[7], rtol=1e-12)
    assert "geometric" in repr(model)
    assert "geometric" in model.graph().to_svg()
    assert model.parameters() == (2 + 2 + 4, 1 + 2 + 2)
    with pytest.raises(tb.SettingsError, match="'tries' has no linear view"):
        model.linear()


def test_a_registered_name_works_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallybayes.families.base._REGISTRY", {**tb.families.base._REGISTRY})
    register("geometric", Geometric())
    assert named("geometric") == Geometric()
    model = tb.count(rows(), SCHEMA).model(tb.Settings(families={"tries": "geometric"}))
    assert model.families["tries"] == Geometric()
