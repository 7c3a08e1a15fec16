"""One spelling of arguments across all public verbs: a table of the names, and a walk over the signatures."""

import inspect
import itertools

import numpy as np
import pytest

import tallybayes as tb

# Every argument of a verb, in the order in which verbs have them, and what it means
MEANING = {
    "model": "a fitted model",
    "models": "several of them, by name or in a list",
    "tally": "what was counted",
    "name": "of an example",
    "to": "a folder to copy it to",
    "a": "one of two tallies",
    "b": "the other of two tallies",
    "windows": "counts by period",
    "data": "rows with their labels, or anything that opens as a table",
    "source": "one of those that rows come from",
    "of": "the class that is asked about",
    "audited": "labels of rows drawn at random",
    "since": "labels of rows that were not",
    "found": "how many were found before",
    "confidence": "of an interval",
    "n": "how many rows to give",
    "shortlist": "rows that are looked at closely",
    "sample": "rows that stand for all",
    "columns": "names of columns",
    "target": "the column to predict by its name, labels, or a schema",
    "y": "labels that stand beside the data",
    "connection": "of a database",
    "path": "of one file of the library",
    "out": "a file to write, or one that is open",
    "like": "a model, tally or schema whose columns rows or a loaded tally have",
    "schema": "which kind each column is",
    "kinds": "{column: kind}, where it is not to be inferred",
    "settings": "what is believed beyond the counts: Settings or a dict",
    "families": "{column: family}, or one",
    "smoothing": "one, or {column: smoothing}",
    "prior": "P(class)",
    "known": "families that were estimated before",
    "weights": "a column's name or a number for each row",
    "unlabelled": "more rows, without labels",
    "receipts": "also count a hash of each row",
    "keep_leaks": "count columns that give the label away",
    "calibrate": "choose by held-out rows",
    "pairs": "columns that are counted together",
    "gaps": "ask whether a missing value tells something",
    "engine": "who reads the rows",
    "effort": "how long to choose",
    "naive": "what a joint table is held against",
    "rivals": "who takes part",
    "penalty": "of logistic regression",
    "sizes": "numbers of rows, or shares",
    "over": "which setting is varied",
    "values": "of the setting that is varied",
    "column": "one of the data",
    "shares": "of the parts",
    "held_out": "the share of the rows that is held out",
    "folds": "how many parts the rows are held out in",
    "repeats": "how often the rows are dealt into folds anew",
    "stratify": "each fold has its share of each class",
    "groups": "a column whose equal values stay together",
    "by": "a column whose values are the folds, or the sources",
    "order": "a column of times",
    "relearn": "settings were learnt from the rows",
    "intervals": "say how sure figures are",
    "seed": "of everything that is drawn",
    "nested": "the figure of the whole search on rows it has not seen",
    "fitter": "what makes a model of training rows",
    "metrics": "names of figures",
    "memory": "measure it, too",
    "seen": "what was forecast before",
    "start": "the first period",
    "end": "the period before which it ends",
    "last": "how many periods a model is made of",
    "half_life": "periods after which a row weighs half",
    "trusted": "the file is one's own",
    "format": "of a file",
    "delimiter": "of a CSV file",
    "encoding": "of a text file",
    "decimal": "the sign between whole and fraction",
    "bad_lines": "what to do with lines that cannot be read",
    "memory_limit": "of the database that reads files",
    "probabilities": "write them, too",
    "keep": "columns that are written beside the answers",
    "costs": "of each answer by what is true",
    "unsure_below": "a probability below which no class is answered",
    "explain": "how many terms are told of each row",
    "row_numbers": "write them, too",
    "coverage": "how often a set of classes holds the right one",
    "by_class": "in every class by itself",
    "table": "of a database, or a sheet of a workbook",
    "tables": "of groups that a database has counted",
    "times": "the column that says how many rows a group has",
    "query": "whose rows a database gives",
    "progress": "who is told how far it is",
    "missing": "texts that mean that a value is missing",
    "strict": "refuse odd cells",
    "date_format": "how dates are written",
    "fold": "letter case and blanks mean nothing",
}
# Names that the same things have elsewhere, or had
NEVER = {
    "X", "df", "frame", "rows", "labels", "label", "classes", "sample_weight", "weight", "random_state", "rng",
    "n_folds", "cv", "k", "group", "stratified", "prior_", "priors", "alpha", "family", "smooth", "figures", "scoring",
    "na_values", "dtype", "types", "dtypes", "filename", "file", "filepath", "options", "config", "setting",
}  # fmt: skip
READS = ("kinds", "missing", "strict", "date_format", "fold")

