"""From parts to answers: S = b + Σ w·part, then log-sum-exp. NumPy only.

From probabilities to decisions: the likeliest class, the cheapest one, or none where it is too unsure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints, log_sum_exp
from ..base.canon import text
from ..base.errors import SettingsError, unknown, warn
from ..data.blocks import Block
from ..exact.kernels import gate
from ..families.calibration import Isotonic
from ..families.settings import Settings


def by_length(settings: Settings, column: str, tokens: Floats) -> Floats:
    """What the evidence of a column of words is multiplied by in texts of so many tokens: weight · tokens^exponent."""
    weight = settings.weights.get(column, 1.0)
    return np.asarray(weight * np.maximum(tokens, 1.0) ** settings.lengths.get(column, 0.0), dtype=np.float64)


def factor(settings: Settings, column: str, block: Block) -> float | Floats:
    """What a column's evidence is multiplied by: its weight, and for words tokens^exponent of each row."""
    weight = settings.weights.get(column, 1.0)
    if weight == 0 or settings.lengths.get(column, 0.0) == 0.0 or not hasattr(block, "lengths"):  # only words have
        return weight
    return by_length(settings, column, block.lengths())


def factor_of_one(settings: Settings, column: str, block: Block) -> float:
    """The same for a block of one row."""
    return float(np.max(factor(settings, column, block)))


def scores(
    log_prior: Floats,
    parts: Mapping[str, Floats],
    settings: Settings,
    blocks: Mapping[str, Block],
    rows: int | None = None,
) -> Floats:
    """log P(class) + Σ factor · part, rows × classes; `rows` says how many there are where no column has parts."""
    out = np.empty((next((len(p) for p in parts.values()), 0) if rows is None else rows, log_prior.shape[-1]))
    begin(log_prior, out)
    for column, part in parts.items():
        by = factor(settings, column, blocks[column])
        if isinstance(by, np.ndarray):
            out += by[:, None] * part
        elif by != 0:  # 0 · −inf would be NaN; a weight of 0 means that the column is not asked
            out += part if by == 1.0 else by * part
    return out


def begin(log_prior: Floats, out: Floats) -> None:
    """Fill the scores with what they start from."""
    if log_prior.ndim == 1 and len(log_prior) < len(out):  # class by class: NumPy takes long over many short rows
        for y, own in enumerate(log_prior.tolist()):
            out[:, y] = own
    else:
        out[:] = log_prior


def offsets(settings: Settings, classes: Sequence[Any]) -> Floats:
    """What the settings add to the score of each class."""
    return np.array([settings.offsets.get(str(text(c)), 0.0) for c in classes], dtype=np.float64)


def prior_shift(start: Floats, own_start: Floats) -> Floats:
    """How much another prior moves the score of each class; 0 where a class is impossible under one of them."""
    both = np.isfinite(start) & np.isfinite(own_start)
    return np.subtract(start, own_start, out=np.zeros_like(own_start), where=both)


def calibrated(settings: Settings, joint: Floats, shift: float | Floats = 0.0) -> Floats:
    """Whole scores, bent by the isotonic curve of two classes or by the lead; the best class keeps its own.

    Both belong to the prior they were fitted under: `shift` is how far another one has moved each score.
    """
    if settings.isotonic is not None and joint.shape[1] == 2:
        return _by_curve(settings.isotonic, joint, float(np.subtract(*np.broadcast_to(shift, 2)[::-1])))
    return joint if settings.lead is None else settings.lead(joint - shift) + shift


def _by_curve(curve: Isotonic, joint: Floats, shift: float) -> Floats:
    out = joint.copy()
    with np.errstate(invalid="ignore"):
        odds = joint[:, 1] - joint[:, 0]
    there = np.isfinite(odds)
    odds = curve(odds[there] - shift) + shift
    first, second = joint[there].T
    # not by adding to what may be −1e18: the answer would drown
    out[there, 0] = np.where(second > first, second - odds, first)
    out[there, 1] = np.where(second > first, second, first + odds)
    return out


def log_posterior(joint: Floats, log_prior: Floats) -> Floats:
    """log P(class given row). Where every class is impossible the prior answers, with a warning.

    The prior is one for all rows, or rows × classes.
    """
    top = joint.max(axis=1, keepdims=True)
    impossible = ~np.isfinite(top[:, 0])
    some = bool(impossible.any())
    above: Floats = joint - (np.where(impossible[:, None], 0.0, top) if some else top)  # so that nothing overflows
    with np.errstate(divide="ignore", invalid="ignore"):
        out: Floats = above - np.log(np.exp(above).sum(axis=1, keepdims=True))
    if some:
        prior = np.broadcast_to(log_prior, joint.shape)[impossible]
        out[impossible] = prior - log_sum_exp(prior)[:, None]
        _warn_impossible(np.flatnonzero(impossible))
    return out


