"""Suspicious labels and sources of rows: what is left out is left out exactly, and what is wrong is found."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow as pa
import pytest
from command_line import run
from strategies import ALL

import tallybayes as tb
from tallybayes.selection.audit.noise import LabelNoise, common_rate

NAIVE = tb.Settings(families={"x": "gaussian"})
ALONE = {"settings": NAIVE, "folds": "leave-one-out"}


def table(n: int, seed: int, wrong: float = 0.05):
    """Rows drawn from a naive Bayes model, some labels changed; and which."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    rows = {f"c{j}": [f"v{v}" for v in np.where(rng.random(n) < 0.7, y, rng.integers(0, 4, n))] for j in range(5)}
    changed = rng.random(n) < wrong
    rows["x"] = rng.normal(2.0 * y, 1.0).tolist()
    rows["label"] = [f"k{v}" for v in (y + changed * rng.integers(1, 3, n)) % 3]
    return rows, changed


def test_each_row_is_scored_by_the_tally_without_it():
    rows, _ = table(60, 1)
    found = tb.suspicious(rows, "label", **ALONE)
    tally = tb.count(rows, "label")
    for place in (0, 7, 59):
        row = {n: [v[found.rows[place]]] for n, v in rows.items()}
        model = tally.forget(row).model(NAIVE)
        p = model.predict_proba(row)[0]
        own = model.class_number(row["label"][0])
        assert found.probability[place] == pytest.approx(p[own], rel=1e-9)
        assert (
            found.classes[found.likelier[place]] == model.classes[int(np.argmax(np.where(np.arange(3) == own, -1, p)))]
        )
    assert (np.diff(found.probability) >= 0).all()


def test_folds_by_subtraction_are_models_of_the_other_rows():
    rows, _ = table(90, 2)
    rows["part"] = [f"{i % 3}" for i in range(90)]
    found = tb.suspicious(rows, "label", settings=NAIVE, by="part")
    schema = tb.infer({n: v for n, v in rows.items() if n != "part"}, "label")
    at = int(found.rows[0])
    rest = {
        n: [v for v, p in zip(column, rows["part"], strict=True) if p != rows["part"][at]] for n, column in rows.items()
    }
    model = tb.count(rest, schema=schema).model(NAIVE)
    row = {n: [v[at]] for n, v in rows.items()}
    assert found.probability[0] == pytest.approx(model.predict_proba(row)[0, model.class_number(rows["label"][at])])
    assert np.allclose(found.explain(at).probabilities, model.explain(row).probabilities)


def test_changed_labels_come_first_and_are_flagged():
    rows, changed = table(1500, 3)
    found = tb.suspicious(rows, "label", **ALONE)
    top = found.rows[: changed.sum()]
    assert changed[top].mean() > 0.8
    assert found.flagged > 0.4 * changed.sum() and changed[found.flagged_rows].mean() > 0.85
    assert found.expected == pytest.approx(changed.sum(), rel=0.3)
    assert found.noise.p_value < 1e-6
    assert found.by_class()["flagged"].to_numpy().sum() == found.flagged
    assert f"{found.flagged} of 1,500 labels are contradicted" in str(found)


def test_right_labels_are_not_flagged():
    rows, _ = table(1500, 4, wrong=0.0)
    found = tb.suspicious(rows, "label", settings=NAIVE)
    assert found.flagged == 0 and "of 1,500 labels" in str(found)


def test_the_reviewed_rows_go_and_come_back_exactly():
    rows, _ = table(400, 5)
    before = tb.count(rows, "label")
    review = tb.suspicious(rows, "label", settings=NAIVE).review(10)
    assert review.num_rows == 10
    right = review.set_column(review.column_names.index("label"), "label", review["likelier"])
    after = before.forget(review).update(right)
    labels = list(rows["label"])
    for row, label in zip(review["row"].to_pylist(), review["likelier"].to_pylist(), strict=True):
        labels[row] = label
    assert after == tb.count({**rows, "label": labels}, schema=before.schema)
    assert "label (audit)" in review.column_names and review["label (audit)"].to_pylist() == review["label"].to_pylist()
    assert None not in review["because 1"].to_pylist() and min(review["log-odds 1"].to_pylist()) > 0


def test_a_class_of_one_row_is_not_judged():
    rows, _ = table(100, 6)
    rows["label"][3] = "alone"
    found = tb.suspicious(rows, "label", **ALONE)
    assert found.unjudged == 1 and 3 not in found.rows
    with pytest.raises(tb.DataError, match="row 3 that was judged"):
        found.explain(3)
    with pytest.raises(tb.DataError, match="no two classes"):
        tb.suspicious({"a": ["x", "y"] * 9, "b": ["k"] * 18}, "b", settings={})


