"""Word corrections: taken where words depend on each other, refused by the gate on noise, and fitted right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

from tallybayes.data.encode import labelled
from tallybayes.data.infer import first_look, infer
from tallybayes.data.sources import open_source
from tallybayes.families.settings import Settings
from tallybayes.selection.choose.losses import posterior
from tallybayes.selection.choose.text import corrections as wc
from tallybayes.selection.choose.text.columns import ALL, TextColumn, outside
from tallybayes.selection.choose.text.words import read_texts
from tallybayes.selection.folds import count_folds

FILLER = [f"{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in "nrst"]


def repeated(rows: int, classes: int = 2, seed: int = 0) -> dict[str, list[str]]:
    """Eight words that always come together tell a little, one word apart from them tells more."""
    rng = np.random.default_rng(seed)
    echo = [[f"echo{y}{i}" for i in range(8)] for y in range(classes)]
    texts, labels = [], []
    for _ in range(rows):
        y = int(rng.integers(classes))
        loud, true = (y if rng.random() < p else int(rng.integers(classes)) for p in (0.3, 0.8))
        words = [*echo[loud], f"true{true}", *rng.choice(FILLER, 6)]
        texts.append(" ".join(rng.permutation(words)))
        labels.append(f"class {y}")
    return {"text": texts, "y": labels}


def noise(rows: int, seed: int = 0) -> dict[str, list[str]]:
    """WordEvidence that say nothing of their class."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(FILLER, 10)) for _ in range(rows)]
    return {"text": texts, "y": [str(y) for y in rng.choice(["a", "b"], rows)]}


def texts_of(data: dict[str, list[str]]) -> tuple[wc.WordEvidence, Any]:
    """What corrections are fitted to, and the folds it came from."""
    look = first_look(open_source(data, None, target="y").repeatable())
    schema = infer(look, target="y")
    rows = labelled(schema, look)
    by_row = np.arange(len(rows.labels)) % 5

    def assign(read: Any, start: int) -> Any:
        return by_row[read.rows + start]

    folds = count_folds(open_source(look), schema, assign)
    settings = read_texts(folds, schema, Settings())
    splits = np.arange(folds.count)
    columns = tuple(TextColumn.of(folds, c, settings, rows.classes, splits) for c in schema.counted)
    prior = np.log(np.bincount(rows.labels) / len(rows.labels))
    rest = np.tile(prior, (len(rows.labels), 1))
    texts = wc.WordEvidence(columns, rest, rows.labels, np.ones(len(rows.labels)), assign(rows, 0))
    return texts, (folds, settings, schema)


def losses(texts: wc.WordEvidence, scores: np.ndarray) -> np.ndarray:
    return posterior(scores, texts.labels)[0]


def both(texts: wc.WordEvidence, found: wc.WordCorrections) -> tuple[np.ndarray, np.ndarray]:
    """The losses of the rows that judge, with corrections and without."""
    judged, plain = wc.weights_alone(texts)
    assert np.array_equal(judged, found.judged)
    return losses(texts, found.scores)[judged], losses(texts, plain)[judged]


@pytest.mark.parametrize("classes", [2, 3])
def test_corrections_gain_where_words_repeat_each_other(classes: int) -> None:
    texts, _ = texts_of(repeated(1_000, classes))
    found = wc.fit_corrections(texts)
    assert found is not None
    corrected, plain = both(texts, found)
    assert wc.clearly_less(corrected, plain)
    assert plain.mean() - corrected.mean() > 0.02
    (column,) = found.columns
    assert column.added.shape == (len(column.words), classes)
    assert column.added.sum(axis=1) == pytest.approx(np.zeros(len(column.words)), abs=1e-9)


def test_noise_is_no_gain() -> None:
    for seed in range(3):
        texts, _ = texts_of(noise(400, seed))
        found = wc.fit_corrections(texts)
        assert found is not None
        assert not wc.clearly_less(*both(texts, found))


def test_with_many_classes_a_word_has_one_number() -> None:
    texts, _ = texts_of(repeated(2_000, wc.FEW_CLASSES + 1))
    found = wc.fit_corrections(texts)
    assert found is not None
    assert wc.clearly_less(*both(texts, found))
    (column,) = found.columns
    assert column.added is None
    assert column.multipliers is not None and column.multipliers.shape == column.words.shape


