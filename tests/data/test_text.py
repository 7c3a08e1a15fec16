"""Text as a column: the tokeniser and its fast twin, and what the lectures ask of documents (rows E1-E4, E6, E7)."""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections import Counter
from typing import Any

import numpy as np
import optional
import pyarrow as pa
import pytest
from growth import LARGER, grows_in_step
from hypothesis import given
from hypothesis import strategies as st
from shared_data import shared
from strategies import ALL, examples

import tallybayes as tb
from tallybayes.data.text.tokeniser import Tokeniser
from tallybayes.data.text.tokens import text_array, tokenised
from tallybayes.data.texts import Texts
from tallybayes.families import BernoulliWords, Complement, Multinomial, Selection

pytestmark = pytest.mark.core

WAYS = [
    Tokeniser(),
    Tokeniser(lower=False),
    Tokeniser(accents=False),
    Tokeniser(ngrams=(1, 2)),
    Tokeniser(ngrams=(2, 3), stop=("the", "of")),
    Tokeniser(chars=(1, 3)),
    Tokeniser(chars=(2, 4), across=True),
    *(Tokeniser(stop="english", stem=stem, ngrams=(1, 2)) for stem in ["english"] if optional.is_there("Stemmer")),
    Tokeniser(hash_bits=10),
]
ODD = "aAzZ09_ \t\n.,'-ßİıΣσςéèÀ\u0301\u200d\u200b\u0130\ufffd\x00\x1c\x85\xa0\u3000日本語ไทยעבר🙂\U0001d400"
texts = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])), max_size=40)


def read(values: list, tokeniser: Tokeniser, monkeypatch: pytest.MonkeyPatch, wish: str) -> list[list[str]]:
    with monkeypatch.context() as patch:
        patch.setenv("TALLYBAYES_KERNELS", wish)
        patch.setenv("TALLYBAYES_THREADS", "3")
        patch.setattr(
            "tallybayes.exact.kernels.texts._BYTES_PER_THREAD", 8
        )  # several threads, and tables to put together
        found = tokenised(text_array(values, ()), tokeniser)
    words = found.words.to_pylist()
    return [[words[j] for j in found[i]] for i in range(len(values))]


@pytest.mark.parametrize("tokeniser", WAYS, ids=str)
def test_e1_the_fast_way_gives_the_reference_s_tokens(tokeniser: Tokeniser, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="without Numba there is only the reference")

    @given(st.lists(st.one_of(st.none(), texts), max_size=6))
    @examples(60)
    def check(values: list) -> None:
        assert read(values, tokeniser, monkeypatch, "on") == read(values, tokeniser, monkeypatch, "off")

    check()


@given(texts)
@examples(200)
def test_e1_the_default_is_python_s_own_words(text: str) -> None:
    assert Tokeniser().tokens(text) == re.findall(r"(?u)\b\w\w+\b", text.lower())


@given(st.text(max_size=30))
@examples(100)
def test_lone_surrogates_are_replaced_and_nothing_raises(text: str) -> None:
    for tokeniser in WAYS:
        for token in tokeniser.tokens(text):
            token.encode()


@given(texts)
@examples(60)
def test_tokens_are_placed_where_they_stand(text: str) -> None:
    own = [Tokeniser(pattern=p) for p in ("auto", r"(\w)(\w*)-?", r"(?=(\w\w))")]
    for tokeniser in WAYS + own:
        placed = tokeniser.placed(text)
        assert [token for token, *_ in placed] == tokeniser.tokens(text)
        assert all(0 <= start < end <= len(text) for _, start, end in placed)


def test_what_stands_in_a_place_is_what_the_token_was_made_of() -> None:
    text = "İstanbul’da  ΟΔΟΣ\n\nCafés, cafés; 日本語"
    for tokeniser in (Tokeniser(), Tokeniser(accents=False), Tokeniser(pattern="auto"), Tokeniser(ngrams=(1, 2))):
        for token, start, end in tokeniser.placed(text):
            assert tokeniser.tokens(text[start:end])[-1] == token
    across = Tokeniser(chars=(2, 3), across=True)
    assert across.placed("a \n b") == [("a ", 0, 2), (" b", 1, 5), ("a b", 0, 5)]
    assert Tokeniser(chars=(3, 3)).placed("x ab") == [(" ab", 2, 4), ("ab ", 2, 4)]


