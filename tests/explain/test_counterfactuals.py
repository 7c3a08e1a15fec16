"""What would change the answer: every set of changes is checked against brute force on small models."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tallybayes as tb
from tallybayes.explain.changes import counted_numbers
from tallybayes.families import BernoulliWords, Complement, Multinomial


def categories(rng: np.random.Generator, columns: int, values: int, classes: int, n: int = 60) -> dict:
    y = rng.integers(0, classes, n)
    data = {
        f"c{j}": [f"v{v}" for v in (y * rng.integers(0, 2, n) + rng.integers(0, values, n)) % values]
        for j in range(columns)
    }
    return {**data, "y": [f"k{v}" for v in y]}


def fewest(model: tb.Model, row: dict, choices: dict, to: object = None) -> int | None:
    """By brute force: how few columns have to change; None if even all are not enough."""
    now = model.predict([row])[0]
    for size in range(1, len(choices) + 1):
        for columns in itertools.combinations(choices, size):
            rows = [
                {**row, **dict(zip(columns, values, strict=True))}
                for values in itertools.product(*(choices[c] for c in columns))
            ]
            answers = model.predict(rows)
            if np.any(answers != now if to is None else answers == to):
                return size
    return None


@examples(25)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 3), st.sampled_from([None, 0.4]))
def test_no_smaller_set_flips_a_table_of_categories(seed: int, classes: int, values: int, weight: float | None) -> None:
    rng = np.random.default_rng(seed)
    data = categories(rng, 4, values, classes)
    weights = {} if weight is None else {"c0": weight, "c2": 0.0}
    model = tb.fit(
        data,
        "y",
        schema=tb.Schema([tb.Column(f"c{j}", "category") for j in range(4)], target="y"),
        settings=tb.Settings(weights=weights),
    )
    row = {f"c{j}": data[f"c{j}"][0] for j in range(4)}
    choices = {c: model.table(c).rows for c in row}
    found = model.what_if(row)
    wanted = fewest(model, row, choices)
    assert (len(found.changes) or None) == wanted
    assert found.smallest
    if found:
        assert model.predict([found.row])[0] == found.becomes != found.answer
        assert sum(found.row[c] != row[c] for c in row) == len(found.changes)
        assert model.predict_proba([found.row])[0].max() == pytest.approx(found.probability[1], rel=1e-12)
    for label in model.classes:
        asked = model.what_if(row, to=label)
        if label == found.answer:
            assert not asked
            continue
        brute = fewest(model, row, choices, to=label)
        assert (len(asked.changes) or None) == brute
        if asked:
            assert asked.smallest and model.predict([asked.row])[0] == label == asked.becomes


@pytest.mark.parametrize("family", ["gaussian", "gaussian-shared", "student", "kernel", "bins", "auto"])
def test_no_smaller_set_flips_a_table_of_numbers(family: str) -> None:
    rng = np.random.default_rng(11)
    y = np.arange(90) % 3
    data = {f"x{j}": np.round(rng.normal(y * (j - 1) * 0.8, 1.0), 1) for j in range(3)}
    model = tb.fit({**data, "y": y}, "y", settings=tb.Settings(families=dict.fromkeys(data, family)))
    choices = {c: counted_numbers(model, c).tolist()[::3] for c in data}
    for i in range(0, 90, 15):
        row = {c: float(v[i]) for c, v in data.items()}
        found = model.what_if(row)
        brute = fewest(model, row, choices)
        assert found and len(found.changes) <= (brute or 99)
        if len(found.changes) > 1:  # the coarse grid of the brute force may just miss a single change
            assert fewest(model, row, {c: counted_numbers(model, c).tolist() for c in data}) == len(found.changes)
        assert model.predict([found.row])[0] == found.becomes != found.answer


def test_a_number_moves_no_further_than_it_must() -> None:
    rng = np.random.default_rng(2)
    y = np.arange(400) % 2
    data = {"x": rng.normal(3.0 * y, 1.0), "y": y}
    model = tb.fit(data, "y", settings=tb.Settings(families={"x": "gaussian"}))
    found = model.what_if({"x": 0.1})
    assert str(found).startswith("1 change turns 0 into 1")
    border = 1.5  # half-way between the means
    assert border - 0.2 < float(found.changes[0].after) < border + 0.4
    assert len(found.changes[0].after) <= 4


WORDS = ["cash", "lunch", "now", "win", "noon", "ball"]
TEXT_FAMILIES = [
    "multinomial", "bernoulli", "complement", "levels", Multinomial(presence=True), Multinomial(idf=True),
    Multinomial(predictive=True), Complement(norm=True), BernoulliWords(), Multinomial(presence=True, predictive=True),
]  # fmt: skip


def fewest_words(model: tb.Model, words: list[str]) -> int | None:
    """By brute force over every set of words removed (with all their occurrences) or added once."""
    now = model.predict([{"t": words}])[0]
    for size in range(1, len(WORDS) + 1):
        sets = itertools.combinations(WORDS, size)
        rows = [{"t": [w for w in words if w not in s] + [w for w in s if w not in words]} for s in sets]
        if np.any(model.predict(rows) != now):
            return size
    return None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", TEXT_FAMILIES, ids=str)
def test_no_smaller_set_of_words_flips(family: object, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 45)
    lean = rng.dirichlet(np.ones(len(WORDS)) * 2, 3)
    bags = [rng.choice(WORDS, 6, p=lean[v]).tolist() for v in y]
    under = tb.Schema([tb.Column("t", "bag", levels=6 if family == "levels" else None)], target="y")
    model = tb.count({"t": bags, "y": y}, under).model(tb.Settings(families={"t": family}, weights={"t": 0.8}))
    for bag in [*bags[:8], ["cash", "cash", "cash", "cash", "now"], ["zebra"]]:
        found = model.what_if({"t": bag})
        assert (len(found.changes) or None) == fewest_words(model, bag)
        if found:
            assert model.predict([found.row])[0] == found.becomes != found.answer
            assert all(bool(c.before) != bool(c.after) for c in found.changes)


@pytest.mark.parametrize("exponent", [-0.8, 0.5])
@pytest.mark.parametrize(
    "family", [f for f in TEXT_FAMILIES if not isinstance(f, Multinomial) or not f.presence], ids=str
)
def test_no_smaller_set_of_words_flips_where_the_length_counts(family: object, exponent: float) -> None:
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 45)
    lean = rng.dirichlet(np.ones(len(WORDS)) * 2, 3)
    bags = [rng.choice(WORDS, 6, p=lean[v]).tolist() for v in y]
    under = tb.Schema([tb.Column("t", "bag", levels=6 if family == "levels" else None)], target="y")
    settings = tb.Settings(
        families={"t": family}, weights={"t": 1.5}, lengths={"t": exponent}, prior={0: 0.5, 1: 0.2, 2: 0.3}
    )
    model = tb.count({"t": bags, "y": y}, under).model(settings)
    for bag in [*bags[:8], ["cash", "cash", "cash", "cash", "now"], ["zebra", "zebra", "now"]]:
        found = model.what_if({"t": bag})
        assert (len(found.changes) or None) == fewest_words(model, bag)
        if found:
            assert model.predict([found.row])[0] == found.becomes != found.answer


def test_columns_that_speak_together() -> None:
    """Single changes are exact; more are checked by predicting and do not claim to be the fewest."""
    rng = np.random.default_rng(8)
    a, b, c = (rng.integers(0, k, 500) for k in (2, 3, 2))
    data = {"a": a.astype(str), "b": b.astype(str), "c": c.astype(str), "y": (a ^ (b > 1)) + 0}
    columns = [tb.Column(n, "category") for n in "abc"]
    columns.append(tb.Column("a with b", "pair", of=(tb.Side("a"), tb.Side("b"))))
    model = tb.count(data, tb.Schema(columns, target="y")).model()
    choices = {n: model.table(n).rows for n in "abc"}
    for i in range(12):
        row = {n: data[n][i] for n in "abc"}
        found, brute = model.what_if(row), fewest(model, row, choices)
        assert found and model.predict([found.row])[0] == found.becomes != found.answer
        assert len(found.changes) >= brute
        if brute == 1:
            assert len(found.changes) == 1 and found.smallest
        asked = model.what_if(row, to=found.becomes)
        assert model.predict([asked.row])[0] == found.becomes


def test_a_text_beside_other_columns() -> None:
    data = {
        "text": ["win cash now", "cash prize win", "win a prize", "lunch at noon", "see you at noon", "lunch now"] * 5,
        "known": ["no", "no", "yes", "yes", "yes", "no"] * 5,
        "amount": [9.0, 8.0, 7.5, 0.0, 1.0, 0.5] * 5,
        "y": ["spam", "spam", "spam", "ham", "ham", "ham"] * 5,
    }
    schema = tb.infer(data, "y").with_column("text", kind="text")
    model = tb.count(data, schema).model()
    found = model.what_if({"text": "win cash now", "known": "no", "amount": 1.0})
    assert found and model.predict([found.row])[0] == found.becomes != found.answer
    assert "turn" in str(found) and found.to_dict()["becomes"] == found.becomes
    assert "<table>" in found._repr_html_()


def test_a_vector_and_a_date() -> None:
    rng = np.random.default_rng(4)
    y = np.arange(80) % 2
    days = [
        dt.date(2024, 1, 1) + dt.timedelta(days=int(7 * i + (0 if v else rng.integers(0, 5)))) for i, v in enumerate(y)
    ]
    data = {"v": rng.normal(y[:, None] * [0.0, 2.0, 1.0], 1.0), "day": days, "y": y}
    schema = tb.Schema([tb.Column("v", "vector", width=3), tb.Column("day", "date")], target="y")
    model = tb.count(data, schema).model()
    row = {"v": [0.0, 0.1, 0.2], "day": dt.date(2024, 3, 5)}
    found = model.what_if(row)
    assert found and model.predict([found.row])[0] == found.becomes
    assert found.changes[0].column in ("v[0]", "v[1]", "v[2]", "day")
    only = tb.count({"day": days, "y": y}, tb.Schema([tb.Column("day", "date")], target="y")).model()
    asked = only.what_if({"day": dt.date(2024, 3, 5)})
    assert not asked or only.predict([asked.row])[0] == asked.becomes


def test_where_nothing_flips_it_says_so() -> None:
    model = tb.fit({"a": ["u", "v"] * 50, "y": ["p"] * 99 + ["q"]}, "y")
    found = model.what_if({"a": "u"})
    assert not found and found.becomes is None
    assert str(found) == "p stays: no change of the values that were counted turns it into any other class"
    assert str(model.what_if({"a": "u"}, to="q")).endswith("turns it into q")
    with pytest.raises(tb.SettingsError, match="no class 'z'"):
        model.what_if({"a": "u"}, to="z")
    alone = tb.Model.written({"only": 1.0}, {"c": {"only": {"u": 1.0}}})
    assert not alone.what_if({"c": "u"})


def test_impossible_classes_and_missing_values() -> None:
    data = {"a": ["u", "u", "v", "v"] * 5, "b": ["x", "y", "x", "z"] * 5, "y": ["p", "p", "q", "q"] * 5}
    tally = tb.count(data, tb.Schema([tb.Column("a", "category"), tb.Column("b", "category")], target="y"))
    model = tally.model(tb.Settings(smoothing=tb.MaximumLikelihood()))
    found = model.what_if({"a": "u", "b": "y"})
    assert len(found.changes) == 2 and model.predict([found.row])[0] == "q"
    found = model.what_if({"a": None, "b": "y"})
    assert model.predict([found.row])[0] == "q" and found.changes[0].before in ("missing", "y")


def test_hostile_changes_are_only_text() -> None:
    nasty = ["<script>alert(1)</script>", "\x1b[31mred", "x" * 1_000_000, "[bold]", "\u202eevil"]
    data = {
        "<b>": [nasty[i % 2] for i in range(50)],
        "w": [[nasty[i % 2 + j] for j in (0, 2, 3)] for i in range(50)],
        "y": [nasty[i % 2] for i in range(50)],
    }
    model = tb.count(data, tb.Schema([tb.Column("<b>", "category"), tb.Column("w", "bag")], target="y")).model()
    found = model.what_if({"<b>": nasty[0], "w": [nasty[0]]})
    assert found
    for text in (str(found), found._repr_html_()):
        assert "\x1b" not in text and "<script" not in text.replace(str(found), "") and len(text) < 5000


def test_an_isotonic_curve_moves_the_border() -> None:
    from dataclasses import replace

    from tallybayes.families.calibration import Isotonic

    rng = np.random.default_rng(3)
    data = categories(rng, 4, 3, 2, n=80)
    columns = [tb.Column(f"c{j}", "category") for j in range(4)]
    model = tb.count(data, tb.Schema(columns, target="y")).model()
    curve = Isotonic((-6.0, -1.0, 0.5, 2.0, 6.0), (-5.0, -3.0, -1.0, 1.0, 4.0))
    bent = replace(model, settings=replace(model.settings, isotonic=curve))
    for i in range(20):
        row = {f"c{j}": data[f"c{j}"][i] for j in range(4)}
        found = bent.what_if(row)
        assert (len(found.changes) or None) == fewest(bent, row, {c: bent.table(c).rows for c in row})
        assert not found or bent.predict([found.row])[0] == found.becomes
        explained = bent.explain(row)
        np.testing.assert_allclose(explained.total, bent.log_joint(row)[0], rtol=1e-12)
        assert len(explained.odds().lines) == len(explained.contributions)


def test_the_changed_row_of_a_file_gives_the_answer_that_is_promised(tmp_path):
    lines = [
        f"{a},{b},{x},{'yes' if a == 'True' else 'no'}" for a in ("True", "False") for b in ("3.0", "4.0") for x in "uv"
    ]
    (tmp_path / "t.csv").write_text("a,b,x,y\n" + "\n".join(lines * 3) + "\n")
    schema = tb.Schema([tb.Column("a", "category"), tb.Column("b", "category"), tb.Column("x", "category")], target="y")
    model = tb.count(tmp_path / "t.csv", schema).model()
    found = model.what_if(tmp_path / "t.csv", number=0)
    assert found.row == {"a": "false", "b": "3", "x": "u"}
    assert model.predict(found.row).tolist() == [found.becomes]


@pytest.mark.parametrize("family", ["gaussian", "student", "kernel", "bins", "blend", "auto"])
def test_numbers_go_to_the_border_and_stay_where_rows_were(family: str) -> None:
    """The smallest change, against a fine grid; within what was seen; short, and as printed it turns the answer."""
    rng = np.random.default_rng(21)
    y = np.arange(300) % 2
    data = {
        "x": np.round(rng.normal(y * 1.5, 1.0), 3),
        "k": rng.poisson(1 + 2 * y).astype(float),
        "z": rng.normal(size=300),
    }
    data["k"][:2] = [9.0, 12.0]  # more than the first look has
    columns = [tb.Column(n, "number", cells=tb.Cells.fitted(v[2:])) for n, v in data.items()]
    tally = tb.count({**data, "y": y}, tb.Schema(columns, target="y"))
    model = tally.model(tb.Settings(families=dict.fromkeys(data, family)))
    changed = 0
    for i in range(0, 300, 9):
        row = {n: float(v[i]) for n, v in data.items()}
        found = model.what_if(row)
        assert found and model.predict([found.row])[0] == found.becomes != found.answer
        for c in found.changes:
            value, now, seen = float(c.after), row[c.column], data[c.column]
            assert found.row[c.column] == value and seen.min() <= value <= seen.max()
            assert c.column != "k" or value == round(value)
            steps = (
                np.linspace(now, value, 200)[1:-1]
                if c.column != "k"
                else np.arange(min(now, value) + 1, max(now, value))
            )
            turned = [v for v in steps if model.predict([{**found.row, c.column: float(v)}])[0] != found.answer]
            further = max((abs(value - v) for v in turned), default=0.0)
            assert further <= 0.021 * abs(value - now) and (c.column != "k" or not turned)
            assert len(c.after) <= 7
            changed += 1
    assert changed >= 30


def test_columns_that_are_fixed_stay() -> None:
    rng = np.random.default_rng(22)
    y = np.arange(200) % 2
    data = {"x": rng.normal(2 * y, 1.0), "c": np.where(rng.random(200) < 0.3 + 0.4 * y, "u", "v"), "y": y}
    data["w"] = [["cash"] if v else ["lunch"] for v in y]
    model = tb.count(data, tb.infer(data, "y").with_column("w", kind="bag")).model()
    row = {n: v[0] for n, v in data.items() if n != "y"}
    assert {c.column for c in model.what_if(row).changes} <= {"x", "c", "w"}
    for fixed in (["x"], ["x", "c"], "x", ["w"], ["x", "w"]):
        found = model.what_if(row, fixed=fixed)
        assert not {c.column for c in found.changes} & set([fixed] if isinstance(fixed, str) else fixed)
        assert not found or model.predict([found.row])[0] == found.becomes
    assert not model.what_if(row, fixed=["x", "c", "w"])
    with pytest.raises(tb.SettingsError, match="no column 'ex'"):
        model.what_if(row, fixed=["ex"])


def test_whole_numbers_far_away_are_not_tried_one_by_one() -> None:
    data = {"x": [0.0, 3.0, 1e15, 2e15] * 8, "y": ["a", "a", "b", "b"] * 8}
    model = tb.count(data, tb.infer(data, "y", keep_leaks=True).with_column("x", kind="number")).model()
    found = model.what_if({"x": 3.0})
    assert found.becomes == "b" and model.predict(found.row)[0] == "b" and float(found.row["x"]).is_integer()


def test_a_word_that_occurs_zero_times_can_stand_in_the_row() -> None:
    data = {"w": [{"cash": 2, "win": 1}, {"lunch": 1}, {"cash": 1}, {"lunch": 2}] * 5, "y": ["spam", "ham"] * 10}
    model = tb.count(data, tb.Schema([tb.Column("w", "bag")], target="y")).model()
    found = model.what_if({"w": {"cash": 2.0, "win": 0.0}})
    assert found.answer == "spam" and found.becomes == "ham" and model.predict(found.row)[0] == "ham"


def test_many_classes_with_long_texts_are_changed_too() -> None:
    rng = np.random.default_rng(0)
    own = [f"w{i}" for i in range(200)]
    texts = [" ".join([own[i % 200]] * 3 + rng.choice(own, 60).tolist()) for i in range(400)]
    data = {"text": texts, "y": [f"c{i % 200}" for i in range(400)]}
    model = tb.count(data, tb.Schema([tb.Column("text", "text")], target="y")).model()
    found = model.what_if({"text": texts[0]})
    assert found and model.predict(found.row)[0] == found.becomes != found.answer
