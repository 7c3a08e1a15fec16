"""Counted weights: a term that is a function of the tally alone, so that it merges, and forgets to the bit."""

from __future__ import annotations

import json
from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from command_line import PYTHON, run
from strategies import ALL
from threadpoolctl import threadpool_limits

import tallybayes as tb
from tallybayes.data.pairs import stretch_names
from tallybayes.model import counted
from tallybayes.selection.leave_one_out import leave_one_out
from tallybayes.tally.spark import executor, grouped
from tallybayes.tally.table import from_ipc
from tallybayes.tally.together import FOLDS, cell_counts, together, without_together

WORDS = ("sun", "rain", "naïve", '"q"', "a, b", "0")


def drawn(rng: np.random.Generator, rows: int, gaps: float = 0.1) -> pa.Table:
    """Categories and numbers that depend on a class and on each other, with values missing and a rare class."""
    k = int(rng.integers(2, 5))
    y = np.minimum(rng.geometric(0.45, rows) - 1, k - 1)
    base = rng.integers(0, 4, rows)
    out = {"y": [f"class {c}" for c in y.tolist()]}
    for j in range(int(rng.integers(2, 6))):
        value = np.where(rng.random(rows) < 0.6, base + j, rng.integers(0, 5, rows)) + y * (rng.random() < 0.5)
        gone = rng.random(rows) < gaps
        if rng.random() < 0.5:
            texts = [WORDS[v % len(WORDS)] for v in value.tolist()]
            out[f"c{j}"] = pa.array(texts, mask=gone)
        else:
            out[f"n{j}"] = pa.array(value + rng.normal(0, 0.5, rows).round(int(rng.integers(0, 3))), mask=gone)
    return pa.table(out)


