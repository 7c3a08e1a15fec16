"""Sums as printed: every figure rounded, and the printed column still adds up to the last digit."""

from __future__ import annotations

import numpy as np

from .arrays import Floats

FEWEST, MOST = 4, 9  # digits after the point


def cascade(parts: Floats, digits: int) -> tuple[Floats, Floats]:
    """Terms and running totals (lines × columns), rounded so that each printed total is the sum of the printed terms.

    The totals are rounded, and a term is the difference of two of them: a total is at most half a unit of the last
    digit from the truth, a term less than one. Where a total is infinite the term is rounded alone.

    >>> terms, totals = cascade(np.array([[0.26], [0.26], [0.26]]), 1)
    >>> terms.ravel().tolist(), totals.ravel().tolist()
    ([0.3, 0.2, 0.3], [0.3, 0.5, 0.8])
    """
    with np.errstate(invalid="ignore"):
        totals = np.asarray(np.round(np.cumsum(parts, axis=0), digits) + 0.0, dtype=np.float64)
        terms = np.asarray(np.round(np.diff(totals, axis=0, prepend=0.0), digits) + 0.0)
    return np.where(np.isfinite(terms), terms, np.round(parts, digits) + 0.0), totals


def softmax(scores: Floats) -> Floats:
    """exp(s) / Σ exp(s); even shares where every score is −inf."""
    top = np.max(scores)
    p = np.exp(scores - top) if np.isfinite(top) else np.ones(len(scores))
    out: Floats = p / p.sum()
    return out


def digits_for(totals: Floats, unit: float, probabilities: Floats, shown: int = 4) -> int:
    """How many digits of the totals give the printed probabilities back: at least four, at most nine.

    A reader who takes the printed totals (in logs of `unit`) to their power and divides by the sum finds each
    probability to the `shown` digits that stand below them.

    >>> digits_for(np.array([0.0, np.log(3)]), 1.0, np.array([0.25, 0.75]))
    4
    """
    wanted = np.round(probabilities, shown)
    for digits in range(FEWEST, MOST):
        if np.array_equal(np.round(softmax(np.round(totals, digits) * unit), shown), wanted):
            return digits
    return MOST


def signed(value: float, digits: int) -> str:
    """The number with its sign; "+∞" and "−∞" where it has no end.

    >>> signed(0.5, 2), signed(-np.inf, 2)
    ('+0.50', '-∞')
    """
    return f"{'+' if value > 0 else '-'}∞" if np.isinf(value) else f"{value:+.{digits}f}"


def times(log_odds: float) -> str:
    """A log-odds as the factor it stands for, "× times more likely", to four figures.

    >>> times(np.log(12)), times(-np.inf), times(800.0)
    ('×12', '×0', '×2.726e+347')
    """
    if np.isinf(log_odds):
        return "×∞" if log_odds > 0 else "×0"
    if abs(log_odds) < 700:
        return f"×{np.exp(log_odds):.4g}"
    exponent, rest = divmod(log_odds / np.log(10), 1)
    return f"×{10**rest:.4g}e{exponent:+.0f}"