@gate.guarded
def best(joint: Floats) -> Ints:
    """The number of the most probable class of each row, the first of equal ones; −1 where none is possible."""
    kernels = gate.kernels("scores", joint.size) if len(joint) > 64 else None
    if kernels is not None:
        out = np.empty(len(joint), dtype=np.int64)
        kernels.largest(joint, out)
        return out
    at = np.argmax(joint, axis=1)
    return np.where(joint[np.arange(len(at)), at] > -np.inf, at, -1)


def named(best: Iterable[Ints], labels: np.ndarray[Any, Any], log_prior: Floats) -> np.ndarray[Any, Any]:
    """The labels of such numbers, batch after batch; where none is possible the prior answers, with a warning."""
    out, impossible, seen = [labels[:0]], [], 0
    for numbers in best:
        if numbers.min(initial=0) < 0:
            impossible.append(seen + np.flatnonzero(numbers < 0))
            numbers = np.where(numbers < 0, np.argmax(log_prior), numbers)
        out.append(labels.take(numbers))
        seen += len(numbers)
    if impossible:
        _warn_impossible(np.concatenate(impossible))
    return np.concatenate(out)


def _warn_impossible(rows: Ints) -> None:
    warn(
        f"every class has probability 0 for {len(rows)} row(s), the first is row "
        f"{int(rows[0])}: the prior answers. Hint: smooth the counts, e.g. "
        "tally.model(tb.Settings(smoothing=tb.Laplace(1.0)))."
    )


UNSURE = -1
_PLAIN = "give every cost as a plain number."


def decide(p: Floats, classes: Sequence[Any], unsure_below: Any = None, costs: Any = None) -> Ints:
    """The number of the class for each row, −1 for unsure.

    With costs the class is taken that is cheapest on average: argmin over answers of Σ P(truth) · cost[truth, answer].
    `unsure_below` looks at the probability of the class that would be answered.
    """
    best = np.argmax(p, axis=1) if costs is None else np.argmin(p @ cost_table(costs, classes), axis=1)
    best = np.asarray(best, dtype=np.int64)
    if unsure_below is None:
        return best
    if isinstance(unsure_below, str) or not 0 <= unsure_below <= 1:
        raise SettingsError(f"unsure_below={unsure_below!r}", hint="take a probability from 0 to 1, e.g. 0.8.")
    return np.where(p[np.arange(len(p)), best] < unsure_below, UNSURE, best)


def cost_table(costs: Any, classes: Sequence[Any]) -> Floats:
    """What each answer costs, truth × answer: from {(truth, answer): cost}, {truth: {answer: cost}} or a matrix.

    Right answers cost 0, and wrong ones that are not named cost 1.

    >>> cost_table({("ham", "spam"): 10}, ["ham", "spam"]).tolist()
    [[0.0, 10.0], [1.0, 0.0]]
    """
    k = len(classes)
    if isinstance(costs, Mapping):
        out = 1.0 - np.eye(k)
        names = [str(text(c)) for c in classes]
        for (truth, answer), cost in _entries(costs):
            out[_at(truth, names), _at(answer, names)] = cost
    else:
        out = _numbers(costs)
        if out.shape != (k, k):
            raise SettingsError(
                f"a cost table of shape {out.shape} for {k} classes",
                hint=f"give {k} × {k} numbers, truth by answer in the order of model.classes, or "
                "{(truth, answer): cost}.",
            )
    if not np.isfinite(out).all():
        raise SettingsError("a cost that is not a finite number", hint=_PLAIN)
    return out


def _entries(costs: Mapping[Any, Any]) -> list[tuple[tuple[Any, Any], float]]:
    out: list[tuple[tuple[Any, Any], float]] = []
    for key, value in costs.items():
        if isinstance(value, Mapping):
            out += [((key, answer), float(_numbers(cost))) for answer, cost in value.items()]
        elif isinstance(key, tuple) and len(key) == 2:
            out.append((key, float(_numbers(value))))
        else:
            raise SettingsError(f"a cost under {key!r}", hint="name the truth and the answer: {('ham', 'spam'): 10}.")
    return out


def _numbers(costs: Any) -> Floats:
    try:
        return np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingsError(f"costs that are not numbers: {costs!r}", hint=_PLAIN) from None


def _at(label: Any, names: Sequence[str]) -> int:
    name = str(text(label))
    if name not in names:
        raise unknown(SettingsError, f"a cost for the class {label!r}, which the model does not have", name, names)
    return list(names).index(name)
