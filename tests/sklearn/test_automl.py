"""The class that docs/howto/automl.md shows for AutoGluon, in a stand-in that asks for the same methods in order."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tallybayes as tb

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "automl.md"


class AbstractModel:
    """As AutoGluon's base class does: parameters first, labels as whole numbers, one column of two classes."""

    def __init__(self, **params: Any) -> None:
        self.params = params
        self._set_default_params()

    def _set_default_params(self) -> None:
        raise NotImplementedError

    def _set_default_param_value(self, name: str, value: Any) -> None:
        self.params.setdefault(name, value)

    def _get_model_params(self) -> dict[str, Any]:
        return dict(self.params)

    def _get_default_auxiliary_params(self) -> dict[str, Any]:
        return {"max_memory_usage_ratio": 1.0}

    def _convert_proba_to_unified_form(self, proba: Any) -> Any:
        return proba[:, 1] if proba.shape[1] == 2 else proba

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AbstractModel:
        classes = sorted(set(y))
        self._fit(X=X, y=y.map(classes.index), sample_weight=sample_weight, time_limit=60, num_cpus=1)  # type: ignore[attr-defined]
        return self

    def predict_proba(self, X: Any) -> Any:
        return self._predict_proba(X, normalize=True)  # type: ignore[attr-defined]


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class of the page, in a file of its own as the page says, above the stand-in."""
    page = PAGE.read_text("utf-8")
    code = page.split("```python needs-autogluon\n")[1].split("```")[0]
    (tmp_path / "tallybayes_model.py").write_text(code, "utf-8")
    models = ModuleType("autogluon.core.models")
    models.AbstractModel = AbstractModel  # type: ignore[attr-defined]
    for name in ("autogluon", "autogluon.core"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "autogluon.core.models", models)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("tallybayes_model").TallybayesModel
    sys.modules.pop("tallybayes_model", None)


def test_the_class_for_autogluon_learns_answers_and_is_pickled_whole(shown: Any) -> None:
    flats = pd.read_csv(tb.example("flats.csv")).drop(columns="number")
    X, y = flats.drop(columns="let"), flats["let"]
    model = shown(kinds={"note": "text"}, calibration=None).fit(X[:160], y[:160])
    slow = model.predict_proba(X[160:])
    assert ((slow > 0.5) == (y[160:] == "slow")).mean() > 0.7
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is shown and np.array_equal(again.predict_proba(X[160:]), slow)


def test_it_takes_more_than_two_classes_and_weights_and_says_what_it_takes(shown: Any) -> None:
    assert shown.supported_problem_types() == ["binary", "multiclass"]
    assert shown()._get_model_params() == {"calibration": "auto"}
    assert "category" in shown()._get_default_auxiliary_params()["valid_raw_types"]
    rng = np.random.default_rng(0)
    y = pd.Series(rng.choice(["a", "b", "c"], 300))
    X = pd.DataFrame(
        {"x": y.map({"a": 0.0, "b": 3.0, "c": 6.0}) + rng.normal(0, 1, 300), "z": rng.choice(list("pq"), 300)}
    )
    X.loc[::10, "x"] = np.nan
    light = shown(calibration=None).fit(X, y, sample_weight=np.where(y == "a", 0.01, 1.0))
    even = shown(calibration=None).fit(X, y)
    assert even.predict_proba(X).shape == (300, 3)
    assert (even.predict_proba(X).argmax(axis=1) == y.map("abc".index)).mean() > 0.75
    assert light.predict_proba(X)[:, 0].mean() < 0.4 * even.predict_proba(X)[:, 0].mean()