VERBS = {name: f for name in tb.__all__ if inspect.isfunction(f := getattr(tb, name)) and name != "MAP"}
OF_DATA = sorted(name for name, f in VERBS.items() if "schema" in inspect.signature(f).parameters)
TABLE = {
    "sky": ["sunny", "rainy", "sunny", "rainy", "sunny", "rainy"] * 6,
    "wind": [3.5, 12.0, 4.0, 11.0, 5.5, 9.0] * 6,
    "w": [1.0, 2.0, 1.0, 1.0, 3.0, 1.0] * 6,
    "play": ["yes", "no", "yes", "no", "no", "yes"] * 6,
}


def arguments(verb):
    return inspect.signature(verb).parameters


def test_every_argument_of_a_verb_is_in_the_table_in_its_order():
    place = {name: i for i, name in enumerate(MEANING)}
    for verb, f in VERBS.items():
        names = list(arguments(f))
        assert not NEVER & {*names}, f"{verb} has another name for what the table names"
        assert {*names} <= {*MEANING}, f"{verb}: {sorted({*names} - {*MEANING})} are not in the table"
        kinds = [inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY]
        for kind in kinds if verb in OF_DATA else kinds[:1]:
            here = [n for n in names if arguments(f)[n].kind is kind]
            assert here == sorted(here, key=place.get), f"{verb} has its arguments in another order than the table"
    used = {n for f in VERBS.values() for n in arguments(f)}
    assert used == {*MEANING}, "the table names arguments that no verb has"
    assert not NEVER & {*MEANING}