def test_e1_accents_own_patterns_and_character_grams() -> None:
    assert Tokeniser(accents=False).tokens("Crème Brûlée naïve") == ["creme", "brulee", "naive"]
    assert Tokeniser(pattern=r"[a-z]+|\$").tokens("win $100 now") == ["win", "$", "now"]
    assert Tokeniser(chars=(3, 3)).tokens("ab cde") == [" ab", "ab ", " cd", "cde", "de "]
    assert Tokeniser(chars=(2, 2), across=True).tokens("a \n b") == ["a ", " b"]
    assert Tokeniser(pattern="auto").tokens("日本語 text ไทย") == ["日本", "本語", "text", "ไท", "ทย"]
    letters = [chr(c) for c in range(0xC0, 0x250)]
    for letter in letters:
        plain = "".join(c for c in unicodedata.normalize("NFD", letter.lower()) if not unicodedata.combining(c))
        assert Tokeniser(accents=False).prepared(letter) == plain


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"ngrams": 2}, "ngrams=2"),
        ({"ngrams": None}, "ngrams=None"),
        ({"ngrams": (1, 2.5)}, r"ngrams=\(1, 2.5\)"),
        ({"chars": 3}, "chars=3"),
        ({"chars": (3, 2)}, r"chars=\(3, 2\)"),
        ({"pattern": "("}, r"'\(' is no regular expression"),
        ({"pattern": b"x"}, "the pattern b'x'"),
        ({"pattern": None}, "the pattern None"),
        ({"stop": "klingon"}, "no list of stop words for 'klingon'"),
        ({"stop": ["a", 1]}, "the stop word 1"),
        ({"stop": 7}, "the stop word 7"),
        ({"stem": "englisch"}, "did you mean 'english'"),
        ({"accents": "no"}, "accents='no'"),
        ({"lower": 0}, "lower=0"),
        ({"hash_bits": 40}, "hash_bits=40"),
        ({"hash_bits": "22"}, "hash_bits='22'"),
    ],
    ids=str,
)
def test_a_tokeniser_that_makes_no_sense_is_refused(given: dict[str, Any], found: str) -> None:
    if "stem" in given:
        pytest.importorskip("Stemmer")
    with pytest.raises(tb.SchemaError, match=found) as caught:
        Tokeniser(**given)
    assert "Hint: " in str(caught.value)


def test_a_pattern_that_matches_nothing_gives_no_empty_tokens() -> None:
    assert Tokeniser(pattern="x*").tokens("axxb x") == ["xx", "x"]
    assert Tokeniser(pattern=r"\b").tokens("one two") == []
    assert Tokeniser(pattern="(a)|(b)").tokens("abc") == ["a", "b"]
    data = {"t": ["xx yy", "zz"], "y": ["p", "q"]}
    tally = tb.count(data, tb.Schema([tb.Column("t", "text", text=Tokeniser(pattern="x*"))], target="y"))
    assert tally.model().table("t").rows == ["xx"]


def test_e2_stems_stop_words_and_word_grams() -> None:
    pytest.importorskip("Stemmer")
    english = Tokeniser(stop="english", stem="english", ngrams=(1, 2))
    assert english.tokens("The cats were running") == ["cat", "run", "cat run"]
    assert Tokeniser(stem="german").tokens("Häuser und Häusern") == ["haus", "und", "haus"]
    assert Tokeniser(stop=["spam"]).tokens("Spam and eggs") == ["and", "eggs"]
    for wrong in (
        {"stop": "klingon"}, {"stem": "klingon"}, {"ngrams": (2, 1)}, {"chars": (0, 2)}, {"pattern": "("},
        {"hash_bits": 99},
    ):  # fmt: skip
        with pytest.raises(tb.SchemaError, match="Hint: "):
            Tokeniser(**wrong)


