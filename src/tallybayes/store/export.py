"""Exports: a model in the forms in which others can use it."""

from __future__ import annotations

import os

from ..base.disk import write_atomically
from ..base.errors import SettingsError, did_you_mean
from ..model.model import Model
from .json import scorer_json
from .modelcard import model_card
from .onnx import onnx_bytes
from .sealed import seal, sealed_to_bytes

FORMATS = {"sealed": ".sealed.parquet", "json": ".json", "onnx": ".onnx", "card": ".md"}


def export(model: Model, path: str | os.PathLike[str] | None = None, format: str | None = None) -> bytes:
    """The model as a sealed scorer, JSON, ONNX or a model card; also written to the path if there is one.

    The format follows from the end of the path (.sealed.parquet, .json, .onnx, .md) unless it is given.
    """
    if format is None:
        name = "" if path is None else os.fspath(path)
        format = next((f for f, end in FORMATS.items() if name.endswith(end)), name)
    if format not in FORMATS:
        raise SettingsError(
            f"there is no export to {format!r}",
            hint=did_you_mean(format, FORMATS)
            + "the formats are " + ", ".join(f"{f!r} ({end})" for f, end in FORMATS.items()) + ".",
        )  # fmt: skip
    if format == "card":
        out = model_card(model).encode()
    elif format == "sealed":
        out = sealed_to_bytes(seal(model))
    else:
        out = onnx_bytes(seal(model)) if format == "onnx" else scorer_json(seal(model)).encode()
    if path is not None:
        write_atomically(path, out)
    return out