def test_who_takes_a_schema_takes_a_target_and_says_how_cells_are_read():
    assert {"fit", "count", "cross_validate", "tune", "compare", "learning_curve", "assumptions"} <= {*OF_DATA}
    for verb in OF_DATA:
        names = [n for n, p in arguments(VERBS[verb]).items() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        assert names == ["data", "target", "y"], verb
        assert {*READS} <= {*arguments(VERBS[verb])}, verb
        assert all(arguments(VERBS[verb])[n].default is None for n in ("target", "y", "schema", "kinds")), verb


def test_methods_name_the_same_things_alike():
    """Rows that are asked about are `rows`, rows that are counted are `data` with `y` and `weights`."""
    counting = [tb.Model.update, tb.Model.forget, tb.Model.recalibrate, tb.Tally.update, tb.Tally.forget]
    for method in counting:
        assert list(arguments(method))[:4] == ["self", "data", "y", "weights"]
    asking = [getattr(tb.Model, n) for n in ("predict", "predict_proba", "predict_log_proba", "log_joint", "parts")]
    for method in [*asking, tb.Sealed.predict, tb.Sealed.predict_proba]:
        assert list(arguments(method))[:2] == ["self", "rows"]
    assert [*arguments(tb.Nearest.fit)][1:] == ["data", "target", "y", "schema", *READS]


QUICK = {
    "cross_validate": {"settings": {"smoothing": 1}, "folds": 2, "stratify": True},
    "tune": {"settings": {"weights": {"sky": 1.0}}, "folds": 2, "families": {"sky": "categorical"}, "smoothing": [1]},
    "compare": {"settings": {"smoothing": 1}, "folds": 2, "rivals": ["majority class"], "memory": False},
    "learning_curve": {"folds": 2, "sizes": (1.0,)},
    "validation_curve": {"folds": 2, "values": (1,)},
    "fit": {"calibrate": False},
    "suspicious": {"settings": {"smoothing": 1}, "folds": 2},
    "sources": {"settings": {"smoothing": 1}, "folds": 2, "by": "sky"},
}


def said(found):
    """What a verb says, without the seconds that it took."""
    if isinstance(found, tb.Comparison):
        found = found.evaluation
    table = getattr(found, "table", None)
    if isinstance(found, (tb.Evaluation, tb.FigureCurve, tb.Tuned)):
        return table.to_pydict()
    return found.tally.digest if isinstance(found, tb.Model) else getattr(found, "digest", None) or repr(found)


@pytest.mark.parametrize("verb", OF_DATA)
def test_a_target_labels_and_a_schema_say_the_same_in_every_verb(verb):
    call = lambda *args, **kw: said(VERBS[verb](*args, **QUICK.get(verb, {}), **kw))  # noqa: E731
    beside = {n: v for n, v in TABLE.items() if n not in ("play", "w")}
    labelled = {**beside, "play": TABLE["play"]}
    schema = tb.infer(labelled, "play")
    ways = [
        call(labelled, "play"),
        call(labelled, target="play"),
        call(labelled, schema),
        call(labelled, schema=schema),
        call(labelled, target="play", schema=schema),
        call(beside, TABLE["play"], schema=schema),
        call(beside, schema, TABLE["play"]),
        call(beside, schema, y=TABLE["play"]),
    ]
    for one, other in itertools.pairwise(ways):
        assert one == other
    assert call(labelled, "play", kinds={"wind": "category"}) == call(
        labelled, schema.with_column("wind", kind="category")
    )
    with pytest.raises(tb.SettingsError, match=r"target 'sky' beside a schema whose target is 'play'"):
        call(labelled, "sky", schema=schema)
    with pytest.raises(tb.SettingsError, match="beside a schema"):
        call(labelled, schema, fold=True)
    with pytest.raises(tb.SettingsError, match=r"'wind' as 'numbr'[\s\S]*did you mean 'number'"):
        call(labelled, "play", kinds={"wind": "numbr"})
    with pytest.raises(tb.SchemaError, match=r"no column 'wint'[\s\S]*did you mean 'wind'"):
        call(labelled, "play", kinds={"wint": "number"})


@pytest.mark.parametrize("verb", [v for v in OF_DATA if "weights" in arguments(VERBS[v])])
def test_weights_are_a_column_or_numbers_in_every_verb(verb):
    call = lambda *args, **kw: said(VERBS[verb](*args, **QUICK.get(verb, {}), **kw))  # noqa: E731
    rest = {n: v for n, v in TABLE.items() if n != "w"}
    assert call(TABLE, "play", weights="w") == call(rest, "play", weights=TABLE["w"]) != call(rest, "play")


def test_first_spellings_work():
    rows = {n: v for n, v in TABLE.items() if n != "w"}
    schema = tb.infer(rows, "play")
    one, two = tb.Settings(smoothing=1), tb.Settings(smoothing=9)
    assert said(tb.cross_validate(rows, schema="play", settings=one)) == said(
        tb.cross_validate(rows, "play", settings=one)
    )
    tally, beside = tb.count(rows, schema), {n: v for n, v in rows.items() if n != "play"}
    for given in ((two,), (two, None), (None, two), ({"smoothing": 9},)):
        assert np.array_equal(
            tb.leave_one_out(tally, rows, *given).joint, tb.leave_one_out(tally, rows, settings=two).joint
        )
    for given in (
        (rows["play"],),
        (None, rows["play"]),
        (rows["play"], None),
        (one, rows["play"]),
        (rows["play"], one),
    ):
        assert np.array_equal(tb.leave_one_out(tally, beside, *given).joint, tb.leave_one_out(tally, rows).joint)
    curves = [
        tb.learning_curve(rows, "play", sizes=[1.0], folds=2, **how)
        for how in ({"figures": ["brier"]}, {"metrics": ["brier"]})
    ]
    assert said(curves[0]) == said(curves[1]) and "brier" in said(curves[0])
    with pytest.raises(TypeError, match="figures beside metrics"):
        tb.learning_curve(rows, "play", figures=["brier"], metrics=["brier"])
    tuned = [tb.tune(rows, "play", **how, **QUICK["tune"]) for how in ({"priors": ["uniform"]}, {"prior": "uniform"})]
    assert [t.plain.prior for t in tuned] == ["uniform", "uniform"]


def test_a_schema_and_a_target_in_each_others_place_are_refused():
    schema = tb.infer(TABLE, "play")
    with pytest.raises(tb.SettingsError, match=r"schema='play'[\s\S]*tb\.Schema"):
        tb.fit(TABLE, schema, schema="play")
    with pytest.raises(tb.SettingsError, match=r"tb\.infer"):
        tb.infer(TABLE, schema)
