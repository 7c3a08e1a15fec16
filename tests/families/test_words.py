"""The readings of a bag, held to the same laws as every family."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.families import Complement, Levels, Multinomial
from tallybayes.families.settings_json import settings_from_json, settings_to_json

pytestmark = pytest.mark.core
FULL = os.environ.get("TALLYBAYES_TESTS") == "all"
WORDS = ["ball", "goal", "vote", "tax", "the", "a"]
SHARES = {"sport": [6, 5, 1, 1, 4, 4], "news": [1, 1, 5, 6, 4, 3]}
READINGS = {
    "multinomial": tb.Settings(),
    "multinomial unsmoothed": tb.Settings(smoothing=tb.MaximumLikelihood()),
    "multinomial reserve": tb.Settings(unseen="reserve"),
    "multinomial predictive": tb.Settings(families={"w": Multinomial(predictive=True)}),
    "bernoulli": tb.Settings(families={"w": "bernoulli"}),
    "bernoulli unsmoothed": tb.Settings(families={"w": "bernoulli"}, smoothing=tb.MaximumLikelihood()),
    "bernoulli beta": tb.Settings(families={"w": "bernoulli"}, smoothing=tb.Beta(1, 9)),
    "complement": tb.Settings(families={"w": "complement"}),
    "complement norm": tb.Settings(families={"w": Complement(norm=True)}),
    "levels": tb.Settings(families={"w": "levels"}),
    "levels dirichlet": tb.Settings(families={"w": "levels"}, smoothing=tb.Dirichlet({0: 6, 1: 2, 2: 1}, rest=0.5)),
    "levels to 2": tb.Settings(families={"w": Levels(top=2)}),
}


def documents(seed: int = 1, n: int = 80) -> dict:
    rng = np.random.default_rng(seed)
    y = rng.choice(["sport", "news"], n)
    rows = [rng.choice(WORDS, rng.integers(0, 9), p=np.array(SHARES[c]) / sum(SHARES[c])).tolist() for c in y]
    return {"w": [None if i % 17 == 5 else r for i, r in enumerate(rows)], "y": y.tolist()}


DATA = documents()
TALLY = tb.count(DATA, tb.Schema([tb.Column("w", "bag", levels=6)], target="y"))
ROWS = [{"w": w} for w in DATA["w"]]


@pytest.fixture(params=list(READINGS))
def model(request: pytest.FixtureRequest) -> tb.Model:
    return TALLY.model(READINGS[request.param])


def test_explanations_add_up_word_by_word(model: tb.Model) -> None:
    joint = model.log_joint(ROWS)
    for i in range(0, len(ROWS), 7):
        np.testing.assert_allclose(model.explain(ROWS, i).total, joint[i], rtol=1e-12, atol=1e-12)


def test_a_missing_bag_is_no_evidence_and_an_empty_one_may_be(model: tb.Model) -> None:
    parts = model.parts([{"w": None}, {"w": []}])["w"]
    assert (parts[0] == 0).all()
    if {"bernoulli", "levels"} & set(model.families["w"].name.split()):
        assert (parts[1] != 0).any()
    else:
        assert (parts[1] == 0).all()


def test_words_never_seen_are_no_evidence_or_one_shared_slot(model: tb.Model) -> None:
    known, unknown = model.parts([{"w": ["ball"]}, {"w": ["ball", "zebra"]}])["w"]
    if model.settings.unseen == "reserve":
        assert (known != unknown).all()
    else:
        np.testing.assert_allclose(known, unknown, rtol=1e-12)
        assert "never seen" in str(model.explain({"w": ["zebra", "ball"]})) or model.families["w"].name == "levels"


def test_many_words_are_looked_up_like_few(model: tb.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    few = model.log_joint(ROWS)
    monkeypatch.setattr("tallybayes.families.words._MANY", 1)
    np.testing.assert_array_equal(model.log_joint(ROWS), few)


def test_linear_view(model: tb.Model) -> None:
    rows = [r for r in ROWS if r["w"]]
    part = model.beliefs["w"].linear()
    if part is None or not np.isfinite(part.weights).all():
        with pytest.raises(tb.SettingsError, match="'w' has no linear view"):
            model.linear()
    else:
        np.testing.assert_allclose(model.linear().predict_proba(rows), model.predict_proba(rows), atol=1e-12)


def test_order_does_not_matter_and_dicts_are_the_same(model: tb.Model) -> None:
    words = ["ball", "the", "ball", "tax"]
    ways = [{"w": words}, {"w": words[::-1]}, {"w": {"ball": 2, "the": 1, "tax": 1}}]
    joint = model.log_joint(ways)
    np.testing.assert_allclose(joint, np.tile(joint[0], (3, 1)), rtol=1e-12)


@pytest.mark.parametrize("seed", range(20 if FULL else 2))
def test_sampling_recovers_the_shares(model: tb.Model, seed: int) -> None:
    """Every word's share of the words, or of the rows, within four standard errors of what the model says."""
    sample = model.sample(100_000 if FULL else 5_000, seed)
    again = tb.count(sample, TALLY.schema)
    rows = again.columns["w"].sheet("rows", ("n",)).table("n", 2)[0]
    sheet = again.columns["w"].sheets["words"]
    table, name = model.table("w"), model.families["w"].name
    if name in ("bernoulli words", "levels"):
        seen, trials = sheet.table("documents", 2), rows
    else:
        seen, trials = sheet.table("n", 2), sheet.table("n", 2).sum(axis=0)

    def wanted(word: str, label: str) -> float:
        return 1 - table[f"{word} ×0", label] if name == "levels" else table[word, label]

    p = np.array([[wanted(w, c) for c in model.classes] for w in sheet.slot_names])
    assert (np.abs(seen / trials - p) <= 4 * np.sqrt(p * (1 - p) / trials) + 1e-12).all()


