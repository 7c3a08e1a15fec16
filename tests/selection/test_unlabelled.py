"""Rows without labels: EM agrees with counting by hand, is refused where it does not pay, and comes back exact."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from command_line import run

import tallybayes as tb
from tallybayes.data import encode
from tallybayes.data.sources import Batch
from tallybayes.selection.unlabelled.fit import PairedJudgement
from tallybayes.selection.unlabelled.judge import tempered
from tallybayes.selection.unlabelled.mixture import Mixture
from tallybayes.selection.unlabelled.places import EVIDENCE, GROWTH, places

TOPICS = {c: [f"{c}{i}" for i in range(16)] for c in "abc"}
USUAL = [f"usual{i}" for i in range(14)]


def notes(n: int, seed: int, classes: str = "ab") -> dict[str, list[str]]:
    draw = random.Random(seed)
    about = [draw.choice(classes) if i >= 6 * len(classes) else classes[i % len(classes)] for i in range(n)]
    texts = [" ".join(draw.choices(USUAL, k=6) + draw.choices(TOPICS[c], k=2)) for c in about]
    return {"note": texts, "about": about}


def first(table, n):
    return {name: values[:n] for name, values in table.items()}


def rest(table, n, *, labels=False):
    return {name: values[n:] for name, values in table.items() if labels or name != "about"}


# ---- labels with probabilities

SCHEMA = tb.Schema(
    [tb.Column("sky", "category"), tb.Column("wind", "number"), tb.Column("said", "text")], target="rain"
)
ROWS = {"sky": ["grey", "blue", None], "wind": [1.5, 2.0, -3.0], "said": ["wet wet", "dry", ""]}
Y = {"yes": [0.7, 0.0, 1 / 3], "no": [0.3, 1.0, 2 / 3]}


def test_a_row_counts_for_each_class_by_its_weight_and_tallies_stay_a_group():
    whole = tb.count(ROWS, SCHEMA, y=Y)
    by_hand = {n: [v[0], v[0], v[1], v[2], v[2]] for n, v in ROWS.items()}
    units = [round(w * 2**32) / 2**32 for w in (0.7, 0.3, 1.0, 1 / 3, 2 / 3)]
    labels = ["yes", "no", "no", "yes", "no"]
    assert whole == tb.count(by_hand, SCHEMA, y=labels, weights=units)
    for cut in (1, 2):
        parts = [
            tb.count({n: v[s] for n, v in ROWS.items()}, SCHEMA, y={c: w[s] for c, w in Y.items()})
            for s in (slice(cut), slice(cut, None))
        ]
        assert parts[0] + parts[1] == whole and whole - parts[0] == parts[1]
        assert (parts[1] + parts[0]).digest == whole.digest
    for frame in (pd.DataFrame, pl.DataFrame, pa.table):
        assert tb.count(ROWS, SCHEMA, y=frame(Y)) == whole
    assert whole.update(ROWS, y=Y).forget(ROWS, y=Y) == whole


def test_weights_of_rows_multiply_and_rows_without_any_class_are_skipped():
    y = {"yes": [1.0, 0.0, 0.5], "no": [0.0, 0.0, 0.5]}
    tally = tb.count(ROWS, SCHEMA, y=y, weights=[2.0, 1.0, 3.0])
    assert tally.skipped == 1 and tally.class_weights().tolist() == [1.5, 3.5]
    assert tb.count({"wind": [1.5, 2.0, -3.0]}, y={1: [1, 0, 0], 2: [0, 1, 1]}).model().classes == (1, 2)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ({"yes": [1.0, 0.0], "no": [0.0]}, "'yes' has 2, 'no' has 1"),
        ({"yes": [1.0, -1.0, 0.0], "no": [0, 0, 1]}, r"weight of row 1 .* in class 'yes' is -1"),
        ({"yes": [1.0, float("nan"), 0.0], "no": [0, 0, 1]}, "is nan"),
        ({"yes": ["a", "b", "c"], "no": [0, 0, 1]}, "no numbers"),
        ({"yes": [1, 0], "no": [0, 1]}, "2 values were given as 'rain'"),
        ({"yes": [1, 0, 1, 1], "no": [0, 1, 1, 1]}, "4 values were given as 'rain'"),
        (np.ones((3, 2)), "classes have no names"),
    ],
)
def test_tables_that_are_no_weights_are_refused(y, said):
    with pytest.raises(tb.DataError, match=said):
        tb.count(ROWS, SCHEMA, y=y)


def test_a_fit_never_holds_out_one_part_of_a_row_while_it_counts_the_other():
    """Were they parted, every row would be met by its own copies in the other class."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    p = 1 / (1 + np.exp(-3 * x))
    model = tb.fit({"x": x}, y={"yes": p, "no": 1 - p})
    told = model.predict_proba({"x": [-1.0, 0.0, 1.0]})[:, list(model.classes).index("yes")]
    assert np.abs(told - 1 / (1 + np.exp([3.0, 0.0, -3.0]))).max() < 0.12


