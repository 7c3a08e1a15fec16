"""A teacher: a table on the blackboard, numbers that a class can work out, and the same model at the terminal."""

from fractions import Fraction

import numpy as np
import pytest
from command_line import run

import tallybayes as tb

DAYS = {
    "Sky": ["sunny", "sunny", "cloudy", "rainy", "rainy", "rainy", "cloudy", "sunny", "sunny", "rainy"],
    "Wind": ["weak", "strong", "weak", "weak", "weak", "strong", "strong", "weak", "weak", "weak"],
    "Play": ["no", "no", "yes", "yes", "yes", "no", "yes", "no", "yes", "yes"],
}


def by_hand(sky, wind, label, alpha):
    """P(label) · P(sky given label) · P(wind given label), counted with the fingers."""
    own = [i for i, play in enumerate(DAYS["Play"]) if play == label]
    p = Fraction(len(own), 10)
    for column, value, values in (("Sky", sky, 3), ("Wind", wind, 2)):
        p *= Fraction(sum(DAYS[column][i] == value for i in own) + alpha, len(own) + alpha * values)
    return p


@pytest.mark.parametrize("alpha", [0, 1, 2])
def test_the_numbers_are_those_of_the_blackboard(alpha):
    model = tb.textbook(DAYS, target="Play", smoothing=alpha)
    for sky in ("sunny", "cloudy", "rainy"):
        for wind in ("weak", "strong"):
            both = {label: by_hand(sky, wind, label, alpha) for label in ("no", "yes")}
            said = dict(zip(model.classes, model.predict_proba({"Sky": sky, "Wind": wind})[0], strict=True))
            assert said["yes"] == pytest.approx(float(both["yes"] / sum(both.values())), abs=1e-12)


def test_the_walk_of_a_teacher(tmp_path):
    # one more pupil's day is one more count, and taking it back leaves no trace
    model = tb.textbook(DAYS, target="Play")
    more = model.update({"Sky": "cloudy", "Wind": "weak", "Play": "yes"})
    assert more.table("Sky")["cloudy", "yes"] == pytest.approx(4 / 10)  # (3 + 1) / (7 + 3)
    assert more.forget({"Sky": "cloudy", "Wind": "weak", "Play": "yes"}).tally == model.tally

    # the same at the terminal, from a file with a blank at the end of a line
    path, saved = tmp_path / "days.csv", tmp_path / "days.tb.parquet"
    rows = zip(*DAYS.values(), strict=True)
    path.write_text("Sky,Wind,Play\n" + "\n".join(",".join(row) for row in rows) + "\n\n")
    fitted = run(
        "fit", path, "--target", "Play", "--no-calibrate", "--smoothing", "laplace:1", "--folds", 0, "-o", saved
    )
    assert fitted.returncode == 0
    assert "10 rows: Play no 4, yes 6" in fitted.out
    shown = run("show", saved, "--column", "Sky").out
    assert [line.split() for line in shown.splitlines() if line.startswith("cloudy")] == [
        ["cloudy", "0.1429", "0.3333"]
    ]
    why = run("explain", saved, path, "--row", 2).out
    assert "yes, probability" in why
    assert "Sky: cloudy" in why
    assert f"{np.log(3 / 9):+.4f}" in why  # log P(cloudy given yes)
    assert f"{np.log(1 / 7):+.4f}" in why  # log P(cloudy given no)

    # the first two reasons, and one line for the others: the sum still holds
    short = run("explain", saved, path, "--row", 2, "--top", 1).out
    assert "the rest" not in short  # of two columns a rest of one would take the room of the column
    # what a column is worth, counted with the fingers: without Sky the log loss is that of Wind alone
    rows_of = [dict(zip(DAYS, row, strict=True)) for row in zip(*DAYS.values(), strict=True)]
    model = tb.textbook(DAYS, target="Play", smoothing=1)
    worth = model.importance(DAYS)
    assert worth.trained_on == "yes"
    assert {c.column for c in worth} == {"Sky", "Wind"}
    # the class has learnt these ten days: figures on them are not those of a new day
    assert tb.evaluate(model, rows_of).learnt_from.verdict == "all"
    assert "very rows that the model has learnt from" in run("evaluate", saved, path, "--no-intervals").out
    tomorrow = tb.evaluate(model, [{"Sky": "snowy", "Wind": "weak", "Play": "no"}])
    assert tomorrow.learnt_from.verdict == "no sign"

    # every smoothing of the lecture, and a word for a wrong one
    ml = run(
        "fit",
        path,
        "--target",
        "Play",
        "--no-calibrate",
        "--smoothing",
        "maximum-likelihood",
        "--folds",
        0,
        "-o",
        saved,
    )
    assert ml.returncode == 0
    assert ["cloudy", "0", "0.3333"] in [
        line.split() for line in run("show", saved, "--column", "Sky").out.splitlines()
    ]
    wrong = run("fit", path, "--target", "Play", "--smoothing", "laplac:1")
    assert wrong.returncode == 2
    assert "did you mean 'laplace'?" in wrong.err

    # is the assumption true of the table?
    found = tb.assumptions(DAYS, target="Play")
    assert (found.pairs[0].a, found.pairs[0].b) == ("Sky", "Wind")
    assert found.repeats.rows == 10
    joint = tb.JointDistribution.of(DAYS, ["Sky", "Play"], smoothing=0)
    assert joint.probability(Sky="cloudy", Play="yes") == pytest.approx(2 / 10)
