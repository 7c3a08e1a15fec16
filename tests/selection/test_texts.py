"""Texts in what is chosen: further readings, corrections of words and the lead, beside whatever else a table has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.families.settings import Settings

FILLER = [f"{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in "nrst"]


def table(rows: int, texts: int, classes: int = 2, seed: int = 0, more: bool = False) -> dict[str, list[Any]]:
    """Texts of which each tells something: words that come together, one that stands alone, endings, pairs."""
    rng = np.random.default_rng(seed)
    out: dict[str, list[Any]] = {f"text {j}": [] for j in range(texts)}
    if more:
        out |= {"colour": [], "size": [], "name": []}
    labels = []
    for _ in range(rows):
        y = int(rng.integers(classes))
        for j in range(texts):
            loud, true = (y if rng.random() < p else int(rng.integers(classes)) for p in (0.3, 0.6))
            words = [f"echo{loud}{i}" for i in range(6)] + [f"true{true}"] + rng.choice(FILLER, 5).tolist()
            kind = rng.permutation(words).tolist()
            if j == 1:  # endings tell
                ends = ("ing", "ous") if rng.random() < 0.8 else ("ous", "ing")
                kind = [w + ends[y % 2] for w in rng.choice(FILLER, 6).tolist()]
            if j == 2:  # the order of two words tells
                kind += ["left", "right"] if (rng.random() < 0.8) == bool(y % 2) else ["right", "left"]
            out[f"text {j}"].append(" ".join(kind))
        if more:
            out["colour"].append(("red", "green", "blue")[int(rng.integers(3)) if rng.random() < 0.6 else y % 3])
            out["size"].append(float(rng.normal() + y))
            out["name"].append(str(rng.choice(FILLER)).capitalize() + "aeiou"[y % 5 if rng.random() < 0.7 else 0])
        labels.append(f"class {y}")
    return {**out, "y": labels}


def said(model: Any, data: dict[str, list[Any]], settings: Settings) -> np.ndarray:
    """The scores that settings describe, by hand: log prior, offsets, and each column by its weight and corrections."""
    plain = replace(settings, weights={}, lengths={}, offsets={}, corrections={}, lead=None, calibrated=None)
    bare = model.tally.model(plain)
    parts, classes = bare.parts(data), list(map(str, bare.classes))
    out = np.tile(bare.log_prior, (len(data["y"]), 1)).astype(float)
    out += [settings.offsets.get(c, 0.0) for c in classes]
    for column in model.schema.counted:
        correction = settings.corrections.get(column.name)
        one = np.array(parts[column.name], dtype=float)
        words = None
        if column.text is not None:
            words = [column.text.tokens(t) for t in data[column.source or column.name]]
        if correction is not None and words is not None:
            added = dict(zip(correction.cells, correction.on(classes), strict=True))
            one = correction.weight * one
            for i, row in enumerate(words):
                for word in set(row):
                    one[i] += added.get(word, 0.0)
        elif correction is not None:
            alone = model.tally.model(replace(plain, corrections={column.name: correction}))
            one = np.array(alone.parts(data)[column.name])
        else:
            one = settings.weights.get(column.name, 1.0) * one
        if words is not None:
            length = np.array([max(len(row), 1) for row in words], dtype=float)
            one = one * (length ** settings.lengths.get(column.name, 0.0))[:, None]
        out += one
    return out


TABLES = [
    table(600, 1),
    table(800, 2, 3, seed=1),
    table(600, 3, seed=2, more=True),
    table(900, 4, 3, seed=3, more=True),
    table(1_500, 1, 12, seed=4, more=True),
    table(80, 2, seed=5, more=True),
]


@pytest.mark.parametrize("data", TABLES, ids=lambda d: f"{len(d) - 1} columns")
def test_the_model_says_what_the_settings_describe(data: dict[str, list[Any]]) -> None:
    model = tb.fit(data, target="y")
    settings = replace(model.settings, lead=None)
    found, expected = model.tally.model(settings).log_joint(data), said(model, data, settings)
    apart = found - expected
    assert apart - apart.mean(axis=1, keepdims=True) == pytest.approx(np.zeros_like(apart), abs=1e-8)


def test_a_corrected_text_has_no_weight_of_its_own() -> None:
    settings = tb.fit(TABLES[0], target="y").settings
    assert set(settings.corrections) == {"text 0"}
    assert not settings.weights
    assert settings.calibrated is not None and settings.calibrated.form == "word corrections"


def test_further_readings_are_taken_where_they_tell() -> None:
    data = {k: v for k, v in table(1_200, 3, seed=2).items() if k != "text 0"}
    model = tb.fit(data, target="y")
    assert {"text 1 (characters)", "text 2 (pairs of words)"} <= set(model.schema.names)
    assert "text 1 (pairs of words)" not in model.schema.names
    alone = tb.fit(data, target="y", pairs=False)
    assert set(alone.schema.names) == {"text 1", "text 2"}


def test_nothing_is_taken_of_noise() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(FILLER, 10)) for _ in range(600)]
    settings = tb.fit({"text": texts, "y": rng.choice(["a", "b"], 600).tolist()}, target="y").settings
    assert not settings.corrections and settings.lead is None


def test_forms_that_ask_for_less() -> None:
    assert not tb.fit(TABLES[0], target="y", calibrate="weights").settings.corrections
    assert not tb.fit(TABLES[0], target="y", calibrate="temperature").settings.corrections
    curved = tb.fit(TABLES[0], target="y", calibrate="isotonic").settings
    assert curved.isotonic is not None and curved.corrections and curved.lead is None


def test_many_classes_leave_the_weights_of_the_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallybayes.selection.choose.text import beside as texts

    monkeypatch.setattr(texts, "MOST_SCORES", 100)
    assert not tb.fit(TABLES[0], target="y").settings.corrections


def in_threads(rows: int, shuffled: bool) -> dict[str, list[str]]:
    """Messages of threads of four, each with words of its own, one class after the other."""
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for y in "ab":
        for t in range(rows // 8):
            own = [f"thread{y}{t}x{i}" for i in range(4)]
            for _ in range(4):
                texts.append(" ".join([*rng.choice(FILLER, 8), *rng.choice(own, 3)]))
                labels.append(y)
    at = rng.permutation(len(texts)) if shuffled else np.arange(len(texts))
    return {"text": [texts[i] for i in at], "y": [labels[i] for i in at]}


def test_messages_of_a_thread_are_held_out_together() -> None:
    for shuffled in (False, True):
        calibrated = tb.fit(in_threads(1_600, shuffled), target="y").settings.calibrated
        assert calibrated is not None
        assert ("follow each other" in calibrated.note) is not shuffled


def test_many_rows_with_texts_are_chosen_by_some_of_them_whatever_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(400, 2, classes=3, more=True)
    assert tb.fit(data, target="y").settings.calibrated.rows == 400  # type: ignore[union-attr]
    monkeypatch.setattr("tallybayes.selection.choose.chosen._MOST_TEXTS", 300)
    monkeypatch.setattr("tallybayes.selection.choose.chosen._ENOUGH", 150)
    order = np.random.default_rng(1).permutation(400)
    one, other = (tb.fit(d, target="y") for d in (data, {n: [v[i] for i in order] for n, v in data.items()}))
    assert one.settings.calibrated is not None
    assert one.settings.calibrated.rows == 200  # not every eighth: so few would tell too little
    assert "chosen by 200 of 400 rows" in one.settings.calibrated.note
    assert one.tally.rows == 400
    assert one.settings == other.settings
    monkeypatch.setattr("tallybayes.selection.choose.chosen._ENOUGH", 300)
    assert tb.fit(data, target="y").settings.calibrated.rows == 400  # type: ignore[union-attr]
