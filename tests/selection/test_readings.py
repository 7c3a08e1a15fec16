"""What `fit` chooses for texts: their reading, pairs of words, characters; always by rows that were not counted."""

from __future__ import annotations

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.data.encode import labelled
from tallybayes.data.looking.look import are_names
from tallybayes.data.sources import open_source
from tallybayes.families.settings import Settings
from tallybayes.families.smoothing import Laplace
from tallybayes.selection.choose.deal import dealt
from tallybayes.selection.choose.text.words import (
    ALPHAS,
    CHARACTERS,
    LOOK_BYTES,
    PAIRS_OF_WORDS,
    further,
    read_texts,
    thinned,
)
from tallybayes.selection.folds import count_folds

WORDS = [f"{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in "nrst"]


def negated(rows: int, seed: int = 0) -> dict[str, list[str]]:
    """Praise and blame that only word order tells apart: "not good … bad" against "not bad … good"."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(rows):
        label = str(rng.choice(["praise", "blame"]))
        told = ["not good", "bad"] if label == "blame" else ["not bad", "good"]
        filler = [" ".join(rng.choice(WORDS, 3)) for _ in range(3)]
        texts.append(f"{filler[0]} {told[0]} {filler[1]} {told[1]} {filler[2]}")
        labels.append(label)
    return {"text": texts, "y": labels}


def endings(rows: int, seed: int = 0) -> dict[str, list[str]]:
    """Names whose class is told by how they end."""
    rng = np.random.default_rng(seed)
    stems = [
        "".join(rng.choice(list("bdfgklmnprst")) + rng.choice(list("aeiou")) for _ in range(3)) for _ in range(rows)
    ]
    labels = [str(y) for y in rng.choice(["f", "m"], rows)]
    return {
        "name": [s.title() + ("lla" if y == "f" else "rko") for s, y in zip(stems, labels, strict=True)],
        "y": labels,
    }


def test_pairs_of_words_are_read_where_only_they_tell() -> None:
    model = tb.fit(negated(400), target="y")
    name = f"text ({PAIRS_OF_WORDS})"
    assert name in model.schema.names
    assert model.settings.weights[name] > 0
    assert model.predict([{"text": "not good at all bad"}, {"text": "not bad it is good"}]).tolist() == [
        "blame",
        "praise",
    ]
    assert np.mean(model.predict(negated(200, seed=1)) == np.array(negated(200, seed=1)["y"])) > 0.95
    without = tb.fit(negated(400), target="y", pairs=False)
    assert list(without.schema.names) == ["text"]


def test_words_alone_stay_alone_where_nothing_is_gained() -> None:
    rng = np.random.default_rng(0)
    labels = [str(y) for y in rng.choice(["a", "b"], 300)]
    own = {"a": WORDS[:70], "b": WORDS[70:]}
    data = {"text": [" ".join(rng.choice(own[y], 12)) for y in labels], "y": labels}
    model = tb.fit(data, target="y")
    assert list(model.schema.names) == ["text"]
    assert model.settings.calibrated is not None
    assert model.settings.calibrated.form == "one temperature"
    assert f"column weights and {PAIRS_OF_WORDS}" in model.settings.calibrated.losses  # tried, and said so


def test_further_columns_stand_beside_numbers_and_can_be_calibrated_anew() -> None:
    data = negated(400)
    number = np.random.default_rng(3).normal(size=400) + (np.array(data["y"]) == "praise")
    model = tb.fit({**data, "size": number.tolist()}, target="y")
    assert {"text", "size", f"text ({PAIRS_OF_WORDS})"} <= set(model.schema.names)
    again = model.recalibrate({**data, "size": number.tolist()})
    assert set(again.settings.weights) == set(model.settings.weights)
    assert again.settings.families["text"] == model.settings.families["text"]


def test_names_are_read_by_their_characters() -> None:
    data = endings(300)
    schema = tb.infer(data, target="y")
    assert schema["name"].kind == "text"
    assert schema["name"].text == tb.Tokeniser(chars=(1, 4))
    assert "names or single words" in schema["name"].reason
    model = tb.fit(data, target="y")
    test = endings(200, seed=1)
    assert np.mean(model.predict({"name": test["name"]}) == np.array(test["y"])) > 0.95


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["Anna", "Jean-Luc", "O'Neill", "van Dyke"], True),
        (["Ольга", "Борис"], True),
        (["user17", "user18"], False),
        (["XKCD", "QRST"], False),
        (["grlpf", "zzxtk"], False),
        (["a@b.c", "c@d.e"], False),
    ],
)
def test_what_looks_like_a_name(values: list[str], names: bool) -> None:
    assert are_names(values) == names


def test_a_script_without_spaces_is_cut_into_pairs_of_characters() -> None:
    texts = [f"今日は 天気が よい です {i} 番" for i in range(40)]
    schema = tb.infer({"text": texts, "y": ["a", "b"] * 20}, target="y")
    assert schema["text"].text == tb.Tokeniser(pattern="auto")
    plain = tb.infer({"text": [f"the weather is fine today {i}" for i in range(40)], "y": ["a", "b"] * 20}, target="y")
    assert plain["text"].text == tb.Tokeniser()


def test_the_reading_is_the_best_of_a_full_search_or_nearly() -> None:
    data = open_source({**negated(300)}, target="y")
    look = next(iter(data.batches()))
    schema = tb.infer(negated(300), target="y")
    deal = dealt(labelled(schema, look), look, 5)
    folds = count_folds(open_source(look.take(deal.order)), schema, deal)
    chosen = read_texts(folds, schema, Settings())
    found = chosen.smoothing_of("text")
    assert isinstance(found, Laplace)
    assert found.alpha in ALPHAS
    own = Settings(smoothing={"text": Laplace(0.5)})
    assert read_texts(folds, schema, own) == own  # what was said is not chosen again


def test_characters_only_of_short_texts() -> None:
    short, long = negated(50), {"text": [t * 40 for t in negated(50)["text"]], "y": negated(50)["y"]}
    for data, expected in ((short, [PAIRS_OF_WORDS, CHARACTERS]), (long, [PAIRS_OF_WORDS])):
        look = next(iter(open_source(data, target="y").batches()))
        assert [what for what, _ in further(tb.infer(data, target="y"), look, 2)] == expected


def test_a_long_look_is_thinned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    data = negated(60)
    look, schema = next(iter(open_source(data, target="y").batches())), tb.infer(data, target="y")
    assert thinned(look, schema) is look
    monkeypatch.setattr("tallybayes.selection.choose.text.words.LOOK_BYTES", 1_000)
    assert 0 < thinned(look, schema).rows < 60 < LOOK_BYTES