def test_tables_and_parameters(model: tb.Model) -> None:
    raw, free = model.parameters()
    assert raw > free > 0
    assert "ball" in str(model.table("w"))
    assert "ball" in model.graph().to_svg()
    with pytest.raises(tb.SettingsError, match="no row 'balls'"):
        model.table("w")["balls", "sport"]


def test_log_density_is_scipys() -> None:
    model = TALLY.model(tb.Settings(prior="uniform"))
    rows = [{"w": ["ball", "ball", "tax"]}, {"w": ["the"]}]
    for row, density in zip(rows, model.log_density(rows), strict=True):
        x = [row["w"].count(w) for w in model.table("w").rows]
        each = [stats.multinomial.logpmf(x, len(row["w"]), model.table("w").values[:, i]) for i in range(2)]
        assert density == pytest.approx(np.logaddexp(*each) - np.log(2), rel=1e-10)


def test_a_complement_is_no_density() -> None:
    with pytest.raises(tb.SettingsError, match="'w' is weighted, or read by a family that is no probability"):
        TALLY.model(READINGS["complement"]).log_density(ROWS)


def test_a_single_class_has_no_complement() -> None:
    tally = tb.count({"w": [["a"], ["b"]], "y": ["one", "one"]}, tb.Schema([tb.Column("w", "bag")], target="y"))
    assert tally.model(READINGS["complement"]).predict_proba([{"w": ["a"]}]).tolist() == [[1.0]]


@pytest.mark.parametrize("family", ["complement", Multinomial(predictive=True)])
def test_smoothing_that_a_reading_cannot_use_is_refused(family) -> None:
    with pytest.raises(tb.SettingsError, match="'w'"):
        TALLY.model(tb.Settings(families={"w": family}, smoothing=tb.JelinekMercer(0.2)))


@pytest.mark.parametrize("smoothing", [tb.Epsilon(), tb.JelinekMercer(0.2), tb.AbsoluteDiscount(0.5)])
@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "levels"])
def test_every_smoothing_reads_every_bag(family: str, smoothing) -> None:
    model = TALLY.model(tb.Settings(families={"w": family}, smoothing=smoothing))
    assert np.isfinite(model.log_joint(ROWS)).all()