def test_rare_words_have_none() -> None:
    rows = 40
    alone = {"text": [f"only{i} this{i} row{i} has{i}" for i in range(rows)], "y": ["a", "b"] * (rows // 2)}
    assert wc.fit_corrections(texts_of(alone)[0]) is None


def test_word_logs_are_what_the_words_say() -> None:
    for classes in (2, wc.FEW_CLASSES + 1):
        texts, _ = texts_of(repeated(400, classes))
        (column,) = texts.columns
        every = np.arange(column.rows.shape[1])
        for k in range(2):
            logs = column.logs.table(every, outside(column.splits, k, ALL))
            own = column.fold == k
            told = wc._centred(column.parts[ALL])[own]
            assert column.rows[own] @ logs == pytest.approx(told)


def test_parts_are_what_held_out_rows_were_told_by_counts_without_the_judges() -> None:
    data = repeated(300)
    texts, (folds, settings, schema) = texts_of(data)
    (column,) = texts.columns
    held = folds.held_out(settings)
    assert column.parts[ALL] == pytest.approx(held.parts[column.name])
    split = 1  # without its rows at all: the same folds counted again
    kept = np.flatnonzero(texts.split != split)
    fewer = {name: [values[i] for i in kept.tolist()] for name, values in data.items()}
    fold = held.folds[kept]
    again = count_folds(open_source(fewer, None, target="y"), schema, lambda rows, start: fold[rows.rows + start])
    assert column.parts[split][kept] == pytest.approx(again.held_out(settings).parts[column.name])


def fit_of(classes: int) -> wc._Fit:
    texts, _ = texts_of(repeated(200, classes))
    kept = tuple(wc.frequent_words(c.rows) for c in texts.columns)
    return wc._Fit.of(texts, kept, 0)


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_slopes_are_those_of_the_loss(classes: int) -> None:
    fit, rng = fit_of(classes), np.random.default_rng(1)
    start = fit.plain(True)
    added = (rng.normal(size=(len(fit.words[0]), fit.rows[0].effects)) / 10,)
    x = wc._Numbers(start.roots, start.exponents, start.scales, rng.normal(size=classes) / 5, added)
    slopes = fit.loss_and_slopes(x, 3.0)[1]
    for name, slope in zip(("roots", "exponents", "offsets"), slopes[:3], strict=True):
        for i in range(len(slope)):
            assert slope[i] == pytest.approx(_rise(fit, x, name, i), rel=1e-4, abs=1e-8)
    for i in range(0, added[0].size, 17):
        assert slopes[3][0].ravel()[i] == pytest.approx(_rise(fit, x, "added", i), rel=1e-4, abs=1e-8)


def _rise(fit: wc._Fit, x: wc._Numbers, name: str, i: int, by: float = 1e-5) -> float:
    """The slope by two losses."""
    out = []
    for sign in (1, -1):
        value = np.array(x.added[0] if name == "added" else getattr(x, name))
        value.ravel()[i] += sign * by
        moved = {**vars(x), name: (value,) if name == "added" else value}
        out.append(fit.loss_and_slopes(wc._Numbers(**moved), 3.0)[0])
    return (out[0] - out[1]) / (2 * by)


def test_the_descent_ends_where_scipys_does() -> None:
    fit = fit_of(3)
    found = fit._descended(fit.corrected(3.0, True), 3.0, False, 1e-12)
    plain = fit.plain(True)

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        v, o, added = x[:1], x[1:4], x[4:].reshape(-1, 3)
        value, slopes = fit.loss_and_slopes(wc._Numbers(v, plain.exponents, plain.scales, o, (added,)), 3.0)
        return value, np.concatenate([slopes[0], slopes[2], slopes[3][0].ravel()])

    x0 = np.concatenate([plain.roots, plain.offsets, np.zeros(found.added[0].size)])
    other = scipy.optimize.minimize(loss, x0, jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9})
    assert fit.loss_and_slopes(found, 3.0)[0] == pytest.approx(other.fun, abs=1e-7)
    assert found.added[0].ravel() == pytest.approx(other.x[4:], abs=2e-3)


def test_the_answer_scores_as_the_fit_does() -> None:
    texts, _ = texts_of(repeated(500))
    found = wc.fit_corrections(texts)
    assert found is not None
    (column,), (words,) = texts.columns, found.columns
    table = np.zeros((column.rows.shape[1], 2))
    assert words.added is not None
    table[words.words] = words.added
    said = words.weight * wc._centred(column.parts[ALL]) + column.rows @ table
    scores = texts.rest + found.offsets + np.maximum(column.tokens, 1.0)[:, None] ** words.exponent * said
    assert losses(texts, scores).mean() < both(texts, found)[0].mean()  # fitted to these rows


def test_only_so_many_numbers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, _ = texts_of(repeated(400, 3))
    monkeypatch.setattr(wc, "MOST", 30)
    monkeypatch.setattr(wc, "LEAST", 0.0)
    found = wc.fit_corrections(texts)
    assert found is not None
    assert found.columns[0].added is not None and found.columns[0].added.size == 30
