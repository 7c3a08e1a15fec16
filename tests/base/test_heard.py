"""What a thread would be warned of goes into its own list, and nowhere else."""

from __future__ import annotations

import threading

import pytest

import tallybayes as tb
from tallybayes.base.errors import heard, warn


def test_what_is_heard_is_not_warned_of() -> None:
    with heard() as told:
        warn("one")
        with heard() as inner:
            warn("two")
        warn("three")
    assert (told, inner) == (["one", "three"], ["two"])
    with pytest.warns(tb.TallybayesWarning, match="four"):
        warn("four")
    assert told == ["one", "three"]


def test_another_thread_is_warned_as_ever() -> None:
    other = threading.Thread(target=warn, args=("elsewhere",))

    def run() -> None:
        other.start()
        other.join()

    with heard() as told, pytest.warns(tb.TallybayesWarning, match="elsewhere"):
        run()
    assert told == []
