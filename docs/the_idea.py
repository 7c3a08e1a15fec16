"""The whole idea of tallybayes in one file: dicts and fractions, nothing else. Run it to see the clinic example.

    A column turns a value into a few additive amounts. Training adds them by class. Predicting adds up what each
    column says.

A tally is a dict: (column, slot, class) → exact number. Everything else follows from adding such dicts.
The library does the same with arrays, faster; the tests compare the two.
"""

from collections import Counter
from fractions import Fraction
from math import exp, log, pi

ROWS = ""  # the column under which the rows of each class are counted


# ---- a value becomes amounts


def amounts(kind, value):
    """{slot: amount} that one value adds; a missing value adds nothing."""
    if value is None:
        return {}
    if kind == "category":
        return {value: 1}
    if kind == "number":
        x = Fraction(value)  # a float is a fraction, so nothing is rounded here
        return {"n": 1, "x": x, "xx": x * x}
    if kind == "bag":
        return Counter(value)
    raise ValueError(f"no kind {kind!r}")


# ---- counting, adding, subtracting


def count(rows, kinds, target):
    """The tally of some rows, each a dict; rows without a label are skipped."""
    tally = {}
    for row in rows:
        label = row[target]
        if label is not None:
            here = {(ROWS, "n", label): 1}
            for column, kind in kinds.items():
                here |= {(column, slot, label): n for slot, n in amounts(kind, row.get(column)).items()}
            tally = add(tally, here)
    return tally


def add(a, b, sign=1):
    """a + b, or a − b with sign −1. What is zero is not kept, so equal tallies are equal dicts."""
    total = dict(a)
    for key, amount in b.items():
        total[key] = total.get(key, 0) + sign * amount
    return {key: amount for key, amount in total.items() if amount != 0}


def subtract(a, b):
    """Forgetting: the tally as if the rows of b had never been counted."""
    return add(a, b, -1)


# ---- reading a tally


def classes(tally):
    return sorted(label for column, _, label in tally if column == ROWS)


def slots(tally, column):
    """Every slot that any class has in a column: the values it can take."""
    return {slot for name, slot, _ in tally if name == column}


def prior(tally, label):
    """P(class): its share of the rows."""
    return Fraction(tally[ROWS, "n", label], sum(tally[ROWS, "n", other] for other in classes(tally)))


def probability(tally, column, slot, label, alpha):
    """P(slot given class) with Laplace's α imagined rows for every slot; α = 0 is maximum likelihood."""
    known = slots(tally, column)
    total = sum(tally.get((column, other, label), 0) for other in known)
    return (Fraction(tally.get((column, slot, label), 0)) + alpha) / (total + alpha * len(known))


def mean_and_variance(tally, column, label):
    """μ = Σx / n and σ² = Σx²/n − μ²: exact, so the subtraction loses nothing."""
    n, x, xx = (Fraction(tally.get((column, amount, label), 0)) for amount in ("n", "x", "xx"))
    return x / n, xx / n - (x / n) ** 2


# ---- predicting: a sum of logs, one part per column


def part(tally, column, kind, value, label, alpha):
    """log P(value given class); what is missing or was never seen says nothing."""
    if kind == "number":
        if value is None:
            return 0.0
        mean, variance = mean_and_variance(tally, column, label)
        return -float((Fraction(value) - mean) ** 2 / variance) / 2 - log(2 * pi * variance) / 2
    seen = {slot: n for slot, n in amounts(kind, value).items() if slot in slots(tally, column)}
    return sum(n * log_or_never(probability(tally, column, slot, label, alpha)) for slot, n in seen.items())


def log_or_never(p):
    return log(p) if p > 0 else float("-inf")


def scores(tally, kinds, row, alpha=1):
    """{class: log P(class) + Σ log P(value given class)}."""
    return {
        label: log(prior(tally, label))
        + sum(part(tally, column, kind, row.get(column), label, alpha) for column, kind in kinds.items())
        for label in classes(tally)
    }


def posterior(score):
    """Probabilities that sum to one: exp(score), scaled by the largest so that nothing underflows."""
    top = max(score.values())
    weight = {label: exp(s - top) for label, s in score.items()}
    return {label: w / sum(weight.values()) for label, w in weight.items()}


# ---- the clinic of the lecture

CLINIC = """
severe mild   high   yes Flu
no     severe normal yes Cold
mild   mild   normal yes Flu
mild   no     normal no  Cold
severe severe normal yes Flu
"""
COLUMNS = ("Headache", "Sore", "Temperature", "Cough")

if __name__ == "__main__":
    patients = [dict(zip((*COLUMNS, "Diagnosis"), line.split(), strict=True)) for line in CLINIC.split("\n") if line]
    kinds = dict.fromkeys(COLUMNS, "category")
    tally = count(patients, kinds, "Diagnosis")
    print(
        "P(Flu) =", prior(tally, "Flu"), "  P(severe given Flu) =", probability(tally, "Headache", "severe", "Flu", 1)
    )
    for name, asked in {"Ann": "mild severe normal no", "Bob": "severe mild high no"}.items():
        score = scores(tally, kinds, dict(zip(COLUMNS, asked.split(), strict=True)))
        joint = ", ".join(f"{label} {Fraction(exp(s)).limit_denominator(10_000)}" for label, s in score.items())
        print(f"{name}: joint {joint};", ", ".join(f"P({label}) = {p:.4f}" for label, p in posterior(score).items()))
    without = subtract(tally, count(patients[:1], kinds, "Diagnosis"))
    print("forgetting the first patient = never having met him:", without == count(patients[1:], kinds, "Diagnosis"))