# ---- EM


def test_em_is_the_same_as_counting_shares_and_asking_the_model_of_the_counts():
    """The readable way: tally the shares, believe them under a Dirichlet of what is usual, ask for new shares."""
    table = notes(70, 1)
    draw = random.Random(2)
    table["hue"] = [draw.choice(["red", "blue", None] if c == "a" else ["blue", "green"]) for c in table["about"]]
    schema = tb.Schema([tb.Column("hue", "category"), tb.Column("note", "text")], target="about")
    known, others = first(table, 12), rest(table, 12)
    blocks = [encode.bags(encode.blocks(schema, Batch({n: pa.array(v) for n, v in t.items()}, len(t["note"]))))
              for t in (known, others)]  # fmt: skip
    where = places(*blocks)
    labels = np.array([0 if c == "a" else 1 for c in known["about"]])
    mixture = Mixture(where, labels, np.ones(70), 2)
    weight, pull, steps = 0.25, (10.0, 30.0), 3
    found = mixture.run(np.ones(12, dtype=bool), weight, pull, steps)

    hues = [h for h in table["hue"] if h is not None]
    distinct = [sorted(set(text.split())) for text in table["note"]]
    words = [w for each in distinct for w in each]
    kept = {w for w in words if words.count(w) > 1}
    words = [w for w in words if w in kept]

    def usual(values, rows):
        n = {v: values.count(v) + 0.5 for v in set(values)}
        return tb.Dirichlet({v: rows * c / sum(n.values()) for v, c in n.items()})

    settings = tb.Settings(
        families={"note": tb.families.Multinomial(presence=True)},
        smoothing={"hue": usual(hues, pull[0]), "note": usual(words, pull[1] * len(words) / 70)},
        weights={"note": EVIDENCE}, lengths={"note": GROWTH - 1},
    )  # fmt: skip
    reads = lambda t: {**t, "note": [" ".join(w for w in sorted({*x.split()}) if w in kept) for x in t["note"]]}  # noqa: E731
    tally = labelled = tb.count(reads(known), schema)
    for _ in range(steps):
        shares = tally.model(settings).predict_proba(reads(others))
        y = {c: weight * shares[:, i] for i, c in enumerate("ab")}
        tally = labelled + tb.count(reads(others), schema, y=y)
    assert found.steps == steps
    assert np.abs(found.shares - shares).max() < 1e-6
    assert np.allclose(found.prior, tally.class_weights(), atol=1e-6)


def test_steps_make_the_rows_likelier_and_end():
    table = notes(200, 5)
    schema = tb.Schema([tb.Column("note", "text")], target="about")
    batch = lambda t: Batch({"note": pa.array(t["note"])}, len(t["note"]))  # noqa: E731
    where = places(*(encode.bags(encode.blocks(schema, batch(t))) for t in (first(table, 12), rest(table, 12))))
    labels = np.array([0 if c == "a" else 1 for c in table["about"][:12]])
    found = Mixture(where, labels, np.ones(200), 2).run(np.ones(12, dtype=bool), 1.0, [30.0], 40)
    assert all(a <= b + 1e-6 * abs(a) for a, b in itertools.pairwise(found.log_likelihood))
    assert found.steps < 40


