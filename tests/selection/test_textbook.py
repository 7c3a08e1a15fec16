"""`tb.textbook`: the numbers of the lectures, worked out here by hand with fractions and SciPy's bell."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import tallybayes as tb

NAMES = ("Outlook", "Temperature", "Humidity", "Wind", "Play")
TENNIS = [
    dict(zip(NAMES, line.split(), strict=True))
    for line in (
        "sunny hot high weak no",
        "sunny hot high strong no",
        "overcast hot high weak yes",
        "rain mild high weak yes",
        "rain cool normal weak yes",
        "rain cool normal strong no",
        "overcast cool normal strong yes",
        "sunny mild high weak no",
        "sunny cool normal weak yes",
        "rain mild normal weak yes",
        "sunny mild normal strong yes",
        "overcast mild high strong yes",
        "overcast hot normal weak yes",
        "rain mild high strong no",
    )
]
ASKED = dict(zip(NAMES, ["sunny", "cool", "high", "strong"], strict=False))


def by_hand(alpha):
    """P(no given the day asked about), with imagined rows of each value."""
    joint = {}
    for label, n in Counter(r["Play"] for r in TENNIS).items():
        joint[label] = Fraction(n, len(TENNIS))
        for column, value in ASKED.items():
            with_value = sum(r[column] == value for r in TENNIS if r["Play"] == label)
            joint[label] *= (with_value + alpha) / (n + alpha * len({r[column] for r in TENNIS}))
    return float(joint["no"] / sum(joint.values()))


@pytest.mark.parametrize(
    ("smoothing", "alpha"),
    [(1, 1), ("maximum likelihood", 0), (tb.MaximumLikelihood(), 0), (tb.MAP(3), 2), ("map:1.5", 0.5), (0.5, 0.5)],
)
def test_the_fourteen_days_of_tennis(smoothing, alpha):
    found = tb.textbook(TENNIS, "Play", smoothing=smoothing).predict_proba(ASKED)[0, 0]
    assert found == pytest.approx(by_hand(Fraction(alpha)), rel=1e-12)


def test_the_fourteen_days_of_tennis_as_they_are_printed():
    assert round(by_hand(Fraction(1)), 3) == 0.720 and round(by_hand(Fraction(0)), 3) == 0.795
    assert round(float(tb.textbook(TENNIS, "Play").predict_proba(ASKED)[0, 0]), 3) == 0.720
    assert tb.fit(TENNIS, "Play").predict_proba(ASKED)[0, 0] < 0.7  # the default believes fourteen days less


def test_numbers_are_bells_and_nothing_is_fitted():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 300)
    table = {"x": rng.normal(size=300) + y, "n": rng.poisson(3, 300), "flag": y ^ (rng.random(300) < 0.2), "y": y}
    model = tb.textbook(table, "y")
    assert model.settings.calibrated is None and not model.settings.weights and not model.settings.corrections
    assert {c.name for c in model.schema.counted} == {"x", "n", "flag"}  # no pairs, no gaps
    joint = np.log([np.mean(y == k) for k in (0, 1)])
    for name in ("x", "n", "flag"):
        column = np.asarray(table[name], float)
        bells = [scipy.stats.norm(column[y == k].mean(), column[y == k].std()) for k in (0, 1)]
        joint = joint + [bell.logpdf(column[0]) for bell in bells]
    expected = np.exp(joint - np.logaddexp(*joint))
    assert np.allclose(model.predict_proba({n: [v[0]] for n, v in table.items()})[0], expected, rtol=1e-9)
    other = tb.textbook(table, "y", families={"flag": "bernoulli", "n": "poisson"}, prior="uniform")
    assert [f.name for f in other.families.values()] == ["gaussian", "poisson", "bernoulli"]
    assert set(other.prior().values()) == {0.5}