def same(one: tb.Model, other: tb.Model, rows: pa.Table) -> bool:
    """Tally, coefficients and answers, to the bit."""
    return (
        one.tally == other.tally
        and one.settings.corrections == other.settings.corrections
        and np.array_equal(one.log_joint(rows), other.log_joint(rows))
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return drawn(np.random.default_rng(3), 260)


@pytest.fixture(scope="module")
def model(table: pa.Table) -> tb.Model:
    out = tb.fit(table, "y", calibrate="counted")
    assert out.settings.corrections and together(out.schema) is not None
    return out


# ---- what it promises


@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")
def test_forgetting_gives_the_tally_and_the_coefficients_of_never_having_seen_the_rows():
    taken = 0
    for seed in range(1_000 if ALL else 6):
        rng = np.random.default_rng(seed)
        rows = drawn(rng, int(rng.integers(30, 160)))
        model = tb.fit(rows, "y", calibrate="counted")
        gone = rng.random(len(rows)) < rng.choice([0.02, 0.2, 0.6])
        gone[int(rng.integers(len(rows)))] = True
        some, rest = rows.filter(pa.array(gone)), rows.filter(pa.array(~gone))
        less = model.forget(some)
        again = tb.count(rest, schema=less.schema).model(model.settings)  # without points that only `some` had
        assert same(less, again, rows), seed
        assert less.tally.labels == (model.tally - tb.count(some, schema=model.schema)).labels, seed
        back = less.update(some, new_classes="allow")
        assert back.tally.labels == model.tally.labels, seed
        assert back.settings.corrections == model.settings.corrections, seed
        taken += bool(less.settings.corrections)
    assert taken > seed / 3  # in many cases there was something to be made anew


def test_one_row_as_a_dict_is_forgotten_alike(model, table):
    row = table.slice(17, 1).to_pylist()[0]
    rest = pa.concat_tables([table.slice(0, 17), table.slice(18)])
    assert same(model.forget(row), tb.count(rest, schema=model.schema).model(model.settings), table)


def test_parts_merge_and_any_order_gives_the_same_bits(model, table):
    parts = [table.take(np.arange(i, len(table), 3)) for i in range(3)]
    whole = tb.count(parts[2], schema=model.schema)
    for part in parts[:2]:
        whole = tb.count(part, schema=model.schema) + whole
    assert whole.digest == model.tally.digest
    assert same(whole.model(), model, table)


def test_databases_and_partitions_of_a_cluster_count_the_same(model, table):
    schema = model.schema
    with duckdb.connect() as connection:
        connection.register("rows", table)
        assert tb.count(connection.sql("SELECT * FROM rows"), schema=schema) == model.tally
    names = tuple(table.column_names)
    count = executor.CountPartition(json.dumps(schema.to_dict()), names)
    halves = [table.slice(0, 100), table.slice(100)]
    parts = [p for half in halves for batch in count(half.to_batches()) for p in batch.to_pylist()]
    assert [p["problem"] for p in parts] == [None, None]
    assert from_ipc(parts[0]["tally"]) + from_ipc(parts[1]["tally"]) == model.tally
    texts = tb.Schema([c for c in schema.columns if c.kind != "number"], target="y")
    assert not grouped.groupable(texts, {"y": "string"})  # counts by value alone would not do


def test_the_number_of_threads_changes_no_bit(model, table):
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(tb.count(table, schema=model.schema).model())
    assert same(*found, table)


# ---- the counts, and what is made of them


def test_cells_are_counted_as_by_hand(model, table):
    both = together(model.schema)
    counts = cell_counts(model.tally.labels, len(model.tally.classes), 10_000)
    rows = [set() for _ in range(len(table))]
    for i, side in enumerate(both.of):
        for r, value in enumerate(table[side.source].to_pylist()):
            if value is not None:
                cell = stretch_names(side.cuts)[sum(c <= value for c in side.cuts)] if side.cuts else value
                rows[r].add((i, cell))
    labels = table["y"].to_pylist()
    at = {cell: k for k, cell in enumerate(counts.cells)}
    for y, name in enumerate(model.tally.classes):
        own = [row for row, label in zip(rows, labels, strict=True) if label == name]
        assert counts.rows.sum(axis=0)[y] == len(own)
        for cell, k in at.items():
            assert counts.n.sum(axis=0)[y, k] == sum(cell in row for row in own)
        for (a, i), (b, j) in combinations(at.items(), 2):
            assert counts.pairs.sum(axis=0)[y, i, j] == sum(a in row and b in row for row in own)
    assert np.array_equal(counts.pairs, counts.pairs.transpose(0, 1, 3, 2))
    assert (counts.rows.sum(axis=1) > 0).sum() == FOLDS


def test_the_coefficients_are_those_of_the_rows(model, table):
    """The discriminant of one-hot rows, worked out from the rows themselves."""
    rng = np.random.default_rng(0)
    x = (rng.random((90, 7)) < 0.4).astype(float)
    y = rng.integers(0, 3, 90)
    rows = np.bincount(y).astype(float)
    n = np.stack([x[y == c].sum(axis=0) for c in range(3)])
    beta, middle = counted.discriminant(rows, n, x.T @ x, 0.1)
    m, mean = x.mean(axis=0), np.stack([x[y == c].mean(axis=0) for c in range(3)])
    apart = x - mean[y]
    pulled = apart.T @ apart / 90 + 0.1 * np.diag(x.var(axis=0))
    assert np.allclose(beta, np.linalg.solve(pulled, (mean - m).T).T, atol=1e-6)
    assert np.allclose(middle, (mean + m) / 2)


def test_the_counts_of_a_fold_say_how_its_rows_would_score():
    """Mean and variance of held-out scores by N and G alone, and by scoring the rows."""
    rng = np.random.default_rng(1)
    x = (rng.random((200, 6)) < 0.5).astype(float)
    y, fold = rng.integers(0, 2, 200), rng.integers(0, FOLDS, 200)
    n, pairs, rows = np.zeros((FOLDS, 2, 6)), np.zeros((FOLDS, 2, 6, 6)), np.zeros((FOLDS, 2))
    for f in range(FOLDS):
        for c in range(2):
            own = x[(fold == f) & (y == c)]
            n[f, c], pairs[f, c], rows[f, c] = own.sum(axis=0), own.T @ own, len(own)
    counts = counted.CellCounts([(i, "1") for i in range(6)], rows, n, pairs)
    mean, spread = counted.held_out_moments(counts, 0.3)
    said = np.zeros((200, 2, 2))
    for f in range(FOLDS):
        rest, own = fold != f, fold == f
        left = np.stack([x[rest & (y == c)].sum(axis=0) for c in range(2)])
        beta, middle = counted.discriminant(np.bincount(y[rest]).astype(float), left, x[rest].T @ x[rest], 0.3)
        said[own, 0] = x[own] @ counted.log_ratios(left, np.arange(6)).T
        said[own, 1] = x[own] @ beta.T - (beta * middle).sum(axis=1)
    shared = sum(np.cov(said[y == c].reshape(-1, 4).T, bias=True) * (y == c).sum() for c in range(2)) / 198
    for c in range(2):
        own = said[y == c].reshape(-1, 4)
        assert np.allclose(mean[c].ravel(), own.mean(axis=0))
        about = np.cov(own.T, bias=True) * len(own) + counted.SHARED * shared
        assert np.allclose(spread[c].reshape(4, 4), about / (len(own) - 1 + counted.SHARED) * (1 + 1 / len(own)))


# ---- how few rows are believed


def test_below_the_fewest_rows_the_counts_are_believed_as_they_are(table):
    few = table.slice(0, counted.FEWEST - 1)
    model = tb.fit(few, "y", calibrate="counted")
    assert not model.settings.corrections
    assert np.array_equal(model.log_joint(few), tb.fit(few, "y", calibrate=False).log_joint(few))
    assert "believed as they are" in repr(model)


def test_labels_that_no_column_tells_are_not_believed_to_be_told():
    worse = []
    for seed in range(60 if ALL else 6):
        rng = np.random.default_rng(seed)
        rows = {f"c{j}": [WORDS[v] for v in rng.integers(0, 4, 560)] for j in range(8)}
        rows["y"] = rng.choice(["a", "b"], 560).tolist()
        first, rest = ({n: v[s] for n, v in rows.items()} for s in (slice(0, 60), slice(60, None)))
        own = [0 if v == "a" else 1 for v in rest["y"]]
        losses = [
            -tb.fit(first, "y", calibrate=how).predict_log_proba(rest)[np.arange(500), own].mean()
            for how in (False, "counted")
        ]
        worse.append(losses[1] - losses[0])
    assert np.mean(worse) < 0 and max(worse) < 0.05


# ---- as any other model


def test_it_is_saved_sealed_exported_and_explained_like_any_other(model, table, tmp_path):
    model.save(tmp_path / "m.tb.parquet")
    assert same(tb.load(tmp_path / "m.tb.parquet"), model, table)
    model.export(tmp_path / "m.sealed.parquet", "sealed")
    p = model.predict_proba(table)
    assert np.allclose(tb.load_sealed(tmp_path / "m.sealed.parquet").predict_proba(table), p, atol=1e-12)
    rows = table.append_column("id", pa.array(range(len(table))))
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        found = connection.sql(str(model.to_sql("rows", "duckdb", keep=["id"]))).fetchall()
    assert np.abs(np.array([r[2:] for r in sorted(found)], dtype=float) - p).max() < 1e-9
    for number in (0, 5):
        lines = model.explain(table.slice(number, 1)).contributions
        assert np.allclose(sum(line.parts for line in lines), model.log_joint(table)[number])
    assert "cell pair" in str(model.reveals()) and "anew whenever rows come or go" in repr(model)


def test_folds_and_rows_left_out_are_scored_by_weights_of_the_others(model, table):
    small = table.slice(0, 34)
    tally = tb.count(small, schema=model.schema)
    left = leave_one_out(tally, small).proba()
    for row in (0, 31):  # of 33 rows, above the fewest
        alone = tally.forget(small.slice(row, 1)).model()
        assert np.allclose(left[row], alone.predict_proba(small.slice(row, 1))[0], atol=1e-12)
    found = tb.cross_validate(table, schema=model.schema, settings=tb.Settings(), folds=4)
    plain = tb.cross_validate(table, schema=without_together(model.schema), settings=tb.Settings(), folds=4)
    assert found["log_loss"] < plain["log_loss"]


def test_what_rows_fit_and_what_counts_alone_say_know_nothing_of_the_term(model, table):
    plain = tb.fit(table, schema=without_together(model.schema), calibrate=False)
    assert np.array_equal(model.counted.log_joint(table), plain.log_joint(table))
    assert len(model.generative.sample(3, seed=0)) == 3
    fitted = tb.fit(table, schema=model.schema)
    assert together(fitted.schema) is None
    assert fitted.settings == tb.fit(table, schema=without_together(model.schema)).settings


def test_what_cannot_be_is_refused(model, table):
    with pytest.raises(tb.SettingsError, match="worked out of its counts"):
        model.recalibrate(table)
    with pytest.raises(tb.SettingsError, match="pairs"):
        tb.fit(table, "y", calibrate="counted", pairs=True)
    with pytest.raises(tb.SettingsError, match="groups or order"):
        tb.fit(table, "y", calibrate="counted", order=True)
    with pytest.raises(tb.SchemaError, match="only one of them counts"):
        model.tally + tb.count(table, schema=without_together(model.schema))
    with pytest.warns(tb.TallybayesWarning, match="needs two columns"):
        tb.fit(table.select(["y", table.column_names[1]]), "y", calibrate="counted")
    with pytest.raises(tb.SchemaError, match="cells together name two"):
        tb.Column("all", "together", of=(tb.PairColumn("a"),))


def test_the_command_line_fits_them_and_forgets(table, tmp_path):
    import pyarrow.csv

    data, some, out = tmp_path / "rows.csv", tmp_path / "some.csv", tmp_path / "m.tb.parquet"
    pyarrow.csv.write_csv(table, data)
    pyarrow.csv.write_csv(table.slice(0, 3), some)
    done = run("fit", data, "--target", "y", "--counted-weights", "--folds", 0, "-o", out)
    assert done.returncode == 0 and "weights: worked out of counts" in done.out
    assert run("forget", out, some, "-o", out).returncode == 0
    kept = tb.load(out)
    assert same(kept, tb.count(table.slice(3), schema=kept.schema).model(kept.settings), table)
    refused = run("fit", data, "--target", "y", "--counted-weights", "--no-calibrate")
    assert refused.returncode == 2 and "--no-calibrate with --counted-weights" in refused.err
    refused = run("recalibrate", out, data, "-o", out)
    assert refused.returncode != 0 and not PYTHON.search(refused.err), refused.err