def numbers(n: int, seed: int):
    """Two overlapping classes, two numbers, five folds."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    rows = {f"x{j}": rng.normal(0.8 * y, 1.0).tolist() for j in range(2)}
    return rows | {"part": [f"{i % 5}" for i in range(n)], "label": [f"k{v}" for v in y]}


@pytest.mark.parametrize("effort", ["quick", "default"])
def test_a_label_has_no_say_in_what_its_own_row_is_expected_to_be(effort):
    rows = numbers(300, 8)
    before, off = tb.suspicious(rows, "label", by="part", effort=effort), []
    for place in range(10, 300, 30):
        at = int(before.rows[place])
        labels = [*rows["label"][:at], {"k0": "k1", "k1": "k0"}[rows["label"][at]], *rows["label"][at + 1 :]]
        after = tb.suspicious(rows | {"label": labels}, "label", by="part", effort=effort)
        off.append(abs(before.probability[place] - (1 - after.probability[[*after.rows].index(at)])))
    # but for which of a few strengths is taken, which all rows decide together
    assert np.count_nonzero(np.array(off) < 1e-9) >= 7 and max(off) < 0.1


@pytest.mark.parametrize("effort", ["quick", "default", "thorough"])
def test_the_model_that_explains_is_the_one_that_scored(effort):
    rng = np.random.default_rng(9)
    y = rng.integers(0, 3, 300)
    words = np.array(["ant", "bee", "cat", "dog", "elk", "fox"])
    rows = {
        "text": [" ".join(rng.choice(words, 5, p=np.roll([0.4, 0.2, 0.1, 0.1, 0.1, 0.1], 2 * v))) for v in y],
        "c": [f"v{v}" for v in np.where(rng.random(300) < 0.5, y, rng.integers(0, 4, 300))],
        "label": [f"k{v}" for v in y],
    }
    found = tb.suspicious(rows, "label", effort=effort, folds=5)
    for place in (0, 20, 299):
        said = found.explain(int(found.rows[place]))
        own = [*said.classes].index(found.classes[found.labels[place]])
        assert said.probabilities[own] == pytest.approx(found.probability[place], abs=0.01)
    assert found.review(5).num_rows == 5 and "weights fitted without it" in str(found)


def test_folds_that_cannot_be_nested_and_classes_of_one_fold_are_scored_all_the_same():
    rows = numbers(120, 10)
    two = rows | {"part": [f"{i % 2}" for i in range(120)]}
    assert len(tb.suspicious(two, "label", by="part").rows) == 120
    alone = rows | {"label": [*rows["label"][:-1], "alone"]}
    found = tb.suspicious(alone, "label")
    assert found.unjudged == 1 and len(found.rows) == 119
    weighed = tb.suspicious(rows | {"w": [1.0, 2.0] * 60}, "label", weights="w")
    unlabelled = tb.suspicious(rows | {"label": [None, *rows["label"][1:]]}, "label")
    assert len(weighed.rows) == 120 and len(unlabelled.rows) == 119 and 0 not in unlabelled.rows


def test_hard_rows_of_a_small_table_are_not_called_wrong():
    flagged = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a, b = rng.integers(0, 2, (2, 120))
        y = np.where(rng.random(120) < 0.9, a ^ b, rng.integers(0, 2, 120))
        rows = {"a": a.astype(str), "b": b.astype(str), "x": rng.standard_t(2, 120) + y, "label": y.astype(str)}
        flagged += tb.suspicious(rows, "label").flagged > 0
    assert flagged <= 4  # of 2 that are expected at 90%


def test_rates_are_the_likeliest_and_tell_classes_apart():
    rng = np.random.default_rng(7)
    n = 20_000
    p = rng.dirichlet([0.1, 0.1], n)
    y = (rng.random(n) < p[:, 1]).astype(np.int64)
    flip = rng.random(n) < np.where(y == 1, 0.2, 0.02)
    labels = np.where(flip, 1 - y, y)
    with np.errstate(divide="ignore"):
        noise = LabelNoise.of(np.log(p), labels)
    assert noise.rates == pytest.approx([0.02, 0.2], abs=0.03)
    with np.errstate(divide="ignore"):
        wrong = noise.wrong(np.log(p), labels)
    assert wrong.sum() == pytest.approx(flip.sum(), rel=0.25)
    right = np.clip(p[np.arange(n), labels], 1e-9, 1)
    rate, best = common_rate(right, np.ones(n), 2)
    grid = [np.log((1 - e) * right + e * (1 - right)).sum() for e in np.linspace(0.0, 0.5, 501)]
    assert rate == pytest.approx(np.argmax(grid) / 1000, abs=2e-3) and best == pytest.approx(max(grid), abs=0.1)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("tiny", [[], [1e-12], [1e-12, 1e-3], [1e-13] * 40, [1e-12, 1e-9, 1e-6, 1e-3]])
def test_the_common_rate_is_the_likeliest_beside_labels_of_hardly_any_probability(tiny, classes):
    rng = np.random.default_rng(len(tiny))
    right = np.concatenate([tiny, rng.beta(6, 1, 100)])
    w = rng.integers(1, 4, len(right)).astype(float)
    rate, best = common_rate(right, w, classes)
    most = (classes - 1) / classes
    grid = np.unique([0.0, *np.geomspace(1e-15, most, 2000), *np.linspace(0, most, 2000)])
    wrong = (1 - right) / (classes - 1)
    likely = np.array([w @ np.log((1 - e) * right + e * wrong) for e in grid])
    near = grid[likely >= likely.max() - 1e-3]
    assert best >= likely.max() - 1e-9 and near.min() <= rate <= near.max()
    own = (1 - rate) * right + rate * wrong
    assert best == pytest.approx(w @ np.log(own), abs=1e-9)
    assert not tiny or rate > 0.003


def by_site(n: int, seed: int, bad: str = "s3", share: float = 0.3):
    rows, _ = table(n, seed, wrong=0.0)
    rng = np.random.default_rng(seed + 1000)
    site = np.array([f"s{i}" for i in rng.integers(0, 10, n)])
    changed = (site == bad) & (rng.random(n) < share)
    labels = [f"k{(int(v[1]) + 1) % 3}" if c else v for v, c in zip(rows["label"], changed, strict=True)]
    return {**rows, "label": labels, "site": site.tolist()}


def test_models_without_a_source_are_those_of_counting_again():
    rows = by_site(600, 8)
    found = tb.sources(rows, "label", by="site", settings=NAIVE)
    for source in ("s3", "s7"):
        kept = [i for i, s in enumerate(rows["site"]) if s != source]
        again = tb.count({n: [v[i] for i in kept] for n, v in rows.items()}, schema=found.model.tally.schema)
        less = found.without(source)
        assert less.tally == again and less.tally.digest == again.digest
        assert np.array_equal(less.predict_proba(rows), again.model(NAIVE).predict_proba(rows))
    assert sum(t.rows for t in found.tallies.values()) == 600 == found.model.tally.rows
    assert sum(found.tallies.values()) == found.model.tally


def test_gain_and_disagreement_are_those_of_fitting_again():
    rows = by_site(200, 9)
    found = tb.sources(rows, "label", by="site", settings=NAIVE, folds=2, seed=4)
    from tallybayes.data.sources import open_source
    from tallybayes.selection.parts import Plan

    counted = found.model.tally.schema.counted
    told = tb.Schema([*counted, tb.Column("site", "category")], target="label")  # which rows are told apart by
    fold, _ = Plan(2, stratify=True, seed=4).numbers(open_source(rows, target="label"), "label", told)
    site, loss = np.array(rows["site"]), {}
    for left in (None, "s3"):
        loss[left] = np.zeros(200)
        for k in (0, 1):
            train, asked = np.flatnonzero((fold != k) & (site != left)), np.flatnonzero(fold == k)
            take = lambda at: {n: [v[i] for i in at] for n, v in rows.items()}  # noqa: E731
            model = tb.count(take(train), schema=found.model.tally.schema).model(NAIVE)
            p = model.predict_proba(take(asked))
            loss[left][asked] = -np.log(p[np.arange(len(asked)), [model.class_number(rows["label"][i]) for i in asked]])
    others = site != "s3"
    assert found["s3"].gain[0] == pytest.approx((loss["s3"] - loss[None])[others].mean(), rel=1e-6, abs=1e-9)


def test_a_poisoned_source_is_ranked_first_and_random_ones_are_not_suspect():
    found = tb.sources(by_site(1500, 10), "label", by="site", settings=NAIVE)
    assert found.suspects == ["s3"] == [found.each[0].source]
    assert found["s3"].wrong == pytest.approx(0.3, abs=0.1) and found["s3"].disagreement[1] > 0
    assert "the others contradict s3" in str(found)
    assert tb.sources(by_site(1500, 11, share=0.0), "label", by="site", settings=NAIVE).suspects == []


@pytest.mark.skipif(not ALL, reason="a campaign")
def test_a_poisoned_source_is_first_in_every_run_and_alarms_keep_their_level():
    alarms = 0
    for seed in range(100):
        assert tb.sources(by_site(1500, seed), "label", by="site", settings=NAIVE).each[0].source == "s3"
        alarms += bool(tb.sources(by_site(1500, seed, share=0.0), "label", by="site", settings=NAIVE).suspects)
    assert alarms <= 11  # of 5% on average; 11 or more have a chance of 1%


@pytest.mark.skipif(not ALL, reason="a campaign")
def test_flags_keep_their_level():
    some = [tb.suspicious(table(800, seed, 0.0)[0], "label", settings=NAIVE).flagged > 0 for seed in range(100)]
    assert sum(some) <= 18  # of at most 10%
    shares = []
    for seed in range(100):
        rows, changed = table(800, seed)
        found = tb.suspicious(rows, "label", settings=NAIVE)
        shares.append(1 - changed[found.flagged_rows].mean() if found.flagged else 0.0)
    assert np.mean(shares) <= 0.12


def test_a_source_is_forgotten_in_python_and_on_the_command_line(tmp_path):
    rows = by_site(300, 12)
    path, model, review = (str(tmp_path / n) for n in ("rows.csv", "m.tb.parquet", "review.csv"))
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([list(rows), *zip(*rows.values(), strict=True)])
    assert run("fit", path, "--target", "label", "--no-calibrate", "--pairs", "no", "-o", model).returncode == 0
    whole = tb.load(model)
    less = tb.forget_source(whole, path, "s3", by="site")
    assert less.tally.rows == sum(s != "s3" for s in rows["site"])
    done = run("forget", model, path, "--by", "site", "--source", "s3")
    assert done.returncode == 0 and tb.load(model).tally == less.tally
    done = run("forget", model, path, "--by", "site", "--source", "s33")
    assert done.returncode == 2 and "did you mean 's3'" in done.err
    assert "go together" in run("forget", model, path, "--by", "site").err
    done = run("suspicious", path, "--target", "label", "--textbook", "--top", "7", "-o", review)
    assert done.returncode == 0 and "7 rows to review" in done.out
    with open(review, encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 7 and lines[0]["where"].endswith(f"line {int(lines[0]['row']) + 2}")
    done = run("sources", path, "--target", "label", "--by", "site", "--textbook", "--json")
    assert done.returncode == 0 and '"suspects": [\n  "s3"' in done.out
    assert "say which column holds the labels: --target" in run("suspicious", path).err


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda r: tb.suspicious(r, "label", confidence=1), "confidence=1"),
        (lambda r: tb.suspicious(r, "label", folds=1), "folds=1"),
        (lambda r: tb.suspicious(r, "label", folds="leave-one-out"), "needs settings"),
        (lambda r: tb.sources(r, "label"), r'by="site"'),
        (lambda r: tb.sources(r, "label", by="label"), "the column to predict"),
        (lambda r: tb.sources(r, "label", by="sites"), "did you mean 'site'"),
        (lambda r: tb.sources({**r, "site": ["a"] * 90}, "label", by="site"), "the same value"),
        (lambda r: tb.sources(r, "label", by="site", settings=NAIVE)["s99"], "no source 's99'"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_way_out(call, said):
    with pytest.raises(tb.TallybayesError, match=said) as error:
        call(by_site(90, 13))
    assert error.value.hint


def test_any_table_can_be_audited():
    """Arrow tables, matrices with labels beside, weights, and default settings chosen by the rows."""
    rows, _ = table(120, 14)
    plain = tb.suspicious(rows, "label", settings=NAIVE)
    assert tb.suspicious(pa.table(rows), "label", settings=NAIVE).rows.tolist() == plain.rows.tolist()
    weighted = tb.suspicious({**rows, "w": [2.0] * 120}, "label", weights="w", settings=NAIVE)
    assert len(weighted.rows) == 120
    certain = tb.suspicious({"a": ["x", "y"] * 30, "b": ["k", "l"] * 30}, "b", kinds={"a": "category"}, settings={})
    assert certain.flagged == certain.contradicted == 0 and "None of 60 labels is contradicted" in str(certain)
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(x[:, 0] > 0, "up", "down")
    found = tb.suspicious(x, y)
    assert len(found.rows) == 60 and found.review(2).num_rows == 2


def test_the_order_of_the_rows_says_nothing_about_their_labels() -> None:
    rng = np.random.default_rng(5)
    log_p = np.log(rng.dirichlet([1.0, 1.0, 1.0], 400))
    labels = np.array([rng.choice(3, p=np.exp(p)) for p in log_p])
    labels[:40] = rng.integers(0, 3, 40)
    found = LabelNoise.of(log_p, labels)
    assert found.p_value < 1  # so that halves matter
    for _ in range(5):
        order = rng.permutation(len(labels))
        again = LabelNoise.of(log_p[order], labels[order])
        assert (again.p_value, again.common, again.scale) == (found.p_value, found.common, found.scale)
        assert np.array_equal(again.rates, found.rates)


def test_a_p_of_one_is_not_printed_behind_the_sentence_that_says_it() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = np.where(rng.random(400) < 1 / (1 + np.exp(-3 * x)), "p", "n")
    found = tb.suspicious({"x": x, "y": y.tolist()}, "y", settings={"families": "gaussian"})
    assert found.flagged == 0 and found.noise.p_value > 0.99
    assert found.summary.endswith("whether wrong or only hard cannot be told from the counts.")