def test_e4_i_am_spam() -> None:
    text = "I am spam. Spam I am. Do you like perceptrons?"
    for tokeniser, counts, length in (
        (Tokeniser(pattern=r"\w+"), {"i": 2, "am": 2, "spam": 2, "do": 1, "you": 1, "like": 1, "perceptrons": 1}, 10),
        (Tokeniser(), {"am": 2, "spam": 2, "do": 1, "you": 1, "like": 1, "perceptrons": 1}, 8),
    ):
        schema = tb.Schema([tb.Column("text", "text", text=tokeniser)], target="y")
        sheet = tb.count({"text": [text], "y": ["s"]}, schema).columns["text"].sheets["words"]
        assert dict(zip(sheet.slot_names, sheet.table("n", 1)[:, 0], strict=True)) == counts
        assert sheet.table("n", 1).sum() == length == len(tokeniser.tokens(text))


MAILS = {
    "subject": ["Cheap pills", "Lunch?", None, "Meeting notes", "WIN a prize", ""],
    "body": [
        "buy cheap pills now now now", "lunch at noon with the team", "cheap cheap offer, buy now",
        "notes of the meeting, see you at noon", "you win a prize, buy now", None,
    ],
    "known": [False, True, False, True, False, True],
    "caps": [0.1, 0.05, 0.2, 0.02, 0.4, 0.03],
    "class": ["spam", "ham", "spam", "ham", "spam", "ham"],
}  # fmt: skip
SCHEMA = tb.Schema(
    [tb.Column("subject", "text"), tb.Column("body", "text", levels=3), tb.Column("known", "category"),
     tb.Column("caps", "number", cells=tb.Cells.fitted(np.array(MAILS["caps"])))],
    target="class",
)  # fmt: skip


