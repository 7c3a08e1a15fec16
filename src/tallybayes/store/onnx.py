"""A scorer as an ONNX graph in float64, for number, category and vector columns, and for words counted in a matrix.

Inputs are one tensor per column: strings for a category ("" for missing), doubles for a number (NaN for missing),
rows × positions for a vector or for amounts of words. Outputs are `label` and `probabilities`, in this order, with an
underscore behind a name that a column has. Only standard operators are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import canon
from ..base.arrays import Floats
from ..base.errors import MissingExtra, SettingsError
from ..data.kinds import GAP
from ..families.calibration import LEAST, MarginScaling
from ..families.forms import FAR, BellForm
from .json import pieces
from .sealed import Sealed

OPSET, ML_OPSET, IR = 18, 3, 9
_INT64 = 1 << 63
_IMPOSSIBLE = -1e305  # below any bound of a blend
_KINDS = ("category", "number", "vector", "pair", "gap")
Reader = Callable[["OnnxGraph", dict[str, Any]], str]


@dataclass(frozen=True)
class OnnxAnswers:
    """How answers are written: the labels of the classes, in which order, and whether probabilities are float64."""

    labels: Sequence[Any]
    order: Sequence[int] | None = None  # of the model's classes
    wide: bool = True


def onnx_bytes(sealed: Sealed) -> bytes:
    """The graph as the bytes of an .onnx file."""
    raw: bytes = onnx_model(sealed).SerializeToString()
    return raw


def onnx_model(sealed: Sealed, reader: Reader | None = None, answers: OnnxAnswers | None = None) -> Any:
    """The graph as an onnx.ModelProto.

    `reader` makes the inputs and says which tensor a column is, if they are not one for each column.
    """
    try:
        import onnx
    except ImportError:
        raise MissingExtra(
            "exporting to ONNX needs the package onnx", hint="install it: pip install 'tallybayes[onnx]'."
        ) from None
    start, all_pieces = sealed._model.start, list(pieces(sealed, "ONNX"))
    graph = OnnxGraph(onnx, [name for column in sealed.schema.counted for name in column.inputs], reader)
    total = begin = graph.constant(start[None, :])
    for piece in all_pieces:
        piece["width"] = sealed.schema[piece["name"]].width
        if piece["kind"] not in _KINDS and not _is_matrix_of_words(piece):
            raise SettingsError(
                f"column {piece['name']!r} is a {piece['kind']}, which ONNX has no standard operators for",
                hint="export to 'sealed' or 'json', or leave the column out of the model.",
            )
        for read in (piece, *piece.get("sides", ()), piece.get("of", {})):
            if read.get("kind") == "category" and {"fold", "decimal"} & read.get("spelling", {}).keys():
                raise SettingsError(
                    f"column {read['name']!r} has values that are spelled in several ways, which ONNX cannot read",
                    hint="export to 'sealed' or 'json', or score rows with model.predict (tallybayes predict).",
                )
        part = _FORMS[piece["form"]](graph, piece, len(start))
        if part is not None and piece["weight"] != 0:
            if piece["weight"] != 1:
                part = graph.node("Mul", part, graph.constant(np.array(piece["weight"])))
            total = graph.node("Add", total, part)
    if total == begin and graph.inputs:  # no column says anything, but there are as many answers as rows
        rows = graph.node("Shape", graph.inputs[0].name, end=1)
        total = graph.node("Expand", total, graph.node("Concat", rows, graph.whole(len(start)), axis=0))
    _answers(graph, total, sealed, OnnxAnswers(sealed.classes) if answers is None else answers)
    return graph.finished()


def _is_matrix_of_words(piece: dict[str, Any]) -> bool:
    """Whether words are the columns of a matrix, whose amounts ONNX can multiply; texts it cannot cut."""
    return piece["width"] is not None and piece["form"] in ("words", "presence") and "length_exponent" not in piece


class OnnxGraph:
    """Nodes, constants and inputs as they are put together; names of columns appear only as names of inputs."""

    def __init__(self, onnx: Any, columns: Sequence[str], reader: Reader | None = None) -> None:
        if "" in columns:
            raise SettingsError(
                "ONNX has no inputs without a name, and a column is called ''", hint="rename the column."
            )
        self.onnx, self.columns, self.reader = onnx, set(columns), reader
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """The name of a constant: an array of numbers, or texts."""
        name = self.own(f"c{len(self.constants)}")
        if isinstance(value, np.ndarray):
            tensor = self.onnx.numpy_helper.from_array(value, name)
        else:
            raw = [str(v).encode() for v in value]
            tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, [len(raw)], raw)
        self.constants.append(tensor)
        return name

    def own(self, name: str) -> str:
        """The name, with underscores behind it if a column has it."""
        while name in self.columns:
            name += "_"
        return name

    def whole(self, *values: int) -> str:
        """The name of a constant of whole numbers."""
        return self.constant(np.array(values, dtype=np.int64))

    def node(
        self, operator: str, *inputs: str, out: str | None = None, beside: Sequence[str] = (), domain: str = "",
        **attributes: Any,
    ) -> str:  # fmt: skip
        """The name of the first output; `beside` names further ones that the operator must have."""
        names = [out or self.own(f"t{len(self.nodes)}"), *map(self.own, beside)]
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), names, domain=domain, **attributes))
        return names[0]

    def input(self, piece: dict[str, Any]) -> str:
        """The name of the tensor that a column is."""
        name: str = piece["name"]
        if self.reader is not None:
            return self.reader(self, piece)
        if all(i.name != name for i in self.inputs):  # a pair reads what other columns read
            kind = self.onnx.TensorProto.STRING if piece["kind"] == "category" else self.onnx.TensorProto.DOUBLE
            shape = ["rows", f"positions{len(self.inputs)}"] if piece["kind"] in ("vector", "bag") else ["rows"]
            self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, kind: int, shape: list[Any]) -> None:
        """Declare what comes out."""
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))

    def finished(self) -> Any:
        """The graph as a model that ONNX has checked."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, "tallybayes", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="tallybayes")
        self.onnx.checker.check_model(model)
        return model


