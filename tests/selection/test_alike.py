"""Neighbours that belong together are noticed; sorted, factorial and shuffled tables are not.

The share of rows, beyond chance, whose most similar row stands beside them; it speaks from 0.5 on. Training parts of
the shared tables in the order of their files, and the most that sorting by any one column gives:

    vowel 0.87 (0.29)           tic_tac_toe 0.28 (0.00)   titanic3 0.21 (0.26)     auto_mpg 0.10 (0.26)
    ionosphere 0.09 (0.23)      house_votes_84 0.09 (0.03)   cmc 0.05 (0.03)       mushroom 0.03 (0.04)
    glass 0.03 (0.17)           breast_cancer_wisconsin 0.03 (0.02)                credit_approval 0.01 (0.04)
    spambase 0.00 (0.25)        nursery 0.00 (0.00)       pima_diabetes 0.00 (0.04)   soybean 0.00 (0.08)
    adult -0.01 (0.03)          letter -0.01 (0.15)       labor -0.05 (0.24)       contact_lenses -0.20 (0.12)
    balance_scale: every column is sorted by              weather_nominal: too few rows
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from shared_data import shared

import tallybayes as tb
from tallybayes.data import encode
from tallybayes.data.encode import Labelled
from tallybayes.data.sources import open_source
from tallybayes.selection.choose.alike import LikeNeighbours, likeness, runs_test
from tallybayes.selection.choose.deal import dealt, row_hashes


def read(frame: pd.DataFrame, schema: tb.Schema | None = None, target: str = "y") -> Labelled:
    (look,) = open_source(frame).batches()
    return encode.labelled(schema or tb.infer(frame, target, keep_leaks=True), look)


def found_in(frame: pd.DataFrame, target: str = "y") -> LikeNeighbours | None:
    rows = read(frame, target=target)
    return runs_test(rows, row_hashes(rows))


def plain(n: int, seed: int = 0) -> pd.DataFrame:
    """Independent rows: numbers, one of them with gaps, and categories; the class follows the first."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "near": x + 0.3 * rng.normal(size=n),
            "steps": rng.integers(0, 8, n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "y": np.where(x + rng.normal(size=n) > 0, "a", "b"),
        }
    )


def clustered(clusters: int, size: int, noise: float, seed: int = 0) -> pd.DataFrame:
    """Clusters of rows that follow each other and differ little: one speaker says the same word several times."""
    rng = np.random.default_rng(seed)
    n = clusters * size
    who = np.repeat(np.arange(clusters), size)
    x = rng.normal(size=(clusters, 5))[who] + noise * rng.normal(size=(n, 5))
    out = pd.DataFrame(x, columns=list("abcde"))
    out["sex"] = np.array(["f", "m"])[rng.integers(0, 2, clusters)][who]
    return out.assign(y=np.array(["u", "v"])[rng.integers(0, 2, clusters)][who])


@pytest.mark.parametrize(("clusters", "size", "noise"), [(60, 3, 0.2), (60, 4, 0.1), (300, 6, 0.1), (1000, 10, 0.05)])
def test_clusters_are_noticed_and_held_out_together(clusters: int, size: int, noise: float) -> None:
    frame = clustered(clusters, size, noise)
    found = found_in(frame)
    assert found is not None
    assert found.excess > 0.5
    assert "so neighbours are held out together" in str(found)
    (look,) = open_source(frame).batches()
    rows = read(frame)
    assert dealt(rows, look, 10).note == str(found)
    shuffled = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    (look,) = open_source(shuffled).batches()
    assert dealt(read(shuffled), look, 10).note is None


