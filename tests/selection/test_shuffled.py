"""What is measured by rows that had no part in it is the same, to the last bit, whatever the order of the rows.

Folds are dealt by what rows hold. Rows that are equal in everything are told apart by nobody: between them they have
the same figures, whichever has which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.data.sources import open_source
from tallybayes.selection.parts import Plan
from tallybayes.selection.splits import stratified

SCHEMA = tb.Schema(
    [tb.Column("sky", "category"), tb.Column("wind", "number"), tb.Column("note", "text"), tb.Column("gust", "number")],
    target="play",
)
Found = tuple[dict[int, Any], Any]  # by row, and of all rows


def mixed(repeated: int, n: int = 150, seed: int = 5) -> pd.DataFrame:
    """Categories, numbers with gaps and short texts, of which some rows come several times."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    words = np.array(["river", "water", "boat", "house", "garden", "stone", "letter"])
    frame = pd.DataFrame(
        {
            "sky": np.array(["sunny", "rainy", "grey"])[np.where(rng.random(n) < 0.6, y, rng.integers(0, 3, n))],
            "wind": np.where(rng.random(n) < 0.1, np.nan, rng.normal(y, 1.0).round(2)),
            "note": [" ".join(words[(rng.integers(0, 4, rng.integers(2, 6)) + 2 * v) % 7]) for v in y],
            "gust": rng.poisson(2 + y).astype(float),
            "play": np.array(["yes", "no", "maybe"])[y],
            "site": rng.choice(["a", "b", "c"], n),
        }
    )
    frame.loc[rng.random(n) < 0.15, "play"] = "yes"
    again = rng.integers(0, n, repeated) % 12
    frame = pd.concat([frame, frame.iloc[again]], ignore_index=True)
    return frame.assign(w=rng.choice([0.3, 1.0, 2.7], len(frame)))


def suspicious(**how: Any) -> Callable[[pd.DataFrame], Found]:
    def measured(frame: pd.DataFrame) -> Found:
        rows = frame if "weights" in how else frame.drop(columns="w")
        found = tb.suspicious(rows.drop(columns="site"), "play", **how)
        figures = zip(found.labels, found.likelier, found.probability, found.wrong, strict=True)
        each = dict(zip(found.rows.tolist(), [tuple(f) for f in figures], strict=True))
        return each, (found.flagged, found.contradicted, found.expected, repr(found.noise), found.unjudged)

    return measured


def sources(**how: Any) -> Callable[[pd.DataFrame], Found]:
    def measured(frame: pd.DataFrame) -> Found:
        rows = frame if "weights" in how else frame.drop(columns="w")
        found = tb.sources(rows, "play", by="site", **how)
        return {}, (found.table.to_pylist(), {name: tally.digest for name, tally in found.tallies.items()})

    return measured


def sets(families: Any = None, folds: int | None = None, **how: Any) -> Callable[[pd.DataFrame], Found]:
    def measured(frame: pd.DataFrame) -> Found:
        given = {} if families is None else {"settings": {"families": families}}
        model = tb.fit(frame, schema=SCHEMA, **given, **how)
        found = tb.prediction_sets(model, frame, folds=folds)
        return {}, ([(v.tolist(), n.tolist()) for v, n in found.scores], found.sizes, found.how)

    return measured


def importance(columns: tuple[str, ...], weights: str | None = None, **how: Any) -> Callable[[pd.DataFrame], Found]:
    def measured(frame: pd.DataFrame) -> Found:
        schema = tb.Schema([SCHEMA[name] for name in columns], target="play", weights=weights)
        found = tb.fit(frame, schema=schema, **how).importance(frame)
        assert "was counted from, each scored" in found.said_of
        return {}, (found.table.to_pylist(), found.log_loss, found.accuracy, found.said_of)

    return measured


ALL, FEW, NO_PAIRS = SCHEMA.names, ("sky", "gust"), {"pairs": False, "gaps": False}
WAYS = {
    "suspicious": suspicious(),
    "suspicious, quick": suspicious(effort="quick"),
    "suspicious, weights": suspicious(weights="w", effort="quick"),
    "suspicious, settings": suspicious(settings=tb.Settings()),
    "suspicious, settings and weights": suspicious(settings=tb.Settings(), weights="w"),
    "suspicious, row by row": suspicious(settings=tb.Settings(), folds="leave-one-out"),
    "sources": sources(settings=tb.Settings()),
    "sources, fitted": sources(effort="quick"),
    "sources, weights": sources(settings=tb.Settings(), weights="w"),
    "sets, folds": sets("auto", 4),
    "sets, row by row": sets({}),
    "sets, fitted": sets(None, 2, **NO_PAIRS),
    "importance": importance(tuple(ALL), settings=tb.Settings()),
    "importance of few values": importance(FEW, settings=tb.Settings()),
    "importance, weights": importance(FEW, "w", settings=tb.Settings()),
    "importance, fitted": importance(tuple(ALL), effort="quick"),
}


@pytest.mark.parametrize("repeated", [0, 60])
@pytest.mark.parametrize("way", WAYS)
def test_shuffles_give_the_same_figures(way: str, repeated: int) -> None:
    frame = mixed(repeated)
    keys = [repr(row) for row in frame.drop(columns=[] if "weights" in way else ["w"]).itertuples(index=False)]
    assert (len({*keys}) < len(keys)) == bool(repeated)
    each, whole = WAYS[way](frame)
    for seed in range(2):
        at = np.random.default_rng(seed).permutation(len(frame))
        other, same = WAYS[way](frame.iloc[at].reset_index(drop=True))
        assert same == whole
        assert len(other) == len(each)
        by_row: dict[str, list[list[Any]]] = defaultdict(lambda: [[], []])
        for row, figures in each.items():
            by_row[keys[row]][0].append(figures)
        for row, figures in other.items():
            by_row[keys[at[row]]][1].append(figures)
        assert all(sorted(left) == sorted(right) for left, right in by_row.values())


def test_classes_are_shared_out_by_what_rows_hold() -> None:
    frame = mixed(60).drop(columns=["w", "site"])
    source = open_source(frame, target="play").repeatable()
    fold, names = Plan(4, stratify=True, seed=3).numbers(source, "play", SCHEMA)
    assert names == ["0", "1", "2", "3"]
    for label in frame["play"].unique():
        count = np.bincount(fold[(frame["play"] == label).to_numpy()], minlength=4)
        assert count.max() - count.min() <= 1
    equal = frame.groupby([*frame.columns], dropna=False).indices.values()
    apart = [np.bincount(fold[rows], minlength=4) for rows in equal]
    assert max(int(n.max() - n.min()) for n in apart) <= 1  # neighbours in the deal
    other, _ = Plan(4, stratify=True, seed=4).numbers(source, "play", SCHEMA)
    assert not np.array_equal(fold, other)
    frame.loc[7, "play"] = None
    assert Plan(4, stratify=True).numbers(open_source(frame, target="play").repeatable(), "play", SCHEMA)[0][7] == -1


def test_keys_decide_the_deal_and_the_last_comes_first() -> None:
    labels, first = np.array([0, 0, 1, 0, 0, -1]), np.array([3.0, 1.0, 9.0, 2.0, 1.0, 0.0])
    assert stratified(labels, 2, keys=[first]).tolist() == [1, 0, 0, 0, 1, -1]
    assert stratified(labels, 2, keys=[np.array([0.0, 5.0, 0.0, 0.0, 4.0, 0.0]), first]).tolist() == [1, 1, 0, 0, 0, -1]