def _table(graph: OnnxGraph, piece: dict[str, Any], n_classes: int) -> str:
    """One row of the table per value, one for values never seen, one of zeros for missing."""
    if piece["kind"] == "gap":
        return _gap(graph, piece, n_classes)
    values = piece["values"]
    missing = sorted({"", *piece["missing"]} - set(values))
    rows = graph.constant(np.vstack([piece["logs"].reshape(-1, n_classes), piece["unseen"], np.zeros(n_classes)]))
    at = graph.node(
        "LabelEncoder", graph.input(piece), domain="ai.onnx.ml", default_int64=len(values),
        keys_strings=[*values, *missing], values_int64s=[*range(len(values)), *[len(values) + 1] * len(missing)],
    )  # fmt: skip
    return graph.node("Gather", rows, at, axis=0)


def _gap(graph: OnnxGraph, piece: dict[str, Any], n_classes: int) -> str:
    """The row of the table for a missing value, or for one that is there."""
    x = graph.input(piece["of"])
    logs = dict(zip(piece["values"], piece["logs"].reshape(-1, n_classes), strict=True))
    rows = graph.constant(np.stack([logs.get(value, piece["unseen"]) for value in GAP]))
    if piece["of"]["kind"] == "number":
        at = graph.node("Cast", graph.node("IsNaN", x), to=graph.onnx.TensorProto.INT64)
    else:
        marks = sorted({"", *piece["of"]["missing"]})
        at = graph.node(
            "LabelEncoder", x, domain="ai.onnx.ml", default_int64=0, keys_strings=marks, values_int64s=[1] * len(marks)
        )
    return graph.node("Gather", rows, at, axis=0)


def _steps(graph: OnnxGraph, piece: dict[str, Any], n_classes: int) -> str:
    """How many starts are not above the value is the row of the table."""
    at = _passed(graph, graph.input(piece), piece["starts"])
    rows = np.vstack([piece["logs"], np.zeros((1, n_classes))])
    return graph.node("Gather", graph.constant(rows), at, axis=0)


def _passed(graph: OnnxGraph, x: str, edges: Floats) -> str:
    """How many edges are not above each value; one more than there are for NaN."""
    column = graph.node("Unsqueeze", x, graph.whole(1))
    more = graph.constant(np.concatenate([edges, [np.inf]])[None, :])
    passed = graph.node("Not", graph.node("Less", column, more))
    ones = graph.node("Cast", passed, to=graph.onnx.TensorProto.INT64)
    return graph.node("ReduceSum", ones, graph.whole(1), keepdims=0)


