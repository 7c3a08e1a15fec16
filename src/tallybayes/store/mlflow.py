"""Models in MLflow: saved, logged and loaded as the file that `model.save` writes, and as an `mlflow.pyfunc` model.

Nothing is pickled: MLflow keeps the model file and the name of this module, whose `_load_pyfunc` reads it, with all
checks that come before a byte is believed. `tb.mlflow` is this module; it needs `pip install 'tallybayes[mlflow]'`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..base import canon
from ..base.errors import DataError, MissingExtra, SettingsError, unknown
from ..data.schema import Schema
from ..model.model import Model
from . import model_file
from .sealed import Sealed, load_sealed, sealed_to_bytes

__all__ = ["load_model", "log_model", "save_model"]

FLAVOUR = "tallybayes"
LOADER = "tallybayes.store.mlflow"  # stands in every model that was saved: it is never another name
_FILE, _SEALED = "model.tb.parquet", "model.sealed.parquet"
_ANSWERS = {  # what `predict(rows, params={"answer": …})` gives
    "label": "the most probable class of each row",
    "probabilities": "a column for each class",
    "both": "the label, then a column for each class",
    "explanation": "the label, the probabilities, and the sum behind them as text",
}
_FIGURES = ("accuracy", "balanced_accuracy", "brier", "log_loss", "roc_auc")  # of an evaluation that is logged
_LISTS, _MOST = ("classes", "columns"), 100  # what a tag is too short for; and how many names metadata list
_EXAMPLES, _SEED = 2, 0  # rows of the input example, drawn from the model


def save_model(
    model: Model | Sealed, path: str | os.PathLike[str], *, example: Any = None, mlflow_model: Any = None, **more: Any
) -> None:
    """Write a model as a folder that `mlflow.pyfunc.load_model`, `mlflow models serve` and `load_model` read.

    A sealed scorer is saved without counts. `example`, a frame of rows without labels, is kept beside the model; if
    there is none, two rows are drawn from it, and `example=False` keeps none. `more`, such as pip_requirements, goes to
    `mlflow.pyfunc.save_model`.
    """
    mlflow = _mlflow()
    if not isinstance(model, (Model, Sealed)):
        raise DataError(
            f"a {type(model).__name__} is no model of tallybayes",
            hint="give a tb.Model, a sealed scorer, or the model_ of an estimator of tallybayes.sklearn.",
        )
    mlflow_model = mlflow.models.Model() if mlflow_model is None else mlflow_model
    mlflow_model.metadata = {**(mlflow_model.metadata or {}), **about(model), **(more.pop("metadata", None) or {})}
    sealed = isinstance(model, Sealed)
    name = _SEALED if sealed else _FILE
    mlflow_model.add_flavor(FLAVOUR, tallybayes_version=_version(), data=name, sealed=sealed)
    shown = _example(model) if example is None else None if example is False else example
    if "conda_env" not in more:
        more.setdefault("pip_requirements", [f"tallybayes=={_version()}", "pandas", f"mlflow=={mlflow.__version__}"])
    with tempfile.TemporaryDirectory(prefix="tallybayes-") as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*input example was not provided", UserWarning)  # who asked for none knows
        file = Path(folder) / name
        file.write_bytes(_written(model))
        mlflow.pyfunc.save_model(
            path, loader_module=LOADER, data_path=str(file), mlflow_model=mlflow_model, input_example=shown,
            signature=more.pop("signature", None) or _signature(mlflow, model), **more,
        )  # fmt: skip


def log_model(
    model: Model | Sealed, name: str = "model", *, evaluation: Any = None, example: Any = None,
    registered_model_name: str | None = None, **more: Any,
) -> Any:  # fmt: skip
    """Log a model to the MLflow run that is active; MLflow's `ModelInfo` comes back, whose `model_uri` loads it again.

    The digest of the counts, how many rows there were and the target are tags; the figures of an `evaluation`
    (`tb.evaluate(model, rows)`) are metrics, each with the ends of its interval.
    """
    mlflow = _mlflow()
    tags = {f"tallybayes.{key}": str(value) for key, value in about(model).items() if key not in _LISTS}
    info = mlflow.models.Model.log(
        artifact_path=None, name=name, flavor=sys.modules[__name__], model=model, example=example,
        registered_model_name=registered_model_name, tags={**tags, **(more.pop("tags", None) or {})}, **more,
    )  # fmt: skip
    if mlflow.active_run() is not None:
        mlflow.set_tags(tags)
    if evaluation is not None:
        mlflow.log_metrics(figures(evaluation), model_id=info.model_id)
    return info


def load_model(uri: str | os.PathLike[str]) -> Model | Sealed:
    """The model itself, which can explain, learn and forget: from a folder, "runs:/…", "models:/…", or a store's path.

    `mlflow.pyfunc.load_model` gives the same model behind MLflow's `predict`.
    """
    mlflow = _mlflow()
    folder = mlflow.artifacts.download_artifacts(artifact_uri=os.fspath(uri))
    flavours = mlflow.models.Model.load(folder).flavors
    if FLAVOUR not in flavours:
        found = ", ".join(sorted(flavours)) or "nothing"
        raise DataError(
            f"{os.fspath(uri)} is a model of {found}, not of tallybayes",
            hint="mlflow.pyfunc.load_model(uri) loads models of any kind.",
        )
    return _loaded(os.path.join(folder, flavours["python_function"]["data"]))


def about(model: Model | Sealed) -> dict[str, Any]:
    """What a model is, as MLflow's metadata keep it: version, target, classes, columns, the digest of the counts."""
    tally = None if isinstance(model, Sealed) else model.tally
    out: dict[str, Any] = {
        "version": _version(),
        "target": model.schema.target,
        "classes": [str(canon.text(c)) for c in model.classes[:_MOST]],
        "columns": {c.name: c.kind for c in model.schema.counted[:_MOST]},
    }
    return out if tally is None else {**out, "digest": tally.digest, "rows": tally.rows}


