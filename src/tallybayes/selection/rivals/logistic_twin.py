"""The discriminative twin: logistic regression over the same columns, started from naive Bayes' own W and b.

    minimise   Σ −log softmax(W·(x − x₀) + b)[y] + ½·penalty·‖W·σ‖²      over W and b

Naive Bayes sets the weights by counting, each column by itself; the twin moves them so that the answers fit. Where the
columns repeat each other the two differ, and side by side they show it. σ is a number's deviation, as if numbers had
been standardised, and 1 for words and values; b is not penalised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse
from scipy.optimize import minimize

from ...base.arrays import Floats, Ints, log_sum_exp
from ...base.canon import printable, text
from ...base.errors import SettingsError
from ...base.show import Page
from ...data import encode
from ...data.blocks import Bag, Block
from ...data.guess import Reading
from ...data.schema import Schema
from ...data.sources import Source, open_source
from ...families.settings import Settings, SettingsLike
from ...families.words import WordsBelief
from ...model.estimate import estimate
from ...model.model import Model
from ...model.views import LinearView
from ...tally.tally import Tally
from ..measure.cross_validate import opened
from ..measure.metrics import log_loss
from ..parts import Plan

_SHOWN = 20
_STEPS = 500


@dataclass(frozen=True, eq=False)
class LogisticTwin:
    """Naive Bayes and logistic regression over the same features: `W` and `b`, and those of `counted`, the naive Bayes.

    `loss` is the mean log loss of both on the rows they were fitted to.

    >>> twin = tb.logistic_twin({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "a", "b", "b"]}, "y")
    >>> twin.table.column_names, twin.W.shape
    (['feature', 'class', 'naive_bayes', 'logistic'], (2, 1))
    """

    classes: tuple[Any, ...]
    names: tuple[str, ...]
    counted: LinearView  # naive Bayes
    W: Floats  # logistic regression, classes × features
    b: Floats
    model: Model
    loss: tuple[float, float]  # mean log loss on the training rows: naive Bayes, logistic regression

    def predict_proba(self, rows: Any) -> Floats:
        """softmax(W·(x − x₀) + b); a missing number counts as its mean."""
        out = []
        for batch in open_source(self.model.table_of(rows)).batches():
            x = _features(self.model, self.counted, encode.bags(encode.blocks(self.model.schema, batch)), batch.rows)
            out.append(_softmax(_scores(x, self.W, self.b)))
        return np.concatenate(out)

    @property
    def table(self) -> pa.Table:
        """feature, class, and the weight that each of the two gives it."""
        c, f = self.W.shape
        return pa.table(
            {
                "feature": np.repeat(np.array(self.names, dtype=object), c).tolist(),
                "class": [str(k) for k in self.classes] * f,
                "naive_bayes": _centred(self.counted.W).T.ravel(),
                "logistic": _centred(self.W).T.ravel(),
            }
        )

    def __repr__(self) -> str:
        losses = f"naive Bayes log loss {self.loss[0]:.4f}, logistic regression {self.loss[1]:.4f}"
        last = len(self.classes) - 1
        two = len(self.classes) == 2
        ours, theirs = (w[last] - w[0] if two else _centred(w)[last] for w in (self.counted.W, self.W))
        against = f" against {printable(self.classes[0], 20)}" if two else ""
        title = f"weights for {printable(self.classes[last], 20)}{against}, those that moved most"
        order = np.argsort(-np.abs(ours - theirs), kind="stable")[:_SHOWN]
        lines = [[printable(self.names[i], 40), f"{ours[i]:+.4g}", f"{theirs[i]:+11.4g}"] for i in order]
        page = Page(title, [["", "naive Bayes", "logistic"], *lines], indent=2)
        return f"{losses} on {len(self.names):,} features of the training rows\n{page}"


Twin = LogisticTwin  # the name it had first, kept for who uses it


def _centred(w: Floats) -> Floats:
    """Weights about their mean over the classes: softmax knows no more."""
    return np.asarray(w - w.mean(axis=0, keepdims=True))


def logistic_twin(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    settings: SettingsLike = None,
    weights: Any = None,
    penalty: float = 1.0,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> LogisticTwin:
    """Logistic regression over the columns of a naive Bayes model, started from its weights; both side by side.

    Numbers are believed Gaussian with a shared variance, which makes the model linear. `penalty` holds the weights near
    zero; SettingsError where it is below 0.

    >>> import tallybayes as tb
    >>> twin = tb.logistic_twin({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "a", "b", "b"]}, "y")
    >>> twin.names, twin.predict_proba({"x": [1.5, 3.5]}).argmax(axis=1).tolist()
    (('x',), [0, 1])
    """
    stated, reading = Settings.of(settings), Reading.of(missing, strict, date_format, fold, kinds)
    source, schema, _ = opened(data, target, y, weights, Plan(), schema, reading)
    return twin_of(source, schema, stated, penalty)


def twin_of(source: Source, schema: Schema, settings: Settings, penalty: float = 1.0) -> LogisticTwin:
    """The twin of the model that a source's rows give under linear families."""
    if not 0 <= penalty < np.inf:
        raise SettingsError(f"penalty={penalty}", hint="it holds weights near zero: take a number of at least 0.")
    model = estimate(Tally.of(schema, source), linear_settings(schema, settings))
    view = model.linear()
    names = [str(text(c)) for c in model.classes]
    xs, labels, weights = [], [], []
    for batch in source.batches():
        read = encode.labelled(schema, batch)
        xs.append(_features(model, view, encode.bags(read.blocks), len(read.rows)))
        labels.append(np.array([names.index(c) for c in read.classes] or [0], dtype=np.int64)[read.labels])
        weights.append(np.ones(len(read.rows)) if read.weights is None else read.weights)
    x = scipy.sparse.csr_array(scipy.sparse.vstack(xs, format="csr"))
    return _fitted(model, view, x, np.concatenate(labels), np.concatenate(weights), penalty)


