"""Estimators as a part of ONNX graphs that skl2onnx makes of scikit-learn's pipelines.

Our own exporter writes the graph of the model behind an estimator. What is added here is where the columns come from:
they are columns of the tensors that the step before gives, of numbers or of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import canon
from ..base.errors import DataError, MissingExtra, SettingsError
from ..data.batch import MATRIX, matrix_column
from ..store.onnx import OPSET, OnnxAnswers, OnnxGraph, onnx_model
from ..store.sealed import seal
from .base import TallyClassifier
from .categorical import CategoricalNB
from .gaussian import GaussianNB
from .mixed import NaiveBayes
from .words import BernoulliNB, ComplementNB, MultinomialNB

_KINDS = (BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB, NaiveBayes)
_OPTIONS = {"zipmap": [True, False, "columns"], "output_class_labels": [False, True], "nocl": [True, False]}


def register_onnx() -> None:
    """Tell skl2onnx how to convert our estimators; `skl2onnx.to_onnx(pipeline, X)` does it from then on.

    Answers are worked out in float64; give `X.astype(numpy.float64)` as the example for inputs that are, too.
    """
    try:
        import skl2onnx
    except ImportError as error:
        raise MissingExtra(
            f"converting pipelines needs the package skl2onnx ({error})",
            hint="install it: pip install 'tallybayes[skl2onnx]'.",
        ) from None
    for kind in _KINDS:
        name = f"Tallybayes{kind.__name__}"
        skl2onnx.update_registered_converter(kind, name, _shapes, _convert, options=_OPTIONS)


def _shapes(operator: Any) -> None:
    """What comes out: a label of each row, and its probabilities."""
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    rows, labels = operator.inputs[0].get_first_dimension(), _labels(operator.raw_operator)
    kind = Int64TensorType if isinstance(labels[0], int) else StringTensorType
    operator.outputs[0].set_type(kind([rows]))
    operator.outputs[1].type.shape = [rows, len(labels)]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """The estimator's graph, put into the one that is being made."""
    from skl2onnx.common.data_types import DoubleTensorType
    from skl2onnx.helpers import add_onnx_graph

    if container.target_opset < OPSET:
        raise SettingsError(
            f"target_opset={container.target_opset}: {type(operator.raw_operator).__name__} needs {OPSET}",
            hint=f"skl2onnx.to_onnx(pipeline, X, target_opset={OPSET}), or leave it out.",
        )
    estimator = operator.raw_operator
    model, order = estimator.model_, estimator._answer.order
    wide = isinstance(operator.outputs[1].type, DoubleTensorType)  # skl2onnx declares floats after floats
    answers = OnnxAnswers(_labels(estimator), None if order is None else order.tolist(), wide)
    graph = onnx_model(seal(model), _Columns(estimator, operator.inputs), answers)
    for number, node in enumerate(graph.graph.node):  # skl2onnx makes names of its own from these
        node.name = f"tallybayes{number}"
    add_onnx_graph(scope, operator, container, graph)


def _labels(estimator: TallyClassifier) -> list[Any]:
    """The classes as skl2onnx can write them: whole numbers or texts."""
    classes: list[Any] = estimator.classes_.tolist()
    if all(isinstance(c, str) for c in classes):
        return classes
    if all(isinstance(c, (bool, int, float)) and c == int(c) for c in classes):
        return [int(c) for c in classes]
    raise DataError(
        f"classes such as {classes[0]!r}, which skl2onnx cannot write", hint="give labels as texts or whole numbers."
    )


