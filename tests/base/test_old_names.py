"""Names that will go: they work, they say what to write instead and until when, and nothing else warns."""

from __future__ import annotations

import warnings

import pytest

import tallybayes as tb
from tallybayes.base.renamed import renamed


def test_a_name_that_will_go_works_and_says_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tb._GOING, "Twin", ("LogisticTwin", "0.4.0"))
    monkeypatch.delitem(vars(tb), "Twin", raising=False)
    message = r"tb\.Twin is called tb\.LogisticTwin now; the old name goes with release 0\.4\.0"
    for _ in range(2):
        with pytest.warns(tb.OldNameWarning, match=message) as told:
            assert tb.Twin is tb.LogisticTwin
        assert told[0].filename == __file__  # where the old name stands
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tb.LogisticTwin


def test_no_name_is_gone_before_it_was_said() -> None:
    """What goes is still offered, and the name that it has now is there."""
    assert all(name in tb.__all__ and now in tb.__all__ for name, (now, _) in tb._GOING.items())


def test_an_argument_that_will_go() -> None:
    @renamed(goes_with_release="0.4.0", figures="metrics")
    def curve(metrics: tuple[str, ...] = ()) -> tuple[str, ...]:
        return metrics

    @renamed(figures="metrics")
    def other(metrics: tuple[str, ...] = ()) -> tuple[str, ...]:
        return metrics

    with pytest.warns(tb.OldNameWarning, match=r"curve\(figures=…\) is called metrics=… now") as told:
        assert curve(figures=("a",)) == ("a",)  # type: ignore[call-arg]
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert curve(metrics=("a",)) == other(figures=("a",)) == ("a",)  # type: ignore[call-arg]


def test_programs_hide_it_from_their_users_and_tests_show_it() -> None:
    assert issubclass(tb.OldNameWarning, DeprecationWarning) and issubclass(tb.OldNameWarning, tb.TallybayesWarning)