def figures(evaluation: Any) -> dict[str, float]:
    """The figures of an evaluation as MLflow's metrics, by name: each of the first setting, and its interval.

    Figures that these rows do not have, such as an area of one class, are left out.
    """
    row = evaluation.table.to_pylist()[0]
    names = [f"{name}{end}" for name in _FIGURES for end in ("", "_low", "_high")]
    return {name: row[name] for name in names if isinstance(row.get(name), float) and np.isfinite(row[name])}


# ---- what MLflow asks for


def _load_pyfunc(path: str) -> _Scorer:
    """The model of a file behind MLflow's `predict`; MLflow calls this by its name."""
    return _Scorer(_loaded(path))


class _Scorer:
    """A model as MLflow asks it: a frame and params come in, labels or a frame go out."""

    def __init__(self, model: Model | Sealed) -> None:
        self.model = model

    def predict(self, rows: Any, params: Mapping[str, Any] | None = None) -> Any:
        """What `params={"answer": …}` asks for: "label", "probabilities", "both" or "explanation"."""
        import pandas as pd

        answer = (params or {}).get("answer", "label")
        if answer not in _ANSWERS:
            raise unknown(SettingsError, f"answer={answer!r}", str(answer), _ANSWERS)
        labels = None if answer == "probabilities" else np.asarray(self.model.predict(rows))
        if answer == "label":
            return labels
        index = rows.index if isinstance(rows, pd.DataFrame) else None
        names = [str(canon.text(c)) for c in self.model.classes]
        table = pd.DataFrame(self.model.predict_proba(rows), columns=[f"P({n})" for n in names], index=index)
        if labels is not None:
            table.insert(0, "prediction", labels)
        if answer == "explanation":
            table["explanation"] = [str(self.model.explain(rows, i)) for i in range(len(table))]
        return table


def _mlflow() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*type hint is inferred as AnyType", UserWarning)  # of its own hints
            import mlflow.artifacts
            import mlflow.models
            import mlflow.pyfunc
            import mlflow.types.schema
    except ImportError as error:
        raise MissingExtra(
            f"tb.mlflow needs the package mlflow ({error})", hint="install it: pip install 'tallybayes[mlflow]'."
        ) from None
    return mlflow


def _written(model: Model | Sealed) -> bytes:
    return sealed_to_bytes(model) if isinstance(model, Sealed) else model_file.to_bytes(model)


def _loaded(path: str) -> Model | Sealed:
    return load_sealed(path) if path.endswith(_SEALED) else model_file.load(path)


def _columns(schema: Schema) -> list[str]:
    """The columns of the data that a model reads."""
    return list(dict.fromkeys(name for column in schema.counted for name in column.inputs))


def _version() -> str:
    from .. import __version__

    return __version__


def _signature(mlflow: Any, model: Model | Sealed) -> Any:
    """The columns as inputs, none of them required, since a missing value is no evidence; the answers as a parameter.

    A column may hold what the model can read of it, whole numbers where there are others: a signature of doubles would
    have MLflow refuse a frame of whole numbers. What cannot be read the model refuses itself, by row and column.
    """
    types, kinds = mlflow.types, mlflow.types.DataType
    anything = mlflow.types.schema.AnyType()
    texts = {c.reads for c in model.schema.counted if c.kind == "text"}
    inputs = [
        types.ColSpec(kinds.string if name in texts else anything, name, required=False)
        for name in _columns(model.schema)
    ]
    if not inputs:  # MLflow has no signature of nothing
        return None
    label = {"int": kinds.long, "bool": kinds.boolean, "float": kinds.double}.get(model.schema.label_type, kinds.string)
    return mlflow.models.ModelSignature(
        inputs=types.Schema(inputs),
        outputs=types.Schema([types.ColSpec(label)]),
        params=types.ParamSchema([types.ParamSpec("answer", kinds.string, "label")]),
    )


def _example(model: Model | Sealed) -> Any:
    """Two rows as the model imagines them, in a frame; None where it cannot draw any."""
    own: Any = model._model if isinstance(model, Sealed) else model
    with contextlib.suppress(Exception):  # a family without a sampler, a column that is made of others
        table = own.generative.sample(_EXAMPLES, np.random.default_rng(_SEED))
        names = _columns(model.schema)
        return table.select(names).to_pandas() if set(names) <= set(table.column_names) else None
    return None
