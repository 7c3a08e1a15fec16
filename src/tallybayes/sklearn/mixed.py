"""Data frames of mixed columns as they are: numbers, categories, text, dates, missing values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d, validate_data

from ..base.arrays import Floats, Ints
from ..base.errors import DataError, SettingsError
from ..data.guess import Reading
from ..data.infer import LOOK, MATRIX_COLUMNS, first_look, infer, with_kinds
from ..data.schema import Column, Schema
from ..data.sources import LABELS, MATRIX, open_source
from ..data.values import is_text
from ..exact.cells import Cells
from ..families.settings import Settings
from ..families.smoothing import Dirichlet
from ..model.model import Model
from ..model.prior import prior_probabilities
from ..selection.choose.chosen import choose, unfitted
from . import labels
from .base import TallyClassifier

TEXT = "text"  # the column that a sequence of texts is


class NaiveBayes(TallyClassifier):
    """Naive Bayes for tables of any columns: pandas, polars or Arrow frames, dense or sparse matrices; or for texts.

    families     {column: family or its name}, or one for all columns that it can read; numbers are "auto" (by
                 leave-one-out) unless named
    smoothing    a number (Laplace's alpha), a smoothing such as tb.JelinekMercer(0.1), or {column: smoothing}
    prior        "counted", "uniform", {class: probability}, tb.Dirichlet({…}), or a list in the order of classes_
    calibration  "auto": families, weights, corrections and pairs of columns chosen on held-out rows of the first batch,
                 as `tallybayes.fit` does, for honest probabilities; None or False: as stated, nothing is chosen
    schema       which kind each column is; inferred at the first fit or partial_fit if None
    kinds        without a schema, what some columns are: {"zip": "category", "note": "text"}; of a matrix {"x3": …}

    >>> from tallybayes.sklearn import NaiveBayes
    >>> import pandas as pd
    >>> X = pd.DataFrame({"sky": ["sunny", "rainy", None, "rainy"], "wind": [3.5, 12.0, 4.0, None]})
    >>> NaiveBayes().fit(X, ["go", "stay", "go", "stay"]).predict(X)
    array(['go', 'stay', 'go', 'stay'], dtype='<U4')
    >>> NaiveBayes().fit(["win a prize", "lunch at noon"], ["spam", "ham"]).predict(["a prize"])
    array(['spam'], dtype='<U4')
    """

    _open = True
    _takes = ("allow_nan", "categorical", "string", "sparse")
    _one_text = False  # whether a sequence of texts was fitted, and no table
    _chosen: tuple[Settings, Settings] | None = None  # what was stated when fitting, and what was chosen then

    def __init__(
        self,
        *,
        families: Mapping[str, Any] | str | None = None,
        smoothing: Any = 1.0,
        prior: Any = "counted",
        calibration: Any = "auto",
        schema: Schema | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        self.families = families
        self.smoothing = smoothing
        self.prior = prior
        self.calibration = calibration
        self.schema = schema
        self.kinds = kinds

    @property
    def schema_(self) -> Schema:
        """Which kind each column is, and why."""
        return self.tally_.schema

    def _validated(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        if reset:
            self._one_text = False
        if isinstance(X, str):
            raise DataError("X is one text", hint="give a list of texts, one for each row: [text].")
        X = labels.frame(X)
        if (texts := one_text_column(X, gone=self._one_text)) is not None:
            self._one_text = reset or self._one_text
            X = pa.table({self._text_name(reset): texts})
        if _is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if X.shape[0] == 0:
                raise ValueError(
                    f"Found array with 0 sample(s) while a minimum of 1 is required by {type(self).__name__}."
                )
        else:
            X = validate_data(self, X, reset=reset, dtype=None, accept_sparse="csr", ensure_all_finite="allow-nan")
        if isinstance(y, str) and y == "no_validation":
            return X
        if y is None:
            return validate_data(self, X, y, skip_check_array=True)  # says that y is missing
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_consistent_length(X, y)
        return X, y

    def _text_name(self, reset: bool) -> str:
        """The column that a sequence of texts is: that of the frame or the schema which came first, or "text"."""
        known = [] if reset else getattr(self, "feature_names_in_", [])
        if reset and isinstance(self.schema, Schema):
            known = list(dict.fromkeys(name for column in self.schema.counted for name in column.inputs))
        return str(known[0]) if len(known) == 1 else TEXT

    def _table(self, X: Any) -> Any:
        """Columns under the names they were fitted by: a frame's own, else x0, x1, …"""
        names = getattr(self, "feature_names_in_", None)
        if _is_frame(X):
            return X if names is not None else dict(zip(_positions(X.shape[1]), _frame_columns(X), strict=True))
        if names is None:
            return X
        if scipy.sparse.issparse(X):
            X = X.toarray()
        return {name: X[:, j] for j, name in enumerate(names)}

    def _schema(self, table: Any, y: Any, weights: Floats | None) -> Schema:
        stated, calibrates = self._stated(), self._calibrates()  # refuse what is wrong before the rows are looked at
        if not (self.schema is None or isinstance(self.schema, Schema)):
            raise SettingsError(f"schema={self.schema!r}", hint="give a tb.Schema, such as tb.infer makes, or None.")
        kinds = Reading.of(kinds=self.kinds).kinds
        if kinds and self.schema is not None:
            raise SettingsError("kinds beside a schema, which says what every column is", hint="leave one of them out.")
        schema = self.schema or self._look(table, y, weights, kinds)
        Settings.of(stated, schema)  # refused here where it names a column that there is not
        schema = schema._with(label_type=labels.label_type(self.classes_))
        if calibrates:
            if weights is not None:
                rows = _looked_at(weights)
                weights = None if len(rows) == weights.sum() else weights[rows]  # repeated as often as they weigh
                y = y.take(pa.array(rows)).dictionary_decode().dictionary_encode()  # without classes that weigh nothing
                table = _taken(table, rows)
            look = first_look(open_source(table, y, weights=weights, target=schema.target))
            schema, chosen = choose(look, schema, stated)
            self._chosen = (stated, chosen)
        return schema

    def _look(self, table: Any, y: Any, weights: Floats | None, kinds: Mapping[str, str]) -> Schema:
        """A schema for the first rows."""
        if weights is not None:
            rows = _looked_at(weights)
            table, y = _taken(table, rows), y.take(pa.array(rows))
        if isinstance(table, np.ndarray) and table.dtype.kind in "fiub":
            return with_kinds(Schema(_number_columns(table), target=LABELS), kinds)
        schema = _inferred(table, y, kinds)
        if self._one_text and table.column_names[0] not in kinds:
            schema = schema.with_column(table.column_names[0], kind="text", reason="a sequence of texts")
        return schema

    def _calibrates(self) -> bool:
        if self.calibration not in (None, False, True, "auto"):
            raise SettingsError(
                f"calibration={self.calibration!r}",
                hint="take 'auto' for families and weights chosen on held-out rows, or None for those you state.",
            )
        return bool(self.calibration)

    def _settings(self) -> Settings:
        """What the parameters state; with calibration what held-out rows chose, and what was stated otherwise since."""
        stated = self._stated()
        classes = self._class_texts()
        if not self._calibrates():
            return replace(stated, classes=classes)
        if self._chosen is None:
            raise SettingsError(
                "calibration was asked for after fitting", hint="fit again: weights are fitted to held-out rows."
            )
        before, chosen = self._chosen
        families = chosen.families
        if stated.families != before.families:
            by_name = isinstance(stated.families, Mapping)
            families = {**families, **stated.families} if by_name else stated.families
        smoothing = stated.smoothing if stated.smoothing != before.smoothing else chosen.smoothing
        return replace(chosen, prior=stated.prior, families=families, smoothing=smoothing, classes=classes)

    def _stated(self) -> Settings:
        if "" in self._class_texts():
            raise DataError("a label is an empty string, which means missing", hint="give that class a name.")
        prior = self.prior
        if not isinstance(prior, (str, Mapping, Dirichlet)):
            prior = self._given_prior(prior)
        return Settings(smoothing=self.smoothing, prior=prior, families={} if self.families is None else self.families)

    def _check_classes(self) -> None:
        if isinstance(self.prior, Mapping):
            prior_probabilities(self.prior, self._class_texts())

    def _recall(self, model: Model) -> None:
        if self._calibrates():
            self._chosen = (self._stated(), model.settings)

    @classmethod
    def _params_of(cls, model: Model) -> dict[str, Any]:
        settings = model.settings if model.settings.calibrated is None else unfitted(model.settings)
        chosen = {"families": settings.families or None, "smoothing": settings.smoothing, "prior": settings.prior}
        return {**chosen, "calibration": None if model.settings.calibrated is None else "auto", "schema": model.schema}


def _looked_at(weights: Floats) -> Ints:
    """The rows to infer from: one of weight 3 counts three times, one of weight 0 not at all."""
    if weights.sum() <= LOOK and (weights == np.rint(weights)).all():
        return np.repeat(np.arange(len(weights)), weights.astype(np.int64))
    return np.flatnonzero(weights > 0)


def _taken(table: Any, rows: Ints) -> Any:
    """Some rows of a frame, a matrix or a dict of columns."""
    if isinstance(table, dict):
        return {name: _safe_indexing(column, rows) for name, column in table.items()}
    return _safe_indexing(table, rows)


def one_text_column(X: Any, gone: bool = False) -> Any:
    """A sequence of texts as an Arrow column; None if it is anything else.

    A missing text is None or NaN; `gone` says that all of them may be.
    """
    if isinstance(X, np.ndarray):
        X = X.tolist() if X.ndim == 1 and X.dtype.kind in "OUT" else None
    if isinstance(X, (list, tuple)):
        X = X if len(X) and isinstance(X[0], (str, float, type(None))) else None
    elif not isinstance(X, (pa.Array, pa.ChunkedArray)) and type(X).__name__ != "Series":
        X = None
    if X is None:
        return None
    with suppress(pa.ArrowException, TypeError, ValueError):  # of values that are not of one type
        column = X.to_arrow() if hasattr(X, "to_arrow") else X
        column = column if isinstance(column, (pa.Array, pa.ChunkedArray)) else pa.array(column, from_pandas=True)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if is_text(kind) or pa.types.is_string_view(kind) or (gone and pa.types.is_null(kind) and len(column)):
            return column if is_text(kind) else column.cast(pa.large_string())
    return None


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and not isinstance(X, np.ndarray) and hasattr(X, "shape")


def _positions(width: int) -> list[str]:
    return [f"{MATRIX}{j}" for j in range(width)]


def _frame_columns(X: Any) -> list[Any]:
    if hasattr(X, "iloc"):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    return list(X.columns if isinstance(X, pa.Table) else X.get_columns())


def _number_columns(X: Any) -> list[Column]:
    """A number column for each column of a matrix, or one vector for a wide one."""
    width = X.shape[1]
    if width > MATRIX_COLUMNS:
        return [Column(MATRIX, "vector", width=width, reason=f"a matrix of {width} columns")]
    look = np.asarray(first_look(open_source(X)).columns[MATRIX], dtype=np.float64)
    return [
        Column(name, "number", cells=Cells.fitted(x[~np.isnan(x)]) if (x == x).any() else None, reason="numbers")
        for name, x in zip(_positions(width), look.T, strict=True)
    ]


def _inferred(table: Any, y: Any, kinds: Mapping[str, str]) -> Schema:
    """A schema for a frame: everything but ids is counted, since X was chosen by a person.

    A column that is constant so far may vary in the next batch, and one that gives the label away was meant to.
    """
    first = next(open_source(table).batches())
    target = LABELS
    while target in first:
        target += "_"
    texts = pa.DictionaryArray.from_arrays(y.indices, pa.array(map(str, y.dictionary.to_pylist()), pa.string()))
    schema = infer(table, target, texts, kinds=kinds, keep_leaks=True)
    for column in (c for c in schema.columns if c.kind == "ignore" and c.name not in kinds):
        raw = first.get(column.name)
        flat = isinstance(raw, pa.Array) and not pa.types.is_nested(raw.type)
        if flat and len(pc.unique(raw.drop_null())) <= 1:
            number = pa.types.is_integer(raw.type) or pa.types.is_floating(raw.type)
            schema = schema.with_column(column.name, kind="number" if number else "category", reason=column.reason)
    return schema
