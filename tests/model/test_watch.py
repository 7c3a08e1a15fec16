"""A watched model answers as before, counts what it is asked, and tests drift without labels."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.model.watching import watch as module

RNG = np.random.default_rng(20)


def rows(n, *, moved=0.0, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    age = np.clip(np.round(rng.normal(40 + 15 * y, 12) + moved), 0, 90)
    size = rng.normal(0.5 * y, 1.0)
    job = np.where(rng.random(n) < 0.3 + 0.4 * y, "clerk", rng.choice(["cook", "guard"], n))
    return {"age": age, "size": size, "job": job, "y": np.where(y, "yes", "no")}


def without(table):
    return {name: values for name, values in table.items() if name != "y"}


@pytest.fixture(scope="module")
def model():
    return tb.fit(rows(600), target="y", pairs=False, effort="quick")


def as_rows(table):
    return [dict(zip(table, (v.item() for v in each), strict=True)) for each in zip(*table.values(), strict=True)]


ODD = [
    {"age": 9999.0, "size": 0.0, "job": "cook"},
    {"age": -5.0, "size": None, "job": "astronaut"},
    {"age": None, "size": 0.2, "job": "clerk"},
    {"age": 33.0, "size": 0.1, "job": None},
]


# ---- answers and counters


def test_answers_are_those_of_the_model_one_row_and_many(model):
    watch, fresh = model.watch(), without(rows(300, seed=1))
    each = [*as_rows(fresh), *ODD]
    assert watch.predict(fresh).tolist() == model.predict(fresh).tolist()
    assert np.array_equal(watch.predict_proba(each), model.predict_proba(each))
    for row in each[-20:]:
        assert watch.predict(row).tolist() == model.predict(row).tolist()
        assert np.array_equal(watch.predict_log_proba(row), model.predict_log_proba(row))
    costs = {("no", "yes"): 5}
    assert watch.predict(each, costs=costs).tolist() == model.predict(each, costs=costs).tolist()
    assert watch.predict(each, unsure_below=0.9).tolist() == model.predict(each, unsure_below=0.9).tolist()
    found = watch.counters
    assert found.rows == 300 + 304 + 40 + 2 * 304 == sum(found.answers.values())


@pytest.mark.parametrize("how", ["together", "one by one", "seen"])
def test_what_was_never_learnt_is_counted_by_column(model, how):
    watch = model.watch()
    if how == "one by one":
        for row in ODD:
            watch.predict(row)
    else:
        (watch.predict if how == "together" else watch.see)(ODD)
    columns = watch.counters.columns
    assert (columns["age"].missing, columns["age"].below, columns["age"].above) == (1, 1, 1)
    assert columns["size"].missing == 1 and columns["job"].missing == 1 and columns["job"].unseen == 1
    report = watch.report()
    assert report.outside().startswith("age 2 beyond ") and report.outside().endswith("job 1 never seen")
    assert "Watch: 4 rows" in repr(watch) and {line["column"] for line in report.table} == {"age", "size", "job"}


def test_odd_cells_and_refused_calls_are_counted():
    numbers = [f"{x:.2f}" for x in RNG.normal(5.0, 1.0, 200)]
    table = {"price": [*numbers[:-2], "n.k.", "n.k."], "y": ["a", "b"] * 100}
    with pytest.warns(tb.TallybayesWarning, match="cannot be read"):
        model = tb.fit(table, target="y", effort="quick")
    watch = model.watch()
    watch.predict([{"price": "what"}, {"price": "2"}])
    watch.predict({"price": "what"})
    with pytest.raises(tb.DataError):
        watch.predict([{"colour": "red"}])
    assert (
        watch.counters.columns["price"].odd == watch.counters.columns["price"].missing == 2
        and watch.counters.failed == 1
    )


def test_threads_share_a_watch(model):
    watch, fresh = model.watch(), as_rows(without(rows(400, seed=2)))

    def ask(part):
        for row in fresh[part::8]:
            watch.predict(row)
        watch.predict(fresh[part::8])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    assert watch.counters.rows == 800 and sum(watch.counters.answers.values()) == 800
    assert watch.tally.rows == 800


def test_two_watches_add_up_and_a_file_goes_on(model, tmp_path):
    parts = [without(rows(200, seed=s)) for s in (3, 4)]
    watches = [model.watch(), model.watch()]
    for watch, part in zip(watches, parts, strict=True):
        watch.predict(part)
    watches[1].predict(ODD)
    both = watches[0] + watches[1]
    assert (
        both.counters.rows == 404
        and both.counters.columns["age"].above == sum(w.counters.columns["age"].above for w in watches) >= 1
    )
    assert both.tally == watches[0].tally + watches[1].tally
    both.save(tmp_path / "watch.tb.parquet")
    again = model.watch(tmp_path / "watch.tb.parquet")
    assert again.counters == both.counters and again.tally == both.tally == tb.Tally.load(tmp_path / "watch.tb.parquet")
    assert list(again.counters.columns) == list(both.counters.columns) == ["age", "size", "job"]  # as in the model
    model.save(tmp_path / "model.tb.parquet")
    with pytest.raises(tb.ModelFileError, match="holds no watch"):
        model.watch(tmp_path / "model.tb.parquet")
    other = tb.fit({"z": ["p", "q"] * 5, "y": ["yes", "no"] * 5}, target="y", effort="quick")
    with pytest.raises(tb.ModelFileError, match="other columns"):
        other.watch(tmp_path / "watch.tb.parquet")
    with pytest.raises(tb.SettingsError, match="other classes or columns"):
        model.watch() + other.watch()


def test_memory_stays_small_however_many_values_are_new(model, monkeypatch):
    monkeypatch.setattr(module, "_MOST_NEW", 5)
    watch = model.watch()
    for i in range(4):
        watch.see([{"age": 40.0, "size": 0.0, "job": f"job {i} {j}"} for j in range(50)])
    slots = watch.tally.columns["job"].sheets["values"].slot_names
    assert len(slots) == 6 and watch.counters.columns["job"].unseen == 200 and watch.tally.rows == 200
    assert watch.shift()["job"].verdict == "shifted"  # the rest is taken for as many values as rows


def test_large_batches_are_counted_in_part_and_every_row_by_counters(model):
    watch, many = model.watch(), without(rows(60_000, seed=5))
    many["age"] = np.where(np.arange(60_000) % 1000 == 7, 9999.0, many["age"])
    watch.predict(many)
    watch.predict(many)
    beyond = int(np.count_nonzero(many["age"] > rows(600)["age"].max()))
    assert watch.counters.rows == 120_000 and watch.counters.columns["age"].above == 2 * beyond >= 120
    assert 1000 <= watch.tally.rows < 12_000 and watch.counters.judged < 12_000


def test_the_first_rows_are_all_judged_and_it_is_said_of_how_many(model):
    watch, many = model.watch(), without(rows(32, seed=8))
    alone = [model.predict_proba({n: v[i : i + 1] for n, v in many.items()}) for i in range(32)]
    for i in range(32):
        watch.predict({n: v[i : i + 1] for n, v in many.items()})
    assert watch.counters.judged == 32
    assert watch.counters.unsure == sum(float(p.max()) < 0.8 for p in alone)
    assert "judged" not in str(watch.report())
    for _ in range(40):
        watch.predict(many)
    counted = watch.counters
    assert 512 <= counted.judged < counted.rows == 41 * 32
    assert f"% of {counted.judged:,} judged below 0.8" in str(watch.report())


# ---- Prometheus


def test_the_text_for_prometheus_is_well_formed():
    nasty = 'a"b\\c\nd'
    table = {nasty: ["p", "q"] * 10, "y": ["yes", 'n"o'] * 10}
    watch = tb.fit(table, target="y", effort="quick").watch()
    watch.predict([{nasty: "z"}])
    text = watch.prometheus(model='my "model"')
    line = re.compile(
        r'[a-zA-Z_][a-zA-Z0-9_]*\{[a-zA-Z_]+="(?:[^"\\\n]|\\[\\n"])*"(?:,[a-zA-Z_]+="(?:[^"\\\n]|\\[\\n"])*")*\} \d+'
    )
    assert text.endswith("\n")
    kinds = {}
    for told in text.splitlines():
        if told.startswith("# TYPE "):
            kinds[told.split()[2]] = told.split()[3]
        elif not told.startswith("# HELP "):
            assert line.fullmatch(told) and told.split("{")[0] in kinds
    assert 'tallybayes_unseen_total{model="my \\"model\\"",column="a\\"b\\\\c\\nd"} 1' in text
    assert set(kinds.values()) == {"counter", "gauge"} and kinds["tallybayes_rows_total"] == "counter"
    with pytest.raises(tb.SettingsError):
        watch.prometheus(column="no")


def test_labels_are_few_however_many_columns_and_the_same_lines_always_come():
    table = {f"c{i}": ["p", "q"] * 5 for i in range(130)} | {"y": ["u", "v"] * 5}
    watch = tb.textbook(table, target="y").watch()
    before = {told.rsplit(" ", 1)[0] for told in watch.prometheus().splitlines()}
    watch.see([{f"c{i}": None if i > 110 else "new" for i in range(130)}])
    after = watch.prometheus().splitlines()
    assert {told.rsplit(" ", 1)[0] for told in after} == before
    assert sum(told.startswith("tallybayes_missing_total{") for told in after) == 101
    assert 'tallybayes_missing_total{column="(others)"} 19' in after


# ---- drift without labels


def test_a_watch_tells_moved_columns_and_other_mixtures(model):
    for table, word in (
        (rows(400, seed=6), ""),
        (rows(400, moved=12, seed=7), "within the classes"),
        (rows(400, share=0.85, seed=13), "as another mixture of the classes would"),
    ):
        watch = model.watch()
        watch.predict(without(table))
        assert watch.shift()["age"].reason == word
    found = tb.shift(model, without(rows(400, share=0.85, seed=13)))
    assert found.mixture["yes"][1] == pytest.approx(0.85, abs=0.12) and "cannot be ruled out" in found.summary


def test_few_rows_without_labels_are_no_mixture(model):
    """Three rows tell that something has moved, but not whether the classes alone have."""
    few = {"age": [88.0, 89.0, 90.0], "size": [9.0, 9.5, 9.2], "job": ["pilot"] * 3}
    found = tb.shift(model, few)
    assert found["job"].verdict == "shifted" and all(s.p_mixture is None for s in found)
    assert found.summary.endswith("Too few rows to say whether another mixture of the classes would explain it.")
    assert "→" not in repr(found)


def test_unlabelled_counts_add_and_stay_apart_from_labelled_ones(model):
    table = rows(100, seed=9)
    whole = tb.count_unlabelled(without(table), model)
    parts = [tb.count_unlabelled({n: v[i::2] for n, v in table.items()}, model.schema) for i in (0, 1)]
    assert parts[0] + parts[1] == whole and whole - parts[1] == parts[0] and whole.rows == 100
    with pytest.raises(tb.SchemaError, match="target"):
        model.tally + whole
    for name in ("job", "age"):
        sheet = "values" if name == "job" else "cells"
        labelled = tb.count(table, model.schema).columns[name].sheets[sheet]
        bare = whole.columns[name].sheets[sheet]
        assert dict(zip(labelled.slot_names, labelled.by_slot("n"), strict=True)) == dict(
            zip(bare.slot_names, bare.by_slot("n"), strict=True)
        )


def test_nothing_in_common_is_said(model):
    strange = {**without(rows(50, seed=10)), "job": [f"planet {i}" for i in range(50)]}
    found = tb.shift(model, strange)["job"]
    assert found.p_value < 1e-10 and found.new == 1.0 and found.reason == "nothing in common"
    numbers = {**without(rows(50, seed=10)), "size": np.full(50, 9999.0)}
    assert tb.shift(model, numbers)["size"].reason == "nothing in common"
    assert tb.shift(model, numbers)["size"].new == 1.0


def test_rows_with_labels_are_compared_with_them(model):
    assert "y" in {s.column for s in tb.shift(model, rows(100, seed=11))}
    assert "y" not in {s.column for s in tb.shift(model, {**rows(100, seed=11), "y": [None] * 100})}
    with pytest.raises(tb.CannotEstimate, match="rows come second"):
        tb.shift(rows(10), rows(10))


def test_a_watch_of_texts_counts_answers_and_has_no_drift_to_test():
    texts = {"text": ["buy cheap pills now", "see you at noon today"] * 10, "y": ["spam", "ham"] * 10}
    watch = tb.count(texts, tb.Schema([tb.Column("text", "text")], target="y")).model().watch()
    watch.predict([{"text": "cheap pills"}, {"text": None}])
    assert watch.counters.columns["text"].missing == 1 and watch.counters.rows == 2
    with pytest.raises(tb.CannotEstimate, match="categories and numbers"):
        watch.shift()


def test_a_model_without_counts_can_be_watched():
    written = tb.Model.written({"a": 0.5, "b": 0.5}, {"sky": {"a": {"sun": 0.9}, "b": {"sun": 0.2}}})
    watch = written.watch()
    watch.predict([{"sky": "sun"}, {"sky": "hail"}])
    assert watch.counters.columns["sky"].unseen == 1
    with pytest.raises(tb.CannotEstimate, match="no tally"):
        watch.shift()


# ---- explanations, and the age of weights


def test_an_explanation_notes_a_number_beyond_what_was_learnt(model):
    told = str(model.explain({"age": 9999, "size": 0.0, "job": "cook"}))
    low, high = re.search(r"beyond what was learnt: (\d+) to (\d+)", told).groups()
    assert (int(low), int(high)) == (rows(600)["age"].min(), rows(600)["age"].max())
    line = model.explain({"age": 9999, "size": 0.0, "job": "cook"}).to_dict()["contributions"][1]
    assert line["beyond"].startswith("beyond") and json.dumps(line)
    assert "beyond" not in str(model.explain({"age": 40, "size": 0.0, "job": "cook"}))


def test_rows_added_and_forgotten_again_leave_no_age(model, tmp_path):
    new, old = rows(39, seed=12), {n: v[:39] for n, v in rows(600).items()}
    older = model.update(new)
    older.save(tmp_path / "older.tb.parquet")
    assert older.settings.calibrated.changed == 39
    assert tb.load(tmp_path / "older.tb.parquet").forget(new).settings == model.settings
    assert model.forget(old).settings.calibrated.origin == ""  # a digest of what was forgotten would be a trace of it
    assert older.settings.calibrated.origin and older.share().model.settings.calibrated.origin == ""
    mixed = older.forget(old)
    assert mixed.settings.calibrated.changed == 78 and mixed.settings.calibrated.origin == ""
    row = {"age": 40.0, "size": 0.5, "job": "cook", "y": "yes"}
    assert model.update(row).forget(row).settings.calibrated.changed == 0
    part = tb.count(old, model.schema)
    assert model.forget(part).tally == model.forget(old).tally
    with pytest.raises(tb.CannotForget):
        model.forget(part + part + part)


def test_a_narrow_page_of_a_shift_explains_only_the_columns_that_it_has() -> None:
    tally = tb.count({"Sky": ["sunny", "rainy", "sunny"] * 9, "Play": ["yes", "no", "yes"] * 9}, "Play")
    found = tb.shift(tally, {"Sky": ["rainy"] * 20})
    assert "mean difference in standard deviations" in str(found._page())
    narrow = str(found._page((1, 3, 5)))
    assert "mean difference" not in narrow and "0.693 is nothing in common.)" in narrow