def _bell(graph: OnnxGraph, piece: dict[str, Any], n_classes: int) -> str | None:
    """The log density of a normal or Student-t curve, summed over positions; 0 where a number is missing."""
    x = graph.input(piece)
    if len(piece["location"]) == 0:
        return None
    if piece["kind"] == "vector":
        x = graph.node("Gather", x, graph.whole(*piece["positions"].tolist()), axis=1)
        x = graph.node("Unsqueeze", x, graph.whole(2))
    else:
        x = graph.node("Unsqueeze", x, graph.whole(1, 2))
    location, scale = (graph.constant(piece[n][None]) for n in ("location", "scale"))  # 1 × positions × classes
    z = graph.node("Div", graph.node("Sub", x, location), scale)
    z = graph.node("Min", graph.node("Max", z, graph.constant(np.array(-FAR))), graph.constant(np.array(FAR)))
    square, freedom = graph.node("Mul", z, z), piece.get("freedom")
    height = BellForm(None, piece["location"], piece["scale"], freedom).height[None]
    if freedom is None:
        top = graph.constant(height)
        log = graph.node("Add", graph.node("Mul", square, graph.constant(np.array(-0.5))), top)
    else:
        ratio = graph.node("Div", square, graph.constant(freedom[None]))
        curve = graph.node("Log", graph.node("Add", ratio, graph.constant(np.array(1.0))))
        bent = graph.node("Mul", curve, graph.constant(-((freedom + 1) / 2)[None]))
        log = graph.node("Add", bent, graph.constant(height))
    log = graph.node("Where", graph.node("IsNaN", x), graph.constant(np.zeros(1)), log)
    return graph.node("ReduceSum", log, graph.whole(1), keepdims=0)


def _poisson(graph: OnnxGraph, piece: dict[str, Any], n_classes: int) -> str:
    """x·log λ + offset, mostly −λ, up to what all classes share; 0 for missing and for negative numbers."""
    x = graph.node("Unsqueeze", graph.input(piece), graph.whole(1))
    rate = piece["rate"]
    if not (rate > 0).all():
        raise SettingsError(
            f"column {piece['name']!r} has a rate of 0, which ONNX cannot take the logarithm of",
            hint="use tb.families.Poisson() with its prior of half an event.",
        )
    there = graph.node("Not", graph.node("Less", x, graph.constant(np.zeros(1))))
    there = graph.node("And", there, graph.node("Not", graph.node("IsNaN", x)))
    grown = graph.node("Mul", x, graph.constant(np.log(rate)[None, :]))
    log = graph.node("Add", grown, graph.constant(piece.get("offset", -rate)[None, :]))
    return graph.node("Where", there, log, graph.constant(np.zeros(1)))


def _words(graph: OnnxGraph, piece: dict[str, Any], n_classes: int) -> str:
    """The amounts of words times what each of them says."""
    x = graph.input(piece)
    if piece["once"]:
        x = _present(graph, x)
    return _product(graph, x, _by_position(piece, piece["logs"], piece["unseen"]))


def _presence(graph: OnnxGraph, piece: dict[str, Any], n_classes: int) -> str:
    """What the words that are there say, and those that are not."""
    x = _present(graph, graph.input(piece))
    gone = graph.node("Sub", graph.constant(np.array(1.0)), x)
    nothing = np.zeros(n_classes)
    there, absent = (_by_position(piece, piece[name], nothing) for name in ("present", "absent"))
    return graph.node("Add", _product(graph, x, there), _product(graph, gone, absent))


def _by_position(piece: dict[str, Any], logs: Floats, unseen: Floats) -> Floats:
    """A row of logs for each column of the matrix."""
    out = np.tile(np.asarray(unseen, dtype=np.float64), (piece["width"], 1))
    out[[int(word) for word in piece["words"]]] = logs
    return out


def _present(graph: OnnxGraph, x: str) -> str:
    return graph.node("Cast", graph.node("Greater", x, graph.constant(np.zeros(1))), to=graph.onnx.TensorProto.DOUBLE)


def _product(graph: OnnxGraph, x: str, logs: Floats) -> str:
    """Rows × positions times positions × classes; a class is impossible where a word that is there makes it so."""
    never = np.isneginf(logs)
    sums = graph.node("MatMul", x, graph.constant(np.where(never, 0.0, logs)))
    if not never.any():
        return sums
    struck = graph.node("MatMul", _present(graph, x), graph.constant(never.astype(np.float64)))
    out = graph.node("Greater", struck, graph.constant(np.zeros(1)))
    return graph.node("Where", out, graph.constant(np.array([-np.inf])), sums)