def test_levels_need_to_have_been_counted() -> None:
    tally = tb.count(DATA, tb.Schema([tb.Column("w", "bag")], target="y"))
    with pytest.raises(tb.SettingsError, match="counted without levels"):
        tally.model(READINGS["levels"])
    with pytest.raises(tb.SettingsError, match="which is no level"):
        TALLY.model(tb.Settings(families={"w": "levels"}, smoothing=tb.Dirichlet({"ball": 1.0})))


def test_good_turing_says_so_when_it_gives_way() -> None:
    with pytest.warns(tb.TallybayesWarning, match="absolute discounting stands in for every word"):
        TALLY.model(tb.Settings(families={"w": "bernoulli"}, smoothing=tb.GoodTuring()))


def test_families_refuse_wrong_options() -> None:
    for wrong in (
        lambda: tb.families.Gaussian(variance="none"),
        lambda: tb.families.Kernel(bandwidth=-1.0),
        lambda: tb.families.Kernel(bandwidth="wide"),
        lambda: tb.families.Bins("mdl", 0),
        lambda: tb.families.Bins("best"),
        lambda: tb.families.Poisson(shape=-1.0),
        lambda: tb.families.Selection(top=0),
        lambda: tb.families.Selection(max_share=0.0),
        lambda: tb.Floor("column", -1.0),
        lambda: tb.Floor("row"),
    ):
        with pytest.raises(tb.SettingsError, match="Hint: "):
            wrong()


def test_poisson_is_for_counts() -> None:
    schema = tb.Schema([tb.Column("x", "number")], target="y")
    settings = tb.Settings(families={"x": "poisson"})
    with pytest.raises(tb.SettingsError, match="'x' has negative numbers"):
        tb.count({"x": [-1.0, -2.0], "y": ["a", "b"]}, schema).model(settings)
    model = tb.count({"x": [1.0, 2.0, 0.0, 9.0], "y": ["a", "a", "b", "b"]}, schema).model(settings)
    assert (model.parts({"x": [-3.0]})["x"] == 0).all()
    assert "not a count" in str(model.explain({"x": -3.0}))
    empty = tb.count({"x": [None, None], "y": ["a", "b"]}, schema).model(settings)
    np.testing.assert_allclose(empty.predict_proba({"x": [4.0]}), [[0.5, 0.5]])


def test_bernoulli_categories() -> None:
    schema = tb.Schema([tb.Column("f", "category")], target="y")
    settings = tb.Settings(families={"f": "bernoulli"})
    model = tb.count({"f": [True, True], "y": ["a", "b"]}, schema).model(settings)
    assert model.table("f").rows == ["false", "true"]
    with pytest.raises(tb.SettingsError, match="has 3 values and cannot be bernoulli"):
        tb.count({"f": ["u", "v", "w"], "y": ["a", "b", "a"]}, schema).model(settings)


def test_hashed_words_of_a_short_text_are_found():
    schema = tb.Schema([tb.Column("t", "text", text=tb.Tokeniser(hash_bits=10))], target="y")
    model = tb.count({"t": ["spam eggs ham", "good day sir"], "y": ["a", "b"]}, schema).model()
    many = model.log_joint({"t": ["spam eggs"] * 500})  # long enough for the way of many texts
    assert many[0, 0] > many[0, 1]
    for rows in ({"t": "spam eggs"}, {"t": ["spam eggs"] * 2}):
        np.testing.assert_allclose(model.log_joint(rows)[0], many[0], rtol=1e-12)


def test_the_words_of_a_class_by_how_often_they_occur_in_it():
    rows = {"text": ["spam spam eggs", "spam toast", "tea toast", "tea and jam"], "y": ["a", "a", "b", "b"]}
    model = tb.count(rows, tb.Schema([tb.Column("text", "text")], target="y")).model()
    found = model.odds("text", "a", by="probability", top=2)
    assert [(r.value, r.inside) for r in found] == [("spam", 4 / 11), ("eggs", 2 / 11)]
    assert [r.value for r in model.odds("text", "b", by="probability", top=1)] == ["tea"]
    assert [r.value for r in model.odds("text", "a", top=1)] == ["spam"]
    with pytest.raises(tb.SettingsError, match="by='often'"):
        model.odds("text", "a", by="often")


