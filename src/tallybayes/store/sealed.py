"""A sealed scorer: the numbers that answers are made of, without the counts behind them.

It predicts and explains like the model it came from, to the last digits, and can do nothing else: not learn, not
forget, not be merged. Its file has no counts. What it still shows is said in docs/model_file.md: the words and values
it knows, probabilities, and for Student-t columns how many values each class had (the degrees of freedom).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..base import canon
from ..base.arrays import Floats
from ..base.arrow import array, numpy_of
from ..base.disk import read_whole
from ..base.errors import ModelFileError, SettingsError
from ..data.schema import Column, Schema
from ..families.base import Belief
from ..families.forms import NoForm
from ..families.plain import TYPES
from ..families.settings_json import settings_from_json, settings_to_json
from ..model.model import Model
from .model_file import FORMAT, metadata_of, understood
from .parquet import PREFIX, pack, unpack

if TYPE_CHECKING:
    from ..explain.explanation import Explanation


@dataclass(frozen=True, eq=False)
class Sealed:
    """A scorer without counts: `predict`, `predict_proba`, `predict_log_proba` and `explain`, nothing else.

    >>> model = tb.textbook({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> size = len(model.export("play.sealed", "sealed"))
    >>> sealed = tb.load_sealed("play.sealed")
    >>> sealed.classes, hasattr(sealed, "tally")
    (('no', 'yes'), False)
    """

    _model: Model

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in the order of the probability columns."""
        return self._model.classes

    @property
    def schema(self) -> Schema:
        """The columns that are read."""
        return self._model.schema

    def predict(self, rows: Any) -> Any:
        """The most probable class of each row, as the labels went in.

        >>> days = tb.datasets.tennis()
        >>> size = len(tb.textbook(days, "Play").export("play.sealed", "sealed"))
        >>> tb.load_sealed("play.sealed").predict(days.records()[:2]).tolist()
        ['no', 'no']
        """
        return self._model.predict(rows)

    def predict_proba(self, rows: Any) -> Floats:
        """P(class given row), rows × classes."""
        return self._model.predict_proba(rows)

    def predict_log_proba(self, rows: Any) -> Floats:
        """log P(class given row)."""
        return self._model.predict_log_proba(rows)

    def explain(self, row: Any, number: int = 0, *, log: str = "natural") -> Explanation:
        """Why one row gets its answer; numbers seen by bins or kernel are told up to what all classes share."""
        return self._model.explain(row, number, log=log)

    def __repr__(self) -> str:
        names = ", ".join(canon.printable(c, 20) for c in self.classes[:6])
        return f"Sealed scorer: {names} · {len(self._model.beliefs)} columns"


def seal(model: Model) -> Sealed:
    """The scorer of a model, without its counts."""
    for name, belief in model.beliefs.items():
        form = belief.form()
        if isinstance(form, NoForm):
            raise SettingsError(f"column {name!r} is {form.what}", hint=form.hint)
    beliefs = {name: belief.sealed() for name, belief in model.beliefs.items()}
    settings = model.settings.without(estimated=True)
    return Sealed(Model(_bare(model.schema), model.classes, model.log_prior, beliefs, {}, settings))


def _bare(schema: Schema) -> Schema:
    """The schema without what only counting needs, and without what `infer` said about the data."""
    columns = [
        Column(
            c.name, c.kind, text=c.text, width=c.width, source=c.source, part=c.part, of=c.of, missing=c.missing,
            spelling=c.spelling,
        )
        for c in schema.counted
    ]  # fmt: skip
    return Schema(columns, target=schema.target, label_type=schema.label_type, missing=schema.missing, fold=schema.fold)


# ---- the file: a row per number or text of every belief


def sealed_to_bytes(sealed: Sealed) -> bytes:
    """A sealed scorer as the bytes of its file."""
    model = sealed._model
    rows = _Rows()
    scorer = {
        "classes": [str(canon.text(c)) for c in model.classes],
        "log_prior": [float(v).hex() for v in model.log_prior],
        "beliefs": {name: rows.described(name, belief) for name, belief in sorted(model.beliefs.items())},
    }
    texts = metadata_of("sealed", model.schema, settings=settings_to_json(model.settings), scorer=scorer)
    return pack(rows.table(), texts)


def check_sealed(raw: bytes) -> None:
    """Refuse the bytes of a file that would not be read back as the scorer they were made of."""
    if sealed_to_bytes(sealed_from_bytes(raw, trusted=True)) != raw:
        raise ModelFileError(
            "the sealed scorer would be read back as another, so it was not written",
            hint="what cannot be kept is most likely a name or value of an unusual type: use texts and numbers.",
        )


class _Rows:
    """The numbers and texts of beliefs, one after another in the order in which JSON writes their fields."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.fields: list[str] = []
        self.texts: list[str | None] = []
        self.values: list[Floats] = [np.zeros(0)]

    def described(self, name: str, belief: Belief) -> dict[str, Any]:
        """What JSON says of a belief: its type, its short fields, and how much of the table its long ones take."""
        own = [f for f in fields(belief) if not f.metadata.get("usual") or getattr(belief, f.name) != f.default]  # type: ignore[arg-type]
        given = {f.name: getattr(belief, f.name) for f in own}
        return {"type": type(belief).__name__, "fields": {n: self._field(name, n, given[n]) for n in sorted(given)}}

    def _field(self, name: str, field: str, given: Any) -> dict[str, Any]:
        if given is None or isinstance(given, (bool, int, float)):
            return {"is": given}
        if isinstance(given, tuple) and all(isinstance(v, Belief) for v in given):
            return {"beliefs": [self.described(name, v) for v in given]}
        if isinstance(given, tuple) and all(isinstance(v, float) for v in given):
            return {"floats": list(given)}
        words = isinstance(given, tuple)
        flat = np.full(len(given), np.nan) if words else np.asarray(given, dtype=np.float64).ravel()
        self.names += [name] * len(flat)
        self.fields += [field] * len(flat)
        self.texts += list(given) if words else [None] * len(flat)
        self.values.append(flat)
        return {"texts": len(flat)} if words else {"shape": list(given.shape), "dtype": given.dtype.kind}

    def table(self) -> pa.Table:
        """A row per number or text."""
        texts = {"column": self.names, "field": self.fields, "text": self.texts}
        return pa.table(
            {n: array(v, pa.string()) for n, v in texts.items()} | {"value": array(np.concatenate(self.values))}
        )


def sealed_from_bytes(raw: bytes, *, trusted: bool = False) -> Sealed:
    """The inverse of `sealed_to_bytes`."""
    parts = unpack(raw, trusted=trusted)
    given = {k.removeprefix(PREFIX): v for k, v in parts.metadata.items()}
    if given.get("kind") != "sealed" or given.get("format") != str(FORMAT):
        raise ModelFileError(
            f"a file that holds a {given.get('kind', 'table')[:40]!r} of format {given.get('format', '')[:20]!r}",
            hint="tb.load(path) reads a model; tb.load_sealed(path) reads what model.export(path) sealed.",
        )
    with understood():
        schema = Schema.from_dict(json.loads(given["schema"]))
        scorer = json.loads(given["scorer"])
        labels = canon.labels_of(scorer["classes"], schema.label_type)
        log_prior = np.array([float.fromhex(v) for v in scorer["log_prior"]])
        settings = settings_from_json(json.loads(given["settings"]))
        beliefs = _beliefs(scorer["beliefs"], parts.table(("column", "field")))
        if set(beliefs) != set(schema.names) or len(log_prior) != len(labels):
            raise ValueError("columns, classes and schema do not fit each other")
        beliefs = {name: beliefs[name] for name in schema.names}
        for name, belief in beliefs.items():
            if (wrong := belief.misfit(schema[name], len(labels))) is not None:
                raise ValueError(wrong)
        model = Model(schema, labels, log_prior, beliefs, {}, settings)
    return Sealed(model)


def _beliefs(given: Mapping[str, Any], table: pa.Table) -> dict[str, Belief]:
    value, text = numpy_of(table["value"].combine_chunks()), table["text"].combine_chunks()
    at = 0

    def made(belief: Mapping[str, Any], depth: int) -> Belief:
        if depth > 2:
            raise ValueError("beliefs within beliefs without end")
        return TYPES[belief["type"]](**{name: field(about, depth) for name, about in belief["fields"].items()})

    def field(about: Mapping[str, Any], depth: int) -> Any:
        nonlocal at
        if "is" in about:
            return about["is"]
        if "beliefs" in about:
            return tuple(made(b, depth + 1) for b in about["beliefs"])
        if "floats" in about:
            return tuple(float(v) for v in about["floats"])
        size = int(about["texts"]) if "texts" in about else int(np.prod([int(n) for n in about["shape"]]))
        if not 0 <= size <= len(value) - at:
            raise ValueError("a field has fewer numbers than it says")
        at += size
        if "texts" in about:
            return tuple(text[at - size : at].to_pylist())
        kind = {"f": np.float64, "i": np.int64, "b": np.bool_}[about["dtype"]]
        return value[at - size : at].astype(kind).reshape(about["shape"])

    return {name: made(belief, 0) for name, belief in given.items()}


def load_sealed(path: str | os.PathLike[str], *, trusted: bool = False) -> Sealed:
    """The sealed scorer that `model.export(path, "sealed")` wrote, after every check; ModelFileError if it is none.

    >>> model = tb.textbook({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> size = len(model.export("play.sealed", "sealed"))
    >>> tb.load_sealed("play.sealed").predict({"Sky": "rainy"}).tolist()
    ['no']
    """
    return sealed_from_bytes(read_whole(path), trusted=trusted)
