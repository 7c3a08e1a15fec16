"""Labels that differ in letter case alone: spellings of one, unless rows enough tell them apart on purpose."""

import warnings

import pytest

import tallybayes as tb


def warned(**rows):
    table = {
        "x": [float(i % 7) for i in range(sum(rows.values()))],
        "y": [k for k, n in rows.items() for _ in range(n)],
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tb.infer(table, target="y")
    return any("spellings of one label" in str(w.message) for w in caught)


@pytest.mark.parametrize(
    "rows",
    [
        {"NO": 30, "No": 30, "no": 30, "yes": 20},
        {"Yes": 50, "yes": 1, "no": 40},
        {"Not Spam": 20, "not spam": 20, "spam": 9},
        {"hAd": 90, "had": 3, "hid": 90},
        {"A": 100, "a": 4, "B": 80},
        {"yes ": 5, "yes": 50, "no": 40},
    ],
)
def test_spellings_of_one_label_are_warned_of(rows):
    assert warned(**rows)


@pytest.mark.parametrize("rows", [{"hAd": 90, "had": 90, "hid": 90}, {"A": 60, "a": 50, "B": 40}, {"yes": 9, "no": 8}])
def test_labels_that_many_rows_tell_apart_are_not(rows):
    assert not warned(**rows)