def test_shuffled_tables_are_silent() -> None:
    rng = np.random.default_rng(1)
    excess, said = [], 0
    for n, classes, times in [(16, 1, 400), (24, 2, 400), (40, 4, 400), (60, 2, 400), (300, 3, 400)]:
        frame = plain(n).assign(y=rng.choice(list("abcd")[:classes], n))
        schema = tb.Schema([tb.Column(c, "category" if c == "colour" else "number") for c in frame if c != "y"], "y")
        rows = read(frame, schema)
        for _ in range(times):
            at = rng.permutation(len(rows.labels))
            blocks = {name: block.take(at) for name, block in rows.blocks.items()}
            mixed = Labelled(rows.classes, rows.labels[at], None, blocks, rows.rows, 0)
            found = likeness(mixed, row_hashes(mixed))
            assert found is not None
            excess.append(found.excess)
            said += found.speaks
    assert said <= 2  # one in a thousand of 2,000
    assert abs(np.mean(excess)) < 0.01  # what chance gives is reckoned right


@pytest.mark.parametrize("n", [60, 400, 5_000])
@pytest.mark.parametrize(
    "by", [["x"], ["gaps"], ["steps"], ["colour"], ["y", "x"], ["y", "steps", "x"], ["colour", "steps", "gaps"]]
)
def test_sorted_tables_are_silent(n: int, by: list[str]) -> None:
    for ascending in (True, False):
        assert found_in(plain(n).sort_values(by, ascending=ascending).reset_index(drop=True)) is None


@pytest.mark.parametrize("columns", [["x"], ["x", "near"], ["x", "colour"]])
def test_sorted_tables_of_few_columns_are_silent(columns: list[str]) -> None:
    assert found_in(plain(500).sort_values("x")[[*columns, "y"]].reset_index(drop=True)) is None


@pytest.mark.parametrize(
    "levels",
    [
        [[1, 2, 3, 4, 5]] * 4,
        [list("abc"), list("de"), list("fghi"), list("jkl"), list("mno")],
        [[1, 2, 3], [1.0, 2.5, 10.0], list(range(40))],  # the last changes in small steps
        [list("abc"), list("defg"), list(range(30))],
        [list(range(30)), list("abc"), list("defg")],
    ],
)
@pytest.mark.parametrize("kept", [1.0, 0.8])
def test_all_combinations_one_after_the_other_are_silent(levels: list[list[Any]], kept: float) -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(list(product(*levels)), columns=[f"c{i}" for i in range(len(levels))])
    score = sum(pd.factorize(frame[c])[0] / len(each) for c, each in zip(frame, levels, strict=True))
    frame["y"] = np.where(score > np.median(score), "high", "low")
    frame = frame[rng.random(len(frame)) < kept].reset_index(drop=True)
    assert found_in(frame) is None


def test_copies_beside_each_other_are_no_neighbours() -> None:
    frame = plain(200)
    assert found_in(frame.loc[np.repeat(np.arange(200), 3)].reset_index(drop=True)) is None


def test_without_categories_and_numbers_nothing_is_said() -> None:
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(["ant", "bee", "cow", "dog"], 6)) for _ in range(100)]
    schema = tb.Schema([tb.Column("t", "text")], target="y")
    rows = read(pd.DataFrame({"t": texts, "y": ["a", "b"] * 50}), schema)
    assert likeness(rows, row_hashes(rows)) is None


def test_vectors_count_by_their_positions() -> None:
    frame = clustered(80, 4, 0.1)
    schema = tb.Schema([tb.Column("v", "vector", width=5)], target="y")
    rows = read(pd.DataFrame({"v": frame[list("abcde")].to_numpy().tolist(), "y": frame["y"]}), schema)
    assert runs_test(rows, row_hashes(rows)) is not None


@pytest.mark.filterwarnings("ignore:hAd, had are 2 classes")
def test_vowel_has_speakers_and_other_shared_tables_have_none() -> None:
    vowel = shared("vowel").drop(columns="Speaker Number")
    train = vowel[vowel.pop("split") == "train"].reset_index(drop=True)
    found = found_in(train, "target")
    assert found is not None
    assert found.excess > 0.8
    assert found_in(train.sample(frac=1, random_state=0).reset_index(drop=True), "target") is None
    for name, target in [
        ("titanic3", "survived"),
        ("glass", "target"),
        ("tic_tac_toe", "target"),
        ("nursery", "target"),
    ]:
        assert found_in(shared(name), target) is None, name
