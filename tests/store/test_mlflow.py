"""Models go into MLflow and come out of it as they were: the real package, a store in a folder, no server."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.store.sealed import seal

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: pip install 'tallybayes[mlflow]'")
pytest.importorskip("mlflow.pyfunc")
# MLflow's own, about names that its neighbours are about to drop
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pd.read_csv(tb.example("flats.csv")).drop(columns="number")


@pytest.fixture(scope="module")
def model(rows: pd.DataFrame) -> tb.Model:
    return tb.fit(rows, "let", kinds={"note": "text"}, calibrate=False)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store of its own for each test, and no word of MLflow's."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    uri = (tmp_path / "store").as_uri()
    mlflow.set_tracking_uri(uri)
    return uri


def asked(model: Any, rows: Any, answer: str) -> Any:
    return model.predict(rows, params={"answer": answer})


def test_the_round_trip(model: tb.Model, rows: pd.DataFrame, tmp_path: Path) -> None:
    tb.mlflow.save_model(model, tmp_path / "flats")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "flats"))
    X = rows.drop(columns="let")
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    table = asked(loaded, X, "probabilities")
    assert list(table.columns) == ["P(fast)", "P(slow)"] and np.array_equal(table, model.predict_proba(X))
    both = asked(loaded, X.iloc[5:9], "both")
    assert both["prediction"].tolist() == model.predict(X[5:9]).tolist() and both.index.tolist() == [5, 6, 7, 8]
    reasons = asked(loaded, X[:2], "explanation")["explanation"].tolist()
    assert reasons == [str(model.explain(X, 0)), str(model.explain(X, 1))]
    again = tb.mlflow.load_model(tmp_path / "flats")
    assert isinstance(again, tb.Model) and again.tally == model.tally and again.settings == model.settings
    assert again.forget(rows[:10]).tally == model.forget(rows[:10]).tally


def test_what_is_kept_is_the_model_file_and_no_code(model: tb.Model, tmp_path: Path) -> None:
    tb.mlflow.save_model(model, tmp_path / "flats")
    names = sorted(p.relative_to(tmp_path / "flats").as_posix() for p in (tmp_path / "flats").rglob("*") if p.is_file())
    assert "data/model.tb.parquet" in names and not [n for n in names if n.endswith((".pkl", ".py", ".joblib"))]
    assert tb.load(tmp_path / "flats/data/model.tb.parquet").tally == model.tally
    kept = mlflow.models.Model.load(str(tmp_path / "flats"))
    assert kept.flavors["python_function"]["loader_module"] == "tallybayes.store.mlflow"  # in files: for ever
    assert kept.metadata["digest"] == model.tally.digest and kept.metadata["rows"] == 240
    assert kept.metadata["columns"]["note"] == "text"
    assert (tmp_path / "flats/requirements.txt").read_text().startswith(f"tallybayes=={tb.__version__}\n")


def test_a_damaged_file_is_refused(model: tb.Model, tmp_path: Path) -> None:
    tb.mlflow.save_model(model, tmp_path / "flats")
    file = tmp_path / "flats/data/model.tb.parquet"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    for load in (mlflow.pyfunc.load_model, tb.mlflow.load_model):
        with pytest.raises(tb.ModelFileError):
            load(str(tmp_path / "flats"))


def test_signature_and_example_come_from_the_schema(model: tb.Model, rows: pd.DataFrame, tmp_path: Path) -> None:
    tb.mlflow.save_model(model, tmp_path / "flats")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "flats"))
    signature = loaded.metadata.signature
    assert signature.inputs.input_names() == [n for n in rows.columns if n != "let"]
    assert not any(column.required for column in signature.inputs.inputs)
    assert [p.name for p in signature.params.params] == ["answer"]
    example = loaded.input_example
    assert list(example.columns) == signature.inputs.input_names() and len(example) == 2
    assert set(loaded.predict(example)) <= {"fast", "slow"}
    # whole numbers where there were others, missing values, columns missing and columns too many
    odd = pd.DataFrame({"rent": [500, 900], "heating": pd.Categorical(["gas", None]), "other": [1, 2]})
    whole = odd.assign(district=None, rooms=None, size=None, balcony=None, note=None)
    with pytest.warns(tb.TallybayesWarning, match="columns not in the data are taken as missing: 'district'"):
        answers = asked(loaded, odd, "probabilities")
    assert np.array_equal(answers, model.predict_proba(whole))


def test_an_example_may_be_given_or_left_out(model: tb.Model, rows: pd.DataFrame, tmp_path: Path) -> None:
    tb.mlflow.save_model(model, tmp_path / "given", example=rows.drop(columns="let").head(1))
    assert mlflow.pyfunc.load_model(str(tmp_path / "given")).input_example["district"].tolist() == ["Riverside"]
    tb.mlflow.save_model(model, tmp_path / "none", example=False)
    assert not (tmp_path / "none/input_example.json").exists()


def test_log_model_has_tags_and_metrics(model: tb.Model, rows: pd.DataFrame) -> None:
    evaluation = tb.evaluate(model, rows)
    with mlflow.start_run() as run:
        info = tb.mlflow.log_model(model, "flats", evaluation=evaluation)
    data = mlflow.get_run(run.info.run_id).data
    assert data.tags["tallybayes.digest"] == model.tally.digest and data.tags["tallybayes.target"] == "let"
    assert data.metrics["log_loss"] == evaluation["log_loss"]
    assert data.metrics["accuracy_low"] < data.metrics["accuracy"] < data.metrics["accuracy_high"]
    assert mlflow.get_logged_model(info.model_id).tags["tallybayes.rows"] == "240"
    assert tb.mlflow.load_model(info.model_uri).tally == model.tally
    assert mlflow.pyfunc.load_model(info.model_uri).predict(rows[:3]).tolist() == model.predict(rows[:3]).tolist()


def test_a_sealed_scorer_goes_without_its_counts(model: tb.Model, rows: pd.DataFrame, tmp_path: Path) -> None:
    tb.mlflow.save_model(seal(model), tmp_path / "sealed")
    assert not (tmp_path / "sealed/data/model.tb.parquet").exists()
    again = tb.mlflow.load_model(tmp_path / "sealed")
    assert isinstance(again, tb.Sealed)
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "sealed"))
    np.testing.assert_allclose(asked(loaded, rows, "probabilities"), model.predict_proba(rows), atol=1e-12)
    assert "digest" not in mlflow.models.Model.load(str(tmp_path / "sealed")).metadata


def test_labels_keep_their_type(tmp_path: Path) -> None:
    for labels, kind in (([1, 2], "long"), ([True, False], "boolean"), (["a", "b"], "string")):
        own = tb.fit({"x": [1.0, 1.5, 7.0, 8.0], "y": [labels[0]] * 2 + [labels[1]] * 2}, "y")
        path = tmp_path / kind
        tb.mlflow.save_model(own, path)
        loaded = mlflow.pyfunc.load_model(str(path))
        assert loaded.metadata.signature.outputs.to_dict()[0]["type"] == kind
        assert loaded.predict(pd.DataFrame({"x": [1.2, 7.5]})).tolist() == labels


def test_a_model_without_columns_answers_by_its_prior(tmp_path: Path) -> None:
    tb.mlflow.save_model(tb.Model.written({"yes": 0.75, "no": 0.25}), tmp_path / "prior")
    assert (
        mlflow.pyfunc.load_model(str(tmp_path / "prior")).predict(pd.DataFrame({"z": [1, 2]})).tolist() == ["yes"] * 2
    )


def test_refusals(model: tb.Model, rows: pd.DataFrame, tmp_path: Path) -> None:
    tb.mlflow.save_model(model, tmp_path / "flats")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "flats"))
    with pytest.raises(tb.SettingsError, match=r"(?s)answer='probs'.*'probabilities'"):
        asked(loaded, rows, "probs")
    with pytest.raises(tb.DataError, match=r"'rent', row 1 .*'cheap' is not a number"):
        loaded.predict(rows[:2].assign(rent=[500.0, "cheap"]))
    with pytest.raises(tb.DataError, match=r"(?s)a str is no model of tallybayes.*model_ of an estimator"):
        tb.mlflow.save_model("flats", tmp_path / "text")  # type: ignore[arg-type]
    stranger = mlflow.models.Model()
    stranger.add_flavor("python_function", loader_module="other", data="data")
    (tmp_path / "other").mkdir()
    stranger.save(str(tmp_path / "other/MLmodel"))
    with pytest.raises(tb.DataError, match=r"(?s)a model of python_function, not of tallybayes.*pyfunc\.load_model"):
        tb.mlflow.load_model(tmp_path / "other")


def test_without_mlflow_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(tb.MissingExtra, match=r"(?s)needs the package mlflow.*pip install 'tallybayes\[mlflow\]'"):
        tb.mlflow.load_model("flats")