@pytest.mark.parametrize("wish", ["on", "off"])
def test_b10_several_texts_beside_other_columns(wish: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBAYES_KERNELS", wish)
    tally = tb.count(MAILS, SCHEMA)
    half = {k: v[:3] for k, v in MAILS.items()}, {k: v[3:] for k, v in MAILS.items()}
    assert tb.count(half[0], SCHEMA) + tb.count(half[1], SCHEMA) == tally
    assert tally.forget(half[1]) == tb.count(half[0], SCHEMA)
    model = tally.model()
    assert model.predict(MAILS).tolist() == MAILS["class"]
    row = {"subject": "cheap prize", "body": "buy lunch", "known": False, "caps": 0.3}
    explained = model.explain(row)
    np.testing.assert_allclose(explained.total, model.log_joint(row)[0], rtol=1e-12)
    shown = [(c.column, c.label) for c in explained.contributions[1:5]]
    assert shown == [("subject", "cheap"), ("subject", "prize"), ("body", "buy"), ("body", "lunch")]
    # an empty text is a text without words; a missing one is not there at all
    rows = tally.columns["subject"].sheets["rows"].table("n", 2)[0]
    assert rows.tolist() == [3.0, 2.0]


def test_both_ways_give_one_tally_weights_included(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="without Numba there is only the reference")
    monkeypatch.setenv("TALLYBAYES_THREADS", "3")
    monkeypatch.setattr("tallybayes.exact.kernels.texts._BYTES_PER_THREAD", 8)
    monkeypatch.setattr("tallybayes.exact.kernels.texts._TOKENS_PER_THREAD", 4)
    plain = tb.Schema([tb.Column("body", "text")], target="class")
    digests = set()
    for wish in ("on", "off"):
        monkeypatch.setenv("TALLYBAYES_KERNELS", wish)
        digests.add(tb.count(MAILS, plain).digest)
        weighted = tb.count(MAILS, plain, weights=np.ones(6))
        digests.add(weighted.digest)
    assert len(digests) == 1


@pytest.mark.parametrize("classes", [1, 2, 9])
@pytest.mark.parametrize("threads", [2, 5])
def test_any_number_of_threads_counts_the_same(classes: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class may span several threads, a word be in some of them, and the tables grow."""
    pytest.importorskip("numba", reason="without Numba there is only the reference")
    rng = np.random.default_rng(classes)
    texts = [" ".join(f"w{i}" for i in rng.zipf(1.3, n) % 5000) for n in rng.integers(0, 300, 90)]
    data = {"body": texts, "class": [f"c{i}" for i in rng.integers(0, classes, 90)]}
    for ngrams in ((1, 1), (1, 2)):
        schema = tb.Schema([tb.Column("body", "text", text=Tokeniser(ngrams=ngrams))], target="class")
        with monkeypatch.context() as patch:
            patch.setenv("TALLYBAYES_KERNELS", "off")
            expected = tb.count(data, schema)
            patch.setenv("TALLYBAYES_KERNELS", "on")
            patch.setenv("TALLYBAYES_THREADS", str(threads))
            importlib.import_module("tallybayes.exact.kernels.texts")
            patch.setattr("tallybayes.exact.kernels.texts._BYTES_PER_THREAD", 64)
            patch.setattr("tallybayes.exact.kernels.texts._TOKENS_PER_THREAD", 64)
            found = tb.count(data, schema)
        assert found == expected
        assert found.digest == expected.digest


_LENGTHS = (0, 1, 2, 30, 62, 63, 64, 65, 127, 128, 2_047, 2_048, 2_049, 5_000)  # the kernel goes by 64 and 2,048 bytes


@pytest.mark.parametrize("classes", [1, 2, 40])
@pytest.mark.parametrize("lengths", [_LENGTHS[:8], _LENGTHS])
def test_short_texts_are_counted_side_by_side(
    classes: int, lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that fill their blocks, or hold nothing, beside each other: no word goes on in the next text."""
    pytest.importorskip("numba", reason="without Numba there is only the reference")
    monkeypatch.setenv("TALLYBAYES_THREADS", "1")
    rng = np.random.default_rng(len(lengths) + classes)
    rows = 600 if lengths[-1] < 100 else 150
    for letters in ("ab ", "abcdefghij   ", "abé ٣𝐀-"):
        given = ["".join(rng.choice(list(letters), n)) for n in rng.choice(lengths, rows)]
        data = {"body": given, "class": [f"c{i}" for i in rng.integers(0, classes, rows)]}
        schema = tb.Schema([tb.Column("body", "text")], target="class")
        found = {}
        for wish in ("off", "on"):
            monkeypatch.setenv("TALLYBAYES_KERNELS", wish)
            found[wish] = tb.count(data, schema).digest, read(given, Tokeniser(), monkeypatch, wish)
        assert found["on"] == found["off"]


@pytest.mark.parametrize("presence", [False, True])
@pytest.mark.parametrize("reserve", [False, True])
def test_scoring_while_cutting_agrees_with_the_bag(
    presence: bool, reserve: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba", reason="without Numba there is only the reference")
    rng = np.random.default_rng(3)
    letters = np.array([*"abcdefgh", "é", "ß", "日", "_", "7"])
    words = ["".join(rng.choice(letters, n)) for n in rng.integers(1, 24, 400)]
    texts = [" ".join(rng.choice(words, n)) for n in rng.integers(0, 400, 60)]
    texts[3], texts[7] = "", "b. " * 700 + "a" * 9000
    data = {"body": [*texts[:40], None], "class": [*("abc"[i % 3] for i in range(40)), "a"]}
    tally = tb.count(data, tb.Schema([tb.Column("body", "text")], target="class"))
    rows = {"body": [*texts, None]}
    for family in (Multinomial(presence=presence), Complement(presence=presence), Multinomial(idf=True)):
        if reserve and isinstance(family, Complement):
            continue
        settings = tb.Settings(families={"body": family}, unseen="reserve" if reserve else "no evidence")
        model = tally.model(settings)
        with monkeypatch.context() as patch:
            patch.setenv("TALLYBAYES_KERNELS", "off")
            patch.setattr("tallybayes.data.texts._SHORT", 0)
            bag = model.parts(rows)["body"]
            patch.setenv("TALLYBAYES_KERNELS", "on")
            patch.setenv("TALLYBAYES_THREADS", "3")
            importlib.import_module("tallybayes.exact.kernels.texts")
            patch.setattr("tallybayes.exact.kernels.texts._BYTES_PER_THREAD", 64)
            cut = model.parts(rows)["body"]
            patch.setattr("tallybayes.data.texts._SHORT", 1 << 40)
            one_by_one = model.parts(rows)["body"]
        np.testing.assert_allclose(cut, bag, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(one_by_one, bag, rtol=1e-12, atol=1e-9)
        assert not cut[-1].any()


def test_readings_of_documents() -> None:
    """B4, B6 and B7 for texts: oracles are the bags of the same tokens, which other tests hold against scikit-learn."""
    as_bags = {**MAILS, "body": [None if t is None else Tokeniser().tokens(t) for t in MAILS["body"]]}
    bag = tb.Schema([tb.Column("body", "bag", levels=3)], target="class")
    text = tb.Schema([tb.Column("body", "text", levels=3)], target="class")
    asked = [None if t is None else Tokeniser().tokens(t) for t in MAILS["body"]]
    for family in ("multinomial", "bernoulli", "complement", "levels"):
        settings = tb.Settings(families={"body": family})
        one = tb.count(as_bags, bag).model(settings).log_joint({"body": asked})
        two = tb.count(MAILS, text).model(settings).log_joint({"body": MAILS["body"]})
        np.testing.assert_allclose(one, two, rtol=1e-12)


def test_e3_words_are_chosen_and_weighted_after_counting() -> None:
    tally = tb.count(MAILS, tb.Schema([tb.Column("body", "text")], target="class"))
    digest = tally.digest

    def words(family) -> list[str]:
        return tally.model(tb.Settings(families={"body": family})).table("body").rows

    everything = words("multinomial")
    assert set(words(Multinomial(select=Selection(min_rows=2)))) == {"buy", "cheap", "now", "at", "noon", "the", "you"}
    assert "buy" not in words(Multinomial(select=Selection(max_share=0.5)))
    assert words(Multinomial(select=Selection(top=1))) == ["at"]  # "buy", "noon" and "now" tell as much, but come later
    assert len(words(BernoulliWords(select=Selection(top=3, by="chi-square")))) == 3
    assert len(words(Complement(select=Selection(min_rows=2)))) == 7
    assert tally.digest == digest
    assert len(everything) > 10
    presence = tally.model(tb.Settings(families={"body": Multinomial(presence=True)}))
    once, thrice = presence.parts({"body": ["now", "now now now"]})["body"]
    np.testing.assert_array_equal(once, thrice)
    weighted = tally.model(tb.Settings(families={"body": Multinomial(idf=True)}))
    np.testing.assert_allclose(
        weighted.explain({"body": "buy now now"}).total, weighted.log_joint({"body": "buy now now"})[0], rtol=1e-12
    )
    with pytest.raises(tb.SettingsError, match="words selected with"):
        Selection(by="luck")


def test_e3_information_gain_is_sklearn_s() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    chi2 = pytest.importorskip("sklearn.feature_selection").chi2
    rng = np.random.default_rng(60)
    x, y = (rng.random((80, 12)) < rng.random(12)).astype(float), rng.integers(0, 3, 80)
    there = np.stack([x[y == c].sum(axis=0) for c in range(3)], axis=1)
    rows = np.bincount(y).astype(float)
    from tallybayes.families.vocabulary import measure

    want = [metrics.mutual_info_score(x[:, j], y) for j in range(12)]
    np.testing.assert_allclose(measure(there, rows, "information"), want, atol=1e-12)
    both = chi2(x, y)[0] + chi2(1 - x, y)[0]
    np.testing.assert_allclose(measure(there, rows, "chi-square"), both, rtol=1e-9)


def test_e6_odds_of_words_unsmoothed_and_smoothed() -> None:
    tally = tb.count(MAILS, tb.Schema([tb.Column("body", "text")], target="class"))
    raw = tally.model(tb.Settings(smoothing=tb.MaximumLikelihood())).odds("body", "spam", top=3)
    assert [(r.value, r.ratio) for r in raw] == [("now", np.inf), ("buy", np.inf), ("cheap", np.inf)]
    assert "∞" in repr(raw)
    smooth = tally.model().odds("body", "spam", against="ham", top=3)
    table = tally.model().table("body")
    assert smooth.rows[0].ratio == pytest.approx(table["now", "spam"] / table["now", "ham"])
    assert np.isfinite([r.ratio for r in smooth]).all()
    with pytest.raises(tb.SettingsError, match="no class 'eggs'"):
        tally.model().odds("body", "eggs")


def test_e6_odds_of_sms_unsmoothed_and_smoothed() -> None:
    """Against counting by hand: shares of a word among all words of the class, with and without one imagined each."""
    frame = shared("sms_spam")
    counts = {
        label: Counter(re.findall(r"(?u)\b\w\w+\b", " ".join(frame["text"][frame["target"] == label]).lower()))
        for label in ("ham", "spam")
    }
    total = {label: sum(c.values()) for label, c in counts.items()}
    tally = tb.count(frame, tb.Schema([tb.Column("text", "text")], target="target"))
    raw = tally.model(tb.Settings(smoothing=tb.MaximumLikelihood())).odds("text", "spam", against="ham", top=100_000)
    assert {o.value for o in raw if o.ratio == np.inf} == set(counts["spam"]) - set(counts["ham"])
    for o in raw:
        if 0 < o.ratio < np.inf:
            by_hand = (counts["spam"][o.value] / total["spam"]) / (counts["ham"][o.value] / total["ham"])
            assert o.ratio == pytest.approx(by_hand, rel=1e-9)
    words = len(counts["spam"] | counts["ham"])
    smooth = tally.model().odds("text", "spam", against="ham", top=10)
    for o in smooth:
        share = {label: (counts[label][o.value] + 1) / (total[label] + words) for label in counts}
        assert o.ratio == pytest.approx(share["spam"] / share["ham"], rel=1e-9)
    assert "claim" in {o.value for o in smooth}


def test_e7_embeddings_are_a_vector_column() -> None:
    rng = np.random.default_rng(61)
    y = np.array(["a", "b"] * 50)
    data = {"text": ["some words"] * 100, "embedding": rng.normal(size=(100, 16)) + (y == "a")[:, None], "y": y}
    model = tb.fit(data, "y")
    assert model.schema["embedding"].kind == "vector"
    assert np.mean(model.predict(data) == y) > 0.95


def test_a_hashed_vocabulary_is_bounded() -> None:
    schema = tb.Schema([tb.Column("body", "text", text=Tokeniser(hash_bits=8))], target="class")
    many = {"body": [" ".join(f"word{i}" for i in range(5000))], "class": ["spam"]}
    sheet = tb.count(many, schema).columns["body"].sheets["words"]
    assert len(sheet.slots) <= 256
    assert sheet.table("n", 1).sum() == 5000


def test_a_tokeniser_travels_with_its_schema(tmp_path) -> None:
    schema = tb.Schema([tb.Column("body", "text", text=Tokeniser(ngrams=(1, 2), stop=["the"]))], target="class")
    schema.save(tmp_path / "schema.json")
    again = tb.Schema.load(tmp_path / "schema.json")
    assert again == schema
    assert tb.count(MAILS, again) == tb.count(MAILS, schema)
    other = tb.Schema([tb.Column("body", "text")], target="class")
    with pytest.raises(tb.SchemaError, match="text="):
        tb.count(MAILS, schema) + tb.count(MAILS, other)


def test_the_schema_records_the_version_of_unicode_and_adding_across_versions_warns(tmp_path) -> None:
    schema = tb.Schema([tb.Column("body", "text")], target="class")
    tally = tb.count(MAILS, schema)
    assert tally.schema.to_dict()["unicode"] == unicodedata.unidata_version
    # a tally that another Python has counted
    old = tb.Schema.from_dict({**schema.to_dict(), "unicode": "9.0.0"})
    theirs = tb.Tally(old, tally.classes, tally.labels, tally.columns)
    assert theirs == tally
    assert theirs.digest == tally.digest
    with pytest.warns(tb.TallybayesWarning, match=r"Unicode 9\.0\.0"):
        both = theirs + tally
    assert both.schema.unicode == f"{unicodedata.unidata_version} and 9.0.0"
    assert both + tally == tally * 3  # warned of once
    # rows counted now are cut by this Python, whatever the file says of its own
    old.save(tmp_path / "schema.json")
    assert tb.count(MAILS, tb.Schema.load(tmp_path / "schema.json")).schema.unicode == unicodedata.unidata_version
    assert tb.Tally.zero(old) + tally == tally  # no rows, no texts
    # files of before say nothing, and nothing is warned of
    before = {k: v for k, v in schema.to_dict().items() if k != "unicode"}
    silent = tb.Schema.from_dict(before)
    assert silent == schema
    assert silent.to_dict() == before
    assert tb.Tally(silent, tally.classes, tally.labels, tally.columns) + tally == tally * 2
    numbers = tb.Schema([tb.Column("x", "number")], target="class")
    assert "unicode" not in numbers.to_dict()
    with pytest.raises(tb.SchemaError, match="unicode=15"):
        tb.Schema.from_dict({**before, "unicode": 15})


HOSTILE = {
    "marks": "a" + "\u0301" * 400_000,
    "one token": "x" * 2_000_000,
    "long unicode token": "é" * 500_000,
    "rtl": "\u202eשלום \u200f" * 60_000,
    "joiners": "👩\u200d👩\u200d👧 ab" * 40_000,
    "nul": "\x00a\x00bc" * 200_000,
    "spaces": " \t\n" * 400_000,
}


@pytest.mark.parametrize("wish", ["on", "off"])
@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_text_and_no_faster(name: str, wish: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBAYES_KERNELS", wish)
    text = HOSTILE[name] * (4 if wish == "on" else 1)
    small, large = (text_array([t], ()) for t in (text[: len(text) // LARGER], text))
    for tokeniser in (Tokeniser(), Tokeniser(accents=False), Tokeniser(chars=(2, 3), across=True)):
        assert grows_in_step(lambda array, how=tokeniser: tokenised(array, how), small, large), tokeniser


def test_20_newsgroups_equals_scikit_learn_to_the_digit() -> None:
    feature = pytest.importorskip("sklearn.feature_extraction.text")
    peers = pytest.importorskip("sklearn.naive_bayes")
    frame = shared("newsgroups20")
    keep = ALL | frame["target"].isin(["sci.space", "rec.autos", "talk.politics.guns"])
    train, test = (frame[keep & (frame["split"] == s)] for s in ("train", "test"))
    schema = tb.Schema([tb.Column("text", "text")], target="target")
    model = tb.count(train, schema).model()
    vectors = feature.CountVectorizer()
    peer = peers.MultinomialNB().fit(vectors.fit_transform(train["text"]), train["target"])
    np.testing.assert_array_equal(model.predict(test), peer.predict(vectors.transform(test["text"])))


def test_sms_patterns_beside_the_words_are_better_than_words_alone() -> None:
    frame = shared("sms_spam")
    text = frame["text"]
    patterns = {
        "caps": text.str.count("[A-Z]") / text.str.count("[A-Za-z]").clip(lower=1),
        "digits": text.str.count(r"\d").astype(float),
        "amounts": text.str.count(r"[$£€]\s?\d").astype(float),
        "length": text.str.len().astype(float),
    }
    frame = frame.assign(**patterns)
    fold = np.arange(len(frame)) % 10

    def figures(columns: list[tb.Column]) -> tuple[float, float]:
        schema = tb.Schema([tb.Column("text", "text"), *columns], target="target")
        parts = [tb.count(frame[fold == k], schema) for k in range(10)]
        total = sum(parts)
        models = [(total - part).model() for part in parts]
        p = np.concatenate([m.predict_proba(frame[fold == k]) for k, m in enumerate(models)])
        label = np.concatenate([frame["target"][fold == k] == models[0].classes[1] for k in range(10)]).astype(int)
        return float(tb.metrics.accuracy(label, p)), float(tb.metrics.log_loss(label, p))

    found = [tb.infer(frame[[name, "target"]], "target")[name] for name in patterns]
    (words, words_loss), (both, both_loss) = figures([]), figures(found)
    assert words > 0.98
    assert both > words + 0.003
    assert both_loss < words_loss - 0.005


@pytest.mark.parametrize("given", [{}, {"chars": (2, 4)}, {"ngrams": (1, 2)}, {"stop": ("the",)}], ids=str)
def test_the_words_of_a_text_stand_in_its_order_on_every_road(given: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores add up what words say one after the other: in another order a fit would be rounded otherwise."""
    rng = np.random.default_rng(3)
    texts = [
        " ".join(rng.choice(["the", "red", "house", "by the sea", "red sea"], rng.integers(0, 9))) for _ in range(99)
    ]
    found = []
    for roads in ("on", "off"):
        monkeypatch.setenv("TALLYBAYES_KERNELS", roads)
        bag = Texts(pa.array(texts, pa.large_string()), tb.Tokeniser(**given)).bag
        found.append([bag.slots, *(getattr(bag.matrix, part).tolist() for part in ("indptr", "indices", "data"))])
    assert found[0] == found[1]
    assert found[0][2] != sorted(found[0][2])