class _Columns:
    """Where the columns of a model come from: the tensors that an operator of skl2onnx is given, side by side."""

    def __init__(self, estimator: TallyClassifier, inputs: Sequence[Any]) -> None:
        self.estimator, self.given = estimator, inputs
        self.reads = {c.name: c.reads for c in estimator.tally_.schema.counted}
        self.places: list[tuple[int, int]] = []  # of each feature: which tensor, which of its columns
        for number, variable in enumerate(inputs):
            shape = variable.type.shape
            width = shape[1] if len(shape) > 1 and shape[1] is not None else estimator.n_features_in_
            self.places += [(number, column) for column in range(width)]
        if len(self.places) != estimator.n_features_in_:
            raise DataError(
                f"{len(self.places)} columns go into a {type(estimator).__name__} of {estimator.n_features_in_} "
                "features",
                hint="give skl2onnx the columns that the pipeline was fitted to, as X or initial_types.",
            )

    def __call__(self, graph: OnnxGraph, piece: dict[str, Any]) -> str:
        """The tensor that a column of the model is."""
        self._declare(graph)
        name = self.reads.get(piece["name"], piece["name"])
        if name == MATRIX and piece["kind"] in ("vector", "bag"):
            return self._matrix(graph)
        number, column = self.places[self._feature(name)]
        variable = self.given[number]
        x = graph.node("Gather", f"X{number}", graph.constant(np.array(column)), axis=1)
        texts = "String" in type(variable.type).__name__
        if piece["kind"] == "category":
            return x if texts else self._spelled(graph, self._doubles(graph, x), piece)
        if texts:
            raise DataError(
                f"column {name!r} is a {piece['kind']} in the model, and comes as text",
                hint="give it to skl2onnx as numbers: its type in initial_types, or the column of X.",
            )
        return self._doubles(graph, x)

    def _declare(self, graph: OnnxGraph) -> None:
        """The tensors as inputs of the graph, each of them used, since skl2onnx looks for its name among the nodes."""
        if graph.inputs:
            return
        for number, variable in enumerate(self.given):
            kind = graph.onnx.helper.np_dtype_to_tensor_dtype(_dtype(variable.type))
            width = sum(tensor == number for tensor, _ in self.places)
            graph.inputs.append(graph.onnx.helper.make_tensor_value_info(f"X{number}", kind, ["rows", width]))
            graph.node("Identity", f"X{number}")

    def _feature(self, name: str) -> int:
        names = getattr(self.estimator, "feature_names_in_", None)
        if names is not None and not isinstance(self.estimator, CategoricalNB) and name in names.tolist():
            return int(names.tolist().index(name))
        position = matrix_column(name)
        if position is None or position >= len(self.places):
            raise SettingsError(
                f"column {name!r} is worked out from others in a way that ONNX cannot say",
                hint="make it a column of numbers or categories before the estimator.",
            )
        return position

    def _matrix(self, graph: OnnxGraph) -> str:
        """All features, rows × positions; of BernoulliNB whether they are above its threshold."""
        parts = [self._doubles(graph, f"X{number}") for number in range(len(self.given))]
        matrix = parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)
        threshold = getattr(self.estimator, "binarize", None)
        if threshold is None:
            return matrix
        above = graph.node("Greater", matrix, graph.constant(np.array([float(threshold)])))
        return self._doubles(graph, above)

    def _doubles(self, graph: OnnxGraph, x: str) -> str:
        return graph.node("Cast", x, to=graph.onnx.TensorProto.DOUBLE)

    def _spelled(self, graph: OnnxGraph, x: str, piece: dict[str, Any]) -> str:
        """Numbers as the texts of the categories that they are; "" for NaN, and a text of its own for any other."""
        known = dict.fromkeys([*piece.get("values", ()), *piece["missing"]])
        keys = {text: number for text in known if (number := _number(text)) is not None}
        other = "other"
        while other in known:
            other += "_"
        texts = graph.constant([other, *keys, ""])
        column = graph.node("Unsqueeze", x, graph.whole(1))
        same = graph.node("Equal", column, graph.constant(np.array([[*keys.values()]], dtype=np.float64)))
        ones = graph.node("Cast", same, to=graph.onnx.TensorProto.INT64)
        at = graph.node("ReduceSum", graph.node("Mul", ones, graph.whole(*range(1, len(keys) + 1))), graph.whole(1),
                        keepdims=0)  # fmt: skip
        at = graph.node("Where", graph.node("IsNaN", x), graph.whole(len(keys) + 1), at)
        return graph.node("Gather", texts, at, axis=0)


def _number(text: str) -> float | None:
    """The number that a category's text is, if it is one: 3 for "3", 1 for "true"."""
    if text in ("true", "false"):
        return float(text == "true")
    try:
        number = float(text)
    except ValueError:
        return None
    return number if canon.number_text(number) == text else None


def _dtype(kind: Any) -> Any:
    """NumPy's type of a tensor of skl2onnx."""
    names = {
        "String": np.object_, "Boolean": np.bool_, "Double": np.float64, "Float": np.float32, "Int64": np.int64,
        "Int32": np.int32,
    }  # fmt: skip
    name = type(kind).__name__.removesuffix("TensorType")
    if name not in names:
        raise DataError(f"a tensor of type {name}", hint="give numbers, truth values or texts.")
    return np.dtype(names[name])