def test_beta_imagines_rows_with_and_without_each_word() -> None:
    texts = {
        "w": [["ball", "ball", "goal"], ["ball", "win"], ["ball"], ["vote", "win"], ["vote", "vote", "vote"], ["law"]],
        "y": ["s", "s", "s", "p", "p", "p"],
    }
    tally = tb.count(texts, tb.Schema([tb.Column("w", "bag", levels=3)], target="y"))
    beta = tally.model(tb.Settings(families={"w": "bernoulli"}, smoothing=tb.Beta(1, 9)))
    assert beta.table("w").rows == ["ball", "goal", "law", "vote", "win"]  # and no word "present" or "absent"
    assert beta.table("w")["ball", "s"] == pytest.approx(4 / 13) and beta.table("w")["ball", "p"] == pytest.approx(
        1 / 13
    )
    even, laplace = (
        tally.model(tb.Settings(families={"w": "bernoulli"}, smoothing=s)) for s in (tb.Beta(), tb.Laplace())
    )
    rows = {"w": [["ball"], ["win", "law"], []]}
    np.testing.assert_allclose(even.predict_proba(rows), laplace.predict_proba(rows), rtol=1e-12)
    by_hand = np.log([0.5, 4 / 13, 11 / 13, 12 / 13, 12 / 13, 11 / 13]).sum()  # ball; no goal, law, vote, win
    assert beta.log_joint({"w": [["ball"]]})[0, 1] == pytest.approx(by_hand, rel=1e-12)
    assert beta.explain({"w": ["ball"]}).odds("s", "p").lines[1].known
    assert settings_from_json(settings_to_json(beta.settings)) == beta.settings
    with pytest.raises(tb.SettingsError, match=r"(?s)names only 'present' and 'absent'.*tb\.Beta\(1, 9\)"):
        tally.model(tb.Settings(families={"w": "bernoulli"}, smoothing=tb.Dirichlet({"present": 1, "absent": 9})))
    with pytest.raises(tb.SettingsError, match="Beta"):
        tally.model(tb.Settings(smoothing=tb.Beta(1, 9)))
    with pytest.raises(tb.SettingsError, match=r"Beta\(-1, 9\)"):
        tb.Beta(-1, 9)


def test_a_dirichlet_of_levels_imagines_rows_by_how_often_a_word_occurs() -> None:
    texts = {"w": [["ball", "ball", "goal"], ["ball"], ["ball"], ["vote"]], "y": ["s", "s", "s", "p"]}
    tally = tb.count(texts, tb.Schema([tb.Column("w", "bag", levels=2)], target="y"))
    model = tally.model(tb.Settings(families={"w": "levels"}, smoothing=tb.Dirichlet({0: 7, 1: 2, 2: 1})))
    table = model.table("w")
    assert [table[f"ball ×{k}", "s"] for k in range(3)] == pytest.approx([7 / 13, 4 / 13, 2 / 13])
    assert [table[f"ball ×{k}", "p"] for k in range(3)] == pytest.approx([8 / 11, 2 / 11, 1 / 11])
    each = tb.Dirichlet({"s": {0: 1, 1: 1, 2: 1}, "p": {0: 8, 1: 1, 2: 1}})
    own = tally.model(tb.Settings(families={"w": "levels"}, smoothing=each)).table("w")
    assert own["ball ×1", "s"] == pytest.approx(3 / 6) and own["ball ×0", "p"] == pytest.approx(9 / 11)
    with pytest.raises(tb.SettingsError, match="names 'ball', which is no level: they are 0 to 2"):
        tally.model(tb.Settings(families={"w": "levels"}, smoothing=tb.Dirichlet({"ball": 1})))
