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

pytestmark = pytest.mark.usefixtures("one_road")

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
    apart = np.array([np.bincount(fold[rows], minlength=4) for rows in equal if len(rows) > 4])
    assert (apart.max(axis=1) - apart.min(axis=1) > 1).any()  # equal rows are dealt by chance, not evenly
    other, _ = Plan(4, stratify=True, seed=4).numbers(source, "play", SCHEMA)
    assert not np.array_equal(fold, other)
    frame.loc[7, "play"] = None
    assert Plan(4, stratify=True).numbers(open_source(frame, target="play").repeatable(), "play", SCHEMA)[0][7] == -1


def test_keys_decide_the_deal_and_the_last_comes_first() -> None:
    labels, first = np.array([0, 0, 1, 0, 0, -1]), np.array([3.0, 1.0, 9.0, 2.0, 1.0, 0.0])
    assert stratified(labels, 2, keys=[first]).tolist() == [1, 0, 0, 0, 1, -1]
    assert stratified(labels, 2, keys=[np.array([0.0, 5.0, 0.0, 0.0, 4.0, 0.0]), first]).tolist() == [1, 1, 0, 0, 0, -1]


def by_subtraction(frame: pd.DataFrame) -> list[Any]:
    found = tb.cross_validate(frame, SCHEMA, settings={"families": "gaussian"}, stratify=True)
    return [found[m] for m in ("log_loss", "accuracy")]


def fitted_anew(frame: pd.DataFrame) -> list[Any]:
    found = tb.cross_validate(frame, SCHEMA, fitter=lambda rows: tb.textbook(rows, SCHEMA), stratify=True)
    return [found[m] for m in ("log_loss", "accuracy")]


def tuned(frame: pd.DataFrame) -> list[Any]:
    found = tb.tune(frame, SCHEMA, families={"wind": ["gaussian", "student"]})
    assert isinstance(found, tb.Tuned)
    return [found.after, *(f"{name} {family.describe()}" for name, family in found.plain.families.items())]


def learning(frame: pd.DataFrame) -> list[Any]:
    return [*tb.learning_curve(frame, SCHEMA, sizes=(20, 60)).held_out["log_loss"].ravel().tolist()]


def validation(frame: pd.DataFrame) -> list[Any]:
    return [*tb.validation_curve(frame, SCHEMA, values=(0.1, 1)).counted["log_loss"].tolist()]


def compared(frame: pd.DataFrame) -> list[Any]:
    found = tb.compare(frame, SCHEMA, settings=tb.Settings(), rivals=["majority class"], memory=False)
    return [found.evaluation.value("log_loss", name) for name in found.names]


@pytest.mark.parametrize("repeated", [0, 60])
@pytest.mark.parametrize("figures", [by_subtraction, fitted_anew, tuned, learning, validation, compared])
def test_shuffles_deal_the_same_folds(figures: Callable[[pd.DataFrame], list[Any]], repeated: int) -> None:
    frame = mixed(repeated).drop(columns=["w", "site"])
    found = figures(frame)
    for seed in range(2):
        again = figures(frame.sample(frac=1, random_state=seed, ignore_index=True))
        for a, b in zip(found, again, strict=True):
            assert a == (b if isinstance(b, str) else pytest.approx(b, rel=1e-12))


def coins(n: int = 1500) -> dict[str, Any]:
    """Two columns of few values, of which one is right in nine rows of ten."""
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], n)
    return {"c": np.where(rng.random(n) < 0.9, y, np.where(y == "a", "b", "a")), "k": rng.choice([*"pqr"], n), "y": y}


@pytest.mark.parametrize("how", [{"settings": tb.Settings()}, {"fitter": lambda rows: tb.textbook(rows, "y")}])
def test_a_table_of_few_different_rows_is_judged_by_models_that_have_met_them(how: dict[str, Any]) -> None:
    """There are twelve sorts of rows: a fold with all of a sort would be scored by what the other class has of it."""
    table, fresh = coins(), coins(20_000)
    found = tb.cross_validate(table, "y", folds=10, **how)
    assert found["accuracy"] == pytest.approx(np.mean(table["c"] == table["y"]))
    assert "10 folds" in found.title
    p = tb.textbook(table, "y").predict_proba(fresh)
    loss = -np.log(p[np.arange(20_000), (fresh["y"] == "b").astype(int)])
    assert found["log_loss"] == pytest.approx(loss.mean(), abs=3 * loss.std() / np.sqrt(1500))


def test_copies_stay_in_one_fold() -> None:
    """Rows written down five times are no five rows: a model that has counted one of them knows the others."""
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], 90)
    noise = {f"x{i}": np.repeat(rng.normal(size=90).round(2), 5) for i in range(5)} | {"y": np.repeat(y, 5)}
    schema, few = tb.infer(noise, "y"), coins()
    assert Plan().suited(open_source(noise, target="y").repeatable(), schema) == Plan()
    source = open_source(few, target="y").repeatable()
    assert Plan().suited(source, tb.infer(few, "y")) == Plan(stratify=True)
    assert Plan(groups="k").suited(source, tb.infer(few, "y")) == Plan(groups="k")
    kernels = tb.Settings(families=dict.fromkeys(schema.names, "kernel"))
    assert tb.cross_validate(noise, schema, settings=kernels)["accuracy"] < 0.65
    assert (tb.count(noise, schema).model(kernels).importance(noise).accuracy or 1.0) < 0.65