@pytest.mark.parametrize("classes", ["ab", "abc"])
def test_unlabelled_texts_help_and_the_model_is_an_exact_tally(classes, tmp_path):
    n = 6 * len(classes)
    table, test = notes(360, 3, classes), notes(400, 4, classes)
    known, others = first(table, n), rest(table, n)
    wrong = lambda model: float((model.predict({"note": test["note"]}) != np.array(test["about"])).mean())  # noqa: E731
    model = tb.fit(known, "about", unlabelled=others)
    assert wrong(model) < 0.8 * wrong(tb.fit(known, "about"))
    assert f"{360 - n} rows without a label count at weight" in model.settings.calibrated.note
    assert model.tally.class_weights().sum() > n + 1
    assert model.update(test).forget(test).tally == model.tally
    model.save(tmp_path / "notes.tb")
    again = tb.load(tmp_path / "notes.tb")
    assert again.tally == model.tally and np.array_equal(again.predict_proba(others), model.predict_proba(others))
    blanks = {"note": table["note"], "about": [*table["about"][:n], *[None] * (360 - n)]}
    assert tb.fit(blanks, "about", unlabelled="missing").tally.class_weights().tolist() == pytest.approx(
        model.tally.class_weights().tolist()
    )


def test_what_does_not_pay_is_left_out_with_a_line():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3)) + 4 * rng.integers(0, 2, size=(300, 1))  # two clusters, which the labels know not
    y = rng.choice(["no", "yes"], size=300)
    table = {f"x{i}": x[:40, i] for i in range(3)} | {"y": y[:40]}
    with pytest.warns(tb.TallybayesWarning, match="260 rows without a label were left out: on 40 held-out labels"):
        model = tb.fit(table, "y", unlabelled={f"x{i}": x[40:, i] for i in range(3)})
    assert model.tally.rows == 40
    alone = tb.fit(table, schema=model.schema, settings=model.settings)
    assert alone.tally == model.tally
    with pytest.warns(tb.TallybayesWarning, match="6 labels of 2 classes are too few to judge by"):
        few = tb.fit({"x": x[:6, 0], "y": ["a", "b"] * 3}, "y", unlabelled={"x": x[40:, 0]})
    assert few.tally.rows == 6
    with pytest.warns(tb.TallybayesWarning, match="no rows without labels"):
        tb.fit(table, "y", unlabelled="missing")


def test_the_gate_asks_more_of_tables_than_of_texts():
    labels = np.array([0, 1] * 10)
    truth = np.eye(2)[labels]
    guess, good = np.full((20, 2), 0.5), 0.8 * truth + 0.1
    better = PairedJudgement.of(labels, guess, tempered(np.zeros((20, 2)), np.log(good), labels))
    assert better.pays(words=True)  # surer, and no more answers wrong
    assert PairedJudgement.of(labels, good[:, ::-1], tempered(np.zeros((20, 2)), np.log(good), labels)).wrong[0].all()
    worse = PairedJudgement.of(labels, good, tempered(np.zeros((20, 2)), np.log(good[:, ::-1]), labels))
    assert not worse.pays(words=True) and not worse.pays(words=False)
    some = guess.copy()
    some[:3] = good[:3, ::-1]
    some[3:] = good[3:]
    by_three = PairedJudgement.of(labels, some, tempered(np.zeros((20, 2)), np.log(good), labels))
    assert by_three.pays(words=True) and not by_three.pays(words=False)


def test_the_command_line_takes_a_file_or_the_rows_without_labels(tmp_path):
    table = notes(200, 3)
    known, others = tmp_path / "known.csv", tmp_path / "more.csv"
    pd.DataFrame(first(table, 12)).to_csv(known, index=False)
    pd.DataFrame(rest(table, 12)).to_csv(others, index=False)
    out = run("fit", known, "--target", "about", "--unlabelled", others)
    assert "188 rows without a label count at weight" in " ".join(out.out.split())