def linear_settings(schema: Schema, settings: Settings) -> Settings:
    """The settings with families that have a linear view, without corrections, which are those of others."""
    numbers = {c.name: "gaussian-shared" for c in schema.counted if c.about.moments}
    settings = Settings.of(settings, schema)
    return replace(settings, families={**settings.families, **numbers}, predictive=False, corrections={})


def _features(model: Model, view: LinearView, blocks: Mapping[str, Block], rows: int) -> scipy.sparse.csr_array:
    """x − x₀ for number columns and x elsewhere, missing numbers at their centre; words stay sparse."""
    parts = [scipy.sparse.csr_array((rows, 0))]
    for name, column in view._columns.items():
        belief, block = model.beliefs[name], blocks[name]
        if isinstance(belief, WordsBelief) and isinstance(block, Bag):
            at = belief.rows_of(block.slots)
            known = np.flatnonzero(at >= 0)
            shape = (len(block.slots), column.weights.shape[1])
            pick = scipy.sparse.csr_array((np.ones(len(known)), (known, at[known])), shape=shape)
            parts.append(block.matrix @ pick)
        else:
            parts.append(scipy.sparse.csr_array(np.nan_to_num(column.features(block) - column.centre, nan=0.0)))
    return scipy.sparse.csr_array(scipy.sparse.hstack(parts, format="csr"))


def _scores(x: scipy.sparse.csr_array, w: Floats, b: Floats) -> Floats:
    return np.asarray(x @ w.T + b, dtype=np.float64)


def _softmax(scores: Floats) -> Floats:
    return np.asarray(np.exp(scores - log_sum_exp(scores)[:, None]))


def _fitted(
    model: Model, view: LinearView, x: scipy.sparse.csr_array, labels: Ints, weights: Floats, penalty: float
) -> LogisticTwin:
    n, d = x.shape
    c = len(model.classes)
    total = weights.sum()
    mean = np.asarray((x.multiply(weights[:, None])).sum(axis=0)).ravel() / total
    square = np.asarray((x.multiply(x).multiply(weights[:, None])).sum(axis=0)).ravel() / total
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    measured = [model.schema[name].about.moments for name, part in view._columns.items() for _ in part.names]
    unit = np.where(np.array(measured, dtype=bool) & (deviation > 0), deviation, 1.0)
    scaled = scipy.sparse.csr_array(x @ scipy.sparse.diags_array(1.0 / unit))
    hot = np.zeros((n, c))
    hot[np.arange(n), labels] = 1.0
    strength = penalty * (2.0 if c == 2 else 1.0)  # two rows of opposite weights: ‖w‖² of their difference is twice
    each = weights[:, None]

    def objective(flat: Floats) -> tuple[float, Floats]:
        w, b = flat[: c * d].reshape(c, d), flat[c * d :]
        scores = _scores(scaled, w, b)
        log_p = scores - log_sum_exp(scores)[:, None]
        loss = -float(np.sum(each * hot * log_p)) + 0.5 * strength * float(np.sum(w * w))
        slope = each * (np.exp(log_p) - hot)
        return loss, np.concatenate([(slope.T @ scaled + strength * w).ravel(), slope.sum(axis=0)])

    start = np.concatenate([(_centred(view.W) * unit).ravel(), view.b - view.b.mean()])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS, "maxcor": 20})
    w, b = found.x[: c * d].reshape(c, d) / unit, found.x[c * d :]
    losses = [log_loss(labels, _softmax(_scores(x, *p)), weights) for p in ((view.W, view.b), (w, b))]
    return LogisticTwin(model.classes, view.names, view, w, b, model, (losses[0], losses[1]))
