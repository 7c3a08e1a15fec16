"""A family made here, outside the package: the class below and the case are all it needs."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.families import Belief, Context, Family, Table, named, register
from tallybayes.families.forms import RateForm
from tallybayes.families.moments import read_moments
from tallybayes.families.support import Support, log_beta


@dataclass(frozen=True)
class Geometric(Family):
    """P(x) = p·(1 − p)^x for x = 0, 1, 2 …, with p = (n + 1)/(n + Σx + 2)."""

    name = "geometric"
    kinds = ("number",)

    def estimate(self, counts, context: Context) -> GeometricBelief:
        m = read_moments(counts, context.n_classes)
        n, total = m.n[0], m.n[0] * m.mean[0]
        return GeometricBelief((n + 1) / (n + total + 2))

    def tries(self, h) -> bool:
        return bool(np.all(h.middle >= 0) and np.all(h.middle == np.rint(h.middle)))

    def leave_one_out(self, h, counts, context: Context) -> tuple[np.ndarray, np.ndarray]:
        m = read_moments(counts, context.n_classes)
        n, total, x = m.n[0], m.n[0] * m.mean[0], h.middle[:, None]
        p, left = (n + 1) / (n + total + 2), np.clip(n / (n + total - x + 1), 1e-9, 1 - 1e-9)
        return np.log(p) + x * np.log1p(-p), np.log(left) + x * np.log1p(-left)


@dataclass(frozen=True)
class GeometricBelief(Belief):
    p: np.ndarray

    def form(self) -> RateForm:
        return RateForm(1 - self.p, np.log(self.p))

    def support(self, counted, block) -> list[Support]:
        n, x = counted.table("moments").sum(axis=0), float(block.values[0])
        total = n / self.p - n

        def draw(y: int) -> np.ndarray:
            log_p = log_beta(float(n[y]) + 1, float(total[y]) + 1)
            return log_p + x * np.log(-np.expm1(log_p))

        return [Support(n, n, draw)]

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


def test_one_row_and_batch_agree() -> None:
    data = rows()
    model = tb.count(data, SCHEMA).model(SETTINGS)
    batch = model.predict_proba(data)
    for i in range(20):
        one = {"tries": float(data["tries"][i]), "colour": str(data["colour"][i])}
        np.testing.assert_allclose(model.predict_proba(one)[0], batch[i], rtol=1e-12)
    assert model.predict({"tries": 3.0, "colour": None}).shape == (1,)


def test_every_export_answers_as_the_model_does(tmp_path) -> None:
    """Sealed, JSON, ONNX and SQL read the form; none of them has heard of a geometric distribution."""
    data = rows()
    model = tb.count(data, SCHEMA).model(SETTINGS)
    want = model.predict_proba(data)
    model.export(tmp_path / "sealed.parquet", "sealed")
    sealed = tb.load_sealed(tmp_path / "sealed.parquet")
    np.testing.assert_allclose(sealed.predict_proba(data), want, rtol=1e-12)
    np.testing.assert_allclose(sealed.explain(data, 7).total, model.explain(data, 7).total, rtol=1e-12)
    np.testing.assert_allclose(by_json(json.loads(model.export(format="json")), data), want, rtol=1e-12)
    onnxruntime = pytest.importorskip("onnxruntime", reason="the answers of ONNX are compared where it is installed")
    session = onnxruntime.InferenceSession(model.export(format="onnx"))
    feeds = {"tries": data["tries"], "colour": data["colour"].astype(object)}
    np.testing.assert_allclose(session.run(["probabilities"], feeds)[0], want, rtol=1e-9)
    duckdb = pytest.importorskip("duckdb")
    table = pa.table({"tries": data["tries"], "colour": data["colour"].tolist()})
    found = duckdb.sql(model.to_sql("table").query).fetchnumpy()
    np.testing.assert_allclose(np.stack([found[f"P({c})"] for c in model.classes], axis=1), want, rtol=1e-9)
    assert len(table)


def by_json(scorer: dict, data: dict) -> np.ndarray:
    """What docs/model_file.md says of the two forms, followed to the letter."""
    scores = np.tile(scorer["log_prior"], (len(data["tries"]), 1))
    for column in scorer["columns"]:
        if column["form"] == "poisson":
            scores += data["tries"][:, None] * np.log(column["rate"]) + np.array(column["offset"])
        else:
            scores += np.array(column["logs"])[[column["values"].index(v) for v in data["colour"]]]
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def test_intervals_and_what_if_come_free() -> None:
    data = rows()
    model = tb.count(data, SCHEMA).model(SETTINGS)
    line = next(x for x in model.explain(data, 7).odds("fast", "slow").lines if x.column == "tries")
    low, high = line.interval
    assert low < line.log_odds < high and high - low < 3
    slow = {"tries": 9.0, "colour": "red"}
    assert model.predict(slow).tolist() == ["slow"]
    other = model.what_if(slow, "fast")
    assert [change.column for change in other.changes] == ["tries"] and "fast" in str(other)


def test_the_default_chooses_it_where_it_tells_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto`, the default family of a number, tries a registered family that wants to be tried."""
    monkeypatch.setattr("tallybayes.families.base._REGISTRY", {**tb.families.base._REGISTRY})
    rng = np.random.default_rng(4)
    y = rng.choice(["slow", "fast"], 3000)
    data = {"tries": rng.geometric(np.where(y == "fast", 0.02, 0.006)) - 1.0, "y": y}
    schema = tb.Schema([tb.Column("tries", "number", cells=tb.Cells.fitted(data["tries"]))], target="y")
    before = tb.count(data, schema).model()
    register("geometric", Geometric())
    after = tb.count(data, schema).model()
    assert before.families["tries"] != Geometric() and after.families["tries"] == Geometric()
    assert tb.fit(data, schema=schema, calibrate=False).families["tries"] == Geometric()


def test_a_registered_name_works_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallybayes.families.base._REGISTRY", {**tb.families.base._REGISTRY})
    register("geometric", Geometric())
    assert named("geometric") == Geometric()
    model = tb.count(rows(), SCHEMA).model(tb.Settings(families={"tries": "geometric"}))
    assert model.families["tries"] == Geometric()