def _blend(graph: OnnxGraph, piece: dict[str, Any], n_classes: int) -> str | None:
    """The sum of what several forms say, each by its share and at most `most` against a class."""
    total = None
    for own in piece["parts"]:
        part = _FORMS[own["form"]](graph, {**piece, **own}, n_classes)
        if part is not None:
            part = graph.node("Max", part, graph.constant(np.array([_IMPOSSIBLE])))  # no difference of infinities
            best = graph.node("ReduceMax", part, graph.whole(1), keepdims=1)
            part = graph.node("Max", graph.node("Sub", part, best), graph.constant(np.array([-piece["most"]])))
            part = graph.node("Mul", part, graph.constant(np.array(own["share"])))
            total = part if total is None else graph.node("Add", total, part)
    return total


def _pair(graph: OnnxGraph, piece: dict[str, Any], n_classes: int) -> str:
    """A table over two places, with one more place of zeros on each side: missing, or never seen."""
    logs = np.pad(piece["logs"], ((0, 1), (0, 1), (0, 0)))
    u, v = (_place(graph, side, size) for side, size in zip(piece["sides"], piece["logs"].shape, strict=False))
    at = graph.node("Add", graph.node("Mul", u, graph.whole(logs.shape[1])), v)
    return graph.node("Gather", graph.constant(logs.reshape(-1, n_classes)), at, axis=0)


def _place(graph: OnnxGraph, side: dict[str, Any], other: int) -> str:
    """The place of a value, or one more than there are."""
    if side["kind"] == "number":
        return _passed(graph, graph.input(side), np.array(side["cuts"], dtype=np.float64))
    values = side["values"] or [""]
    places = side.get("places") or list(range(len(values)))
    return graph.node(
        "LabelEncoder", graph.input(side), domain="ai.onnx.ml", default_int64=other, keys_strings=values,
        values_int64s=places,
    )  # fmt: skip


_FORMS: dict[str, Callable[[OnnxGraph, dict[str, Any], int], str | None]] = {
    "blend": _blend, "normal": _bell, "pair": _pair, "poisson": _poisson, "presence": _presence, "steps": _steps,
    "student": _bell, "table": _table, "words": _words,
}  # fmt: skip


def _bent(graph: OnnxGraph, apart: str, lead: MarginScaling) -> str:
    """Distances to the best class times scale · lead^exponent; as they are where no second class is possible."""
    two = graph.node("TopK", apart, graph.whole(2), axis=1, beside=("places",))
    second = graph.node("Neg", graph.node("Slice", two, graph.whole(1), graph.whole(2), graph.whole(1)))
    size = graph.node("Clip", second, graph.constant(np.array(LEAST)), graph.constant(np.array(1e300)))
    power = graph.node("Pow", size, graph.constant(np.array(lead.exponent)))
    times = graph.node("Mul", power, graph.constant(np.array(lead.scale)))
    alone = graph.node("Greater", second, graph.constant(np.array([[1e300]])))
    return graph.node("Where", alone, apart, graph.node("Mul", apart, times))


def _answers(graph: OnnxGraph, total: str, sealed: Sealed, answers: OnnxAnswers) -> None:
    """Where every class is impossible the prior answers; then exp(score − largest) over its sum."""
    n = len(sealed.classes)
    prior = graph.constant(sealed._model.start[None, :])
    axis = graph.whole(1)
    top = graph.node("ReduceMax", total, axis, keepdims=1)
    least = graph.constant(np.array([[-np.finfo(np.float64).max]]))
    if sealed._model.settings.lead is not None and n > 1:
        total = _bent(graph, graph.node("Sub", total, top), sealed._model.settings.lead)
    total = graph.node("Where", graph.node("Less", top, least), prior, total)
    above = graph.node("Exp", graph.node("Sub", total, graph.node("ReduceMax", total, axis, keepdims=1)))
    kind = graph.onnx.TensorProto
    label, probabilities = graph.own("label"), graph.own("probabilities")
    share, plain = graph.node("ReduceSum", above, axis, keepdims=1), answers.order is None and answers.wide
    exact = graph.node("Div", above, share, out=probabilities if plain else None)
    if answers.order is not None:
        exact = graph.node("Gather", exact, graph.whole(*answers.order), axis=1)
    if not plain:
        graph.node("Cast", exact, out=probabilities, to=kind.DOUBLE if answers.wide else kind.FLOAT)
    best = graph.node("ArgMax", exact, axis=1, keepdims=0)
    whole = all(type(c) is int and -_INT64 <= c < _INT64 for c in answers.labels)
    labels = graph.whole(*answers.labels) if whole else graph.constant([str(canon.text(c)) for c in answers.labels])
    graph.node("Gather", labels, best, out=label, axis=0)
    graph.output(label, kind.INT64 if whole else kind.STRING, ["rows"])
    graph.output(probabilities, kind.DOUBLE if answers.wide else kind.FLOAT, ["rows", n])
