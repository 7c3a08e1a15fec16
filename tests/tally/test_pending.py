"""Rows counted and forgotten one at a time: nobody can tell that they waited."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, schema, tables

import tallybayes as tb
from tallybayes.tally import waiting as pending
from tallybayes.tally.one_row import SlotIndex, checked, label_of, row_amounts

SCHEMA = tb.Schema(
    [
        tb.Column("c", "category"),
        tb.Column("n", "number", cells=tb.Cells.fitted(np.arange(40.0))),
        tb.Column("t", "text"),
    ],
    target="y",
)
ROW = st.fixed_dictionaries(
    {
        "c": st.sampled_from(["red", "blue", None]),
        "n": st.sampled_from([0.5, 3.0, -1e9, 1e-3, None]),
        "t": st.sampled_from(["ant bee bee", "", "bee cat", None]),
        "y": st.sampled_from(["u", "v", None]),
    }
).filter(lambda row: any(row[k] is not None for k in "cnt"))


def quietly(tally: tb.Tally, rows: list[dict], sign: int) -> tb.Tally:
    for row in rows:
        tally = tally + sign * tb.count([row], SCHEMA)
    return tally


@given(first=st.lists(ROW, min_size=1, max_size=6), steps=st.lists(st.tuples(st.booleans(), ROW), max_size=12))
@examples(60)
def test_row_by_row_equals_at_once_and_forgets_what_the_whole_tally_would(first, steps):
    """Every step is accepted or refused as the whole tally does it, and leaves the same tally."""
    base = quietly(tb.Tally.zero(SCHEMA), [*first, {"c": "red", "n": 1.0, "t": "ant", "y": "u"}], 1)
    model, whole = base.model(), base
    for add, row in steps:
        if add:
            model, whole = (m.update(r, new_classes="allow") for m, r in ((model, row), (whole, [row])))
            continue
        try:
            rest = whole.forget([row])
        except tb.CannotForget:
            with pytest.raises(tb.CannotForget):
                model.forget(row)
            continue
        if not rest.classes:
            continue
        model, whole = model.forget(row), rest
    assert model.tally == whole
    assert model.tally.digest == whole.digest
    expected = whole.model()
    assert model.classes == expected.classes
    probe = {"c": "red", "n": 0.7, "t": "bee"}
    np.testing.assert_array_equal(model.predict_proba(probe), expected.predict_proba(probe))


def test_a_row_waits_until_it_is_asked_for_and_older_models_stay_as_they_were():
    many = {"c": ["red", None] * 10, "n": [1.0, None] * 10, "t": ["ant bee", None] * 10, "y": ["u", "v", "v", "v"] * 5}
    base = tb.count(many, SCHEMA).model()
    row = {"c": "blue", "n": 3.0, "t": "cat cat", "y": "v"}
    more = base.update(row)
    assert "beliefs" not in vars(more)
    again = more.update(row)
    less = again.forget(row)
    assert "beliefs" not in vars(less)
    assert less.tally == more.tally == base.tally.update([row])
    assert base.tally.rows == 20 and again.tally.rows == 22
    assert more.forget(row).tally == base.tally  # its changes were taken over by `again`: they are made once more
    assert isinstance(more.predict(row)[0], str)


def test_a_row_that_cannot_be_read_is_refused_at_once():
    base = tb.count({"c": ["red"], "n": [1.0], "t": ["a"], "y": ["u"]}, SCHEMA).model()
    with pytest.raises(tb.DataError, match="column 'n', row 0"):
        base.update({"c": "red", "n": "seven", "t": "a", "y": "u"})
    with pytest.raises(tb.DataError, match="no target column"):
        base.update({"c": "red", "n": 1.0, "t": "a"})
    with pytest.raises(tb.CannotForget, match="nothing has been forgotten"):
        base.forget({"c": "blue", "n": 1.0, "t": "a", "y": "u"})
    with pytest.raises(AttributeError, match="no attribute 'belief'"):
        base.update({"c": "red", "n": 1.0, "t": "a", "y": "u"}).belief  # noqa: B018


def test_many_rows_are_folded_in(monkeypatch):
    monkeypatch.setattr(pending, "MOST_ROWS", 3)
    model = tb.count({"c": ["red"], "n": [1.0], "t": ["a"], "y": ["u"]}, SCHEMA).model()
    for _ in range(10):
        model = model.update({"c": "red", "n": 1.0, "t": "a", "y": "u"})
        assert vars(model)["_pending"].waiting <= 3
    assert model.tally.rows == 11


def test_words_that_every_row_has_let_a_row_be_forgotten_as_quickly():
    """Their count equals the rows of the class, so it must be looked at, not bounded."""
    table = {"c": ["red"] * 40, "n": [1.0] * 40, "t": ["subject ant", "subject bee"] * 20, "y": ["u", "v"] * 20}
    base = tb.count(table, SCHEMA).model()
    rows = [{"c": "red", "n": 1.0, "t": f"subject new{i % 3} ant", "y": "u"} for i in range(30)]
    model = base
    for row in rows:
        model = model.update(row)
    for row in [*rows, {"c": "red", "n": 1.0, "t": "subject ant", "y": "u"}]:
        model = model.forget(row)
        assert "beliefs" not in vars(model)  # still waiting
    assert model.tally.rows == 39
    assert model.update({"c": "red", "n": 1.0, "t": "subject ant", "y": "u"}).tally == base.tally
    with pytest.raises(tb.CannotForget):
        model.forget({"c": "red", "n": 1.0, "t": "ant", "y": "u"})  # would leave more subjects than rows


def test_more_rows_wait_where_there_are_more_words(monkeypatch):
    monkeypatch.setattr(pending, "MOST_ROWS", 3)
    words = [f"word{i}" for i in range(320)]
    model = tb.count({"c": ["red"], "n": [1.0], "t": [" ".join(words)], "y": ["u"]}, SCHEMA).model()
    waiting = []
    for _ in range(12):
        model = model.update({"c": "red", "n": 1.0, "t": "word1", "y": "u"})
        waiting.append(vars(model)["_pending"].waiting)
    assert max(waiting) == 10 and waiting[-1] == 2


@given(one=tables(min_size=1, max_size=1))
@examples(80)
def test_the_amounts_of_a_row_are_what_its_tally_holds(one):
    """Every kind, with numbers of any size: read in plain Python or not, the same amounts under the same slots."""
    row, under = {name: values[0] for name, values in one.columns.items()}, schema()
    tally = tb.count([row], under)
    read = checked(under, row)
    if label_of(under, read) is None:
        assert tally.rows == 0
        return
    found = {
        (column, sheet, amount): dict(zip(slots, numbers, strict=True))
        for column, sheet, slots, amounts in row_amounts(under, read)
        for amount, numbers in amounts.items()
        if slots
    }
    expected = {}
    for column, counts in {None: tally.labels, **tally.columns}.items():
        for name, sheet in counts.sheets.items():
            for amount, (*numbers, nothing) in SlotIndex(sheet, name, 0).values.items():
                assert nothing == 0
                expected[column, name, amount] = dict(zip(sheet.slot_names, numbers, strict=True))
    assert found == expected


def test_a_row_goes_with_the_same_row_only():
    """Equal values of another type, or zeros of another sign, are other values."""
    under = tb.Schema([tb.Column("c", "category")], target="y")
    model = tb.count({"c": ["red"] * 4, "y": ["u", "v"] * 2}, under).model()
    values = ["1", 1, 1.0, True, 0.0, -0.0, "0.0", None]
    for learnt in values:
        for other in values:
            whole, row = model.tally.update([{"c": learnt, "y": "u"}]), {"c": other, "y": "u"}
            try:
                expected = whole.forget([row])
            except tb.CannotForget:
                with pytest.raises(tb.CannotForget):
                    model.update({"c": learnt, "y": "u"}).forget(row)
            else:
                assert model.update({"c": learnt, "y": "u"}).forget(row).tally == expected


def test_rows_that_wait_are_read_when_the_base_alone_cannot_let_a_row_go():
    base = tb.count({"c": ["red"] * 4, "n": [1.0] * 4, "t": ["ant", "bee"] * 2, "y": ["u", "v"] * 2}, SCHEMA).model()
    learnt = [{"c": "red", "n": 1.0, "t": text, "y": "u"} for text in ("new cat cat", "new dog", "ant")]
    model = base
    for row in learnt:
        model = model.update(row)
    for text in ("cat new cat", "ant", "dog new", "ant"):  # the same words in another order; of the base; waiting
        model = model.forget({"c": "red", "n": 1.0, "t": text, "y": "u"})
        assert "beliefs" not in vars(model)
    assert model.tally == base.tally.forget([{"c": "red", "n": 1.0, "t": "ant", "y": "u"}])
    with pytest.raises(tb.CannotForget):
        model.forget({"c": "red", "n": 1.0, "t": "cat", "y": "u"})


@pytest.mark.parametrize("times", [1, 3, 1 << 30, 1 << 33, 1 << 70])
def test_counts_of_any_size_let_a_row_go(times):
    table = {"c": ["red"] * 4, "n": [1.5] * 4, "t": ["ant ant", "bee"] * 2, "y": ["u", "v"] * 2}
    base = (times * tb.count(table, SCHEMA)).model()
    row = {"c": "red", "n": 1.5, "t": "ant ant", "y": "u"}
    less = base.forget(row)
    assert "beliefs" not in vars(less)  # still waiting
    assert less.tally == base.tally.forget([row])
    assert less.update(row).tally == base.tally


def test_a_row_that_waits_stays_as_it_was_given():
    """A list or an array that is filled anew for every row counts with what it held."""
    under = tb.Schema([tb.Column("v", "vector", width=2), tb.Column("b", "bag")], target="y")
    rows = [{"v": [1.0 * i, 2.0], "b": ["ant", f"bee{i}"], "y": "uv"[i % 2]} for i in range(4)]
    model = tb.count(rows[:2], under).model()
    array, words = np.zeros(2), []
    for row in rows[2:]:
        array[:], words[:] = row["v"], row["b"]
        model = model.update({"v": array, "b": words, "y": row["y"]})
    array[:], words[:] = -1.0, []
    assert model.tally == tb.count(rows, under)
    assert model.forget(rows[3]).tally == tb.count(rows[:3], under)


def test_a_model_with_many_rows_waiting_is_copied_and_pickled():
    model = tb.count({"c": ["red"], "n": [1.0], "t": ["a"], "y": ["u"]}, SCHEMA).model()
    models = [model]
    for i in range(900):
        models.append(models[-1].update({"c": "red", "n": float(i), "t": "a b", "y": "u"}))
    early, late = models[10], models[-1]
    assert len(pickle.dumps(early)) < len(pickle.dumps(late)) / 4  # without the rows that came after it
    for again in (pickle.loads(pickle.dumps(late)), copy.deepcopy(late)):
        assert again.tally == late.tally
        assert again.forget({"c": "red", "n": 899.0, "t": "a b", "y": "u"}).tally == models[-2].tally


def test_threads_go_on_from_one_model():
    table = {"c": ["red", "blue"] * 40, "n": [1.0] * 80, "t": ["ant bee", "cat"] * 40, "y": ["u", "v"] * 40}
    model = tb.count(table, SCHEMA).model().update({"c": "red", "n": 7.0, "t": "dog", "y": "u"})
    old = {"c": "red", "n": 1.0, "t": "ant bee", "y": "u"}

    def work(number: int) -> str:
        mine = model
        for i in range(30):
            mine = mine.update({"c": "red", "n": float(i), "t": f"w{number}", "y": "v"}).forget(old)
            model.forget(old)
        return mine.tally.digest

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    for number, digest in enumerate(found):
        more = [{"c": "red", "n": float(i), "t": f"w{number}", "y": "v"} for i in range(30)]
        assert digest == model.tally.update(more).forget([old] * 30).digest


@pytest.mark.parametrize("kind", ["category", "number", "text", "bag", "vector"])
def test_a_column_without_a_name_is_not_the_rows_themselves(kind):
    values = {"category": "u", "number": 2.0, "text": "a b a", "bag": ["a", "b"], "vector": [1.0, 2.0]}
    under = tb.Schema([tb.Column("", kind), tb.Column("c", "category")], target="y")
    row = {"": values[kind], "c": "v", "y": "p"}
    model = tb.count([row] * 3, under).model()
    for less in (model.forget(row), model.update(row).forget(row).forget(row)):
        assert less.tally == tb.count([row] * 2, under)


@pytest.mark.parametrize("how", [{}, {"receipts": True}, {"weights": "w"}])
def test_a_row_with_lists_in_it_is_one_row(how):
    under = tb.Schema(
        [tb.Column("b", "bag"), tb.Column("v", "vector", width=2), tb.Column("c", "category")], "y", **how
    )
    row = {"b": ["a", "b"], "v": [1.0, 2.0], "c": "u", "other": [1, 2, 3], "w": 2.0, "y": "p"}
    two = tb.count([row] * 2, under)
    assert two.model().update(row).tally == two + tb.count([row], under)
    assert two.model().forget(row).tally == two.forget(row) == tb.count([row], under) == tb.count(row, under)
    with pytest.raises(tb.DataError, match="is one value"):
        two.update({**row, "c": ["u", "v"]})


def test_labels_never_seen_are_said_or_refused() -> None:
    base = tb.fit({"c": ["red", "blue"] * 8, "y": ["u", "v"] * 8}, "y", calibrate=False)
    row = {"c": "red", "y": "w"}
    for ask in (base, base.tally):
        for rows in (row, [row], {"c": ["red", "red"], "y": ["w", "u"]}):
            with pytest.warns(tb.TallybayesWarning, match="'w' is a label of 'y' that no row has had before"):
                assert "w" in ask.update(rows).classes
            assert "w" in ask.update(rows, new_classes="allow").classes
            with pytest.raises(tb.DataError, match=r"'w' is a label(.|\n)*nothing has been counted(.|\n)*'u', 'v'"):
                ask.update(rows, new_classes="refuse")
            ask.update({"c": ["red"], "y": ["u"]}, new_classes="refuse")
        with pytest.raises(tb.SettingsError, match="new_classes='no'"):
            ask.update([row], new_classes="no")
    with pytest.warns(tb.TallybayesWarning, match="'w' is a label"):
        more = base.update(row)
    assert more.update(row).tally.rows == 18  # said once; it waits, and is seen by now
    assert tb.Tally.zero(base.schema).update([row]).classes == (
        "w",
    )  # the first rows of all have no labels before them
