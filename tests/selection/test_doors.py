"""The doors of choosing: effort, groups, order and progress of fit, recalibrate, and tune beside fit."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import shared_data

import tallybayes as tb
from tallybayes.base import show
from tallybayes.base.show import progress_line


def visits(people: int = 60, each: int = 6, seed: int = 0) -> dict[str, list[Any]]:
    """Rows of people, whose class and whose mark are their own: a mark is known again, and tells nothing of others."""
    rng = np.random.default_rng(seed)
    ill = rng.integers(0, 2, people)
    who = np.repeat(np.arange(people), each)
    return {
        "patient": [f"p{i}" for i in who],
        "mark": (rng.normal(0, 1, people)[who] + rng.normal(0, 0.01, len(who))).round(3).tolist(),
        "temperature": (37 + ill[who] + rng.normal(0, 1, len(who))).round(1).tolist(),
        "day": rng.permutation(len(who)).tolist(),
        "ill": [["no", "yes"][v] for v in ill[who]],
    }


DATA = visits()
SCHEMA = tb.infer({n: v for n, v in DATA.items() if n not in ("patient", "day")}, target="ill")


def calibrated(model: tb.Model) -> Any:
    found = model.settings.calibrated
    assert found is not None
    return found


# ---- effort, groups, order


def test_quick_is_one_temperature_and_thorough_judges_by_all_rows() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 9_000)
    data = {"x": rng.normal(y, 1).round(2).tolist(), "z": rng.normal(y, 2).round(2).tolist(), "y": y.tolist()}
    quick, usual, thorough = (calibrated(tb.fit(data, "y", effort=e)) for e in ("quick", "default", "thorough"))
    assert list(quick.losses) == ["one temperature"] == [quick.form]
    assert {"one temperature", "column weights", "corrections"} <= set(usual.losses)
    assert usual.judged < thorough.judged == 9_000
    assert thorough.errors[thorough.form] < usual.errors[usual.form]
    asked = tb.fit(data, "y", effort="quick", calibrate="weights")
    assert calibrated(asked).form == "column weights"  # a form that was asked for stands above the effort


def test_the_figures_are_of_the_rows_that_judged() -> None:
    model = tb.fit(DATA, schema=SCHEMA)
    found = calibrated(model)
    assert set(found.figures) == {"accuracy", "log_loss", "brier", "calibration_error"}
    assert found.figures["log_loss"] == (found.losses[found.form], found.errors[found.form])
    assert found.accuracy == found.figures["accuracy"][0] and 0.5 < found.accuracy <= 1
    assert found.calibration_error == found.figures["calibration_error"][0] and 0 <= found.calibration_error < 0.5
    assert round(found.accuracy * found.judged) == pytest.approx(found.accuracy * found.judged, abs=1e-6)


def test_figures_survive_a_file(tmp_path: Any) -> None:
    model = tb.fit(DATA, schema=SCHEMA)
    model.save(tmp_path / "m.tb.parquet")
    assert tb.load(tmp_path / "m.tb.parquet").settings == model.settings


def test_rows_of_a_group_are_held_out_together_and_the_group_is_no_evidence() -> None:
    loose = tb.fit(DATA, schema=tb.Schema([SCHEMA["mark"]], target="ill"), order=True)
    schema = tb.Schema([SCHEMA["mark"], tb.Column("patient", "category")], target="ill")
    cut, kept = tb.fit(DATA, schema=schema, groups="day"), tb.fit(DATA, schema=schema, groups="patient")
    assert [c.name for c in kept.schema.counted] == ["mark"]
    assert kept.schema["patient"].reason == "decides about folds"
    assert calibrated(cut).accuracy > 0.9  # a patient that is known again gives the answer away
    assert calibrated(kept).accuracy < 0.65
    assert calibrated(loose).judged == len(DATA["ill"])
    inferred = tb.fit(DATA, "ill", groups="patient")
    assert "patient" not in [c.name for c in inferred.schema.counted]
    assert [c.name for c in tb.fit(DATA, schema=schema, groups="patient", calibrate=False).schema.counted] == ["mark"]


def test_a_column_of_times_is_as_good_as_rows_in_that_order() -> None:
    order = np.argsort(DATA["day"])
    sorted_rows = {n: [v[i] for i in order] for n, v in DATA.items()}
    by_column, by_place = tb.fit(DATA, schema=SCHEMA, order="day"), tb.fit(sorted_rows, schema=SCHEMA, order=True)
    assert [calibrated(m).asked for m in (by_column, by_place)] == [{"order": "day"}, {"order": True}]
    alike = replace(calibrated(by_place), asked={"order": "day"})
    assert by_column.settings == replace(by_place.settings, calibrated=alike)


def test_recalibrate_takes_them_too() -> None:
    model = tb.fit(DATA, schema=SCHEMA, groups="patient")
    again = model.recalibrate(DATA, groups="patient")
    assert again.tally == model.tally
    assert calibrated(again).losses["one temperature"] == calibrated(model).losses["one temperature"]
    assert calibrated(model.recalibrate(DATA, effort="quick")).form == "one temperature"
    assert calibrated(model.recalibrate(DATA, order="day")).losses != calibrated(again).losses


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"effort": "quik"}, tb.SettingsError, "did you mean 'quick'"),
        ({"effort": None}, tb.SettingsError, "effort=None"),
        ({"groups": "pateint"}, tb.DataError, "did you mean 'patient'"),
        ({"groups": "ill"}, tb.SettingsError, "the column to predict"),
        ({"groups": "same"}, tb.SettingsError, "1 group cannot be split"),
        ({"groups": "patient", "order": True}, tb.SettingsError, "at once"),
        ({"order": "dya"}, tb.DataError, "did you mean 'day'"),
        ({"progress": "yes"}, tb.SettingsError, "progress='yes'"),
        ({"progress": 3}, tb.SettingsError, "a function of two"),
    ],
)
def test_bad_requests_are_refused_with_a_hint(how: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as found:
        tb.fit({**DATA, "same": ["one"] * len(DATA["ill"])}, schema=SCHEMA, **how)
    assert "Hint:" in str(found.value)


def test_a_note_about_neighbours_is_a_line_of_the_model() -> None:
    rng = np.random.default_rng(3)
    who, y = np.repeat(np.arange(80), 6), rng.integers(0, 2, 80)
    marks = rng.normal(0, 1, (80, 4))[who] + rng.normal(0, 0.05, (480, 4))
    data = {f"m{i}": marks[:, i].round(3).tolist() for i in range(4)} | {"who": who.tolist(), "y": y[who].tolist()}
    schema = tb.infer({n: v for n, v in data.items() if n != "who"}, target="y")
    together = tb.fit(data, schema=schema)
    note = calibrated(together).note
    assert "rows that follow each other are alike" in note and str(together).endswith(note)
    assert calibrated(tb.fit(data, schema=schema, groups="who")).note == ""


# ---- progress


def test_a_function_is_told_what_is_done_and_how_much() -> None:
    told: list[tuple[str, float]] = []
    model = tb.fit(DATA, schema=SCHEMA, progress=lambda what, done: told.append((what, done)))
    shares = [done for _, done in told]
    assert shares == sorted(shares) and shares[0] == 0 and told[-1] == ("done", 1.0)
    assert {"looking", "column weights", "corrections", "all rows", "counting"} <= {what for what, _ in told}
    assert model.settings == tb.fit(DATA, schema=SCHEMA, progress=False).settings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("progress", [None, True, False])
def test_a_terminal_has_one_line_that_is_erased(monkeypatch: pytest.MonkeyPatch, progress: bool | None) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_line(progress) as tell:
        tell("counting", 0.5)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]  # nobody waits for a second yet
    monkeypatch.setattr(show, "_PATIENCE", 0.0)
    monkeypatch.setattr(show, "_PAUSE", 0.0)
    with progress_line(progress) as tell:
        tell("counting \x1b[31m", 0.5)
        tell("done", 1.0)
    drawn = sys.stderr.getvalue()  # type: ignore[attr-defined]
    if progress is False:
        assert drawn == ""
    else:
        assert "\n" not in drawn and "\x1b" not in drawn and " 50%" in drawn
        assert drawn.split("\r")[-2].strip() == "" and drawn.endswith("\r")


def test_nothing_is_drawn_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "_PATIENCE", 0.0)
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_line(None) as tell:
            tell("counting", 0.5)
        assert stream is None or stream.getvalue() == ""


def test_a_cell_of_a_notebook_has_one_display_that_ends_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error would leave a coloured stripe above the first output."""
    cell: list[dict[str, str]] = []

    class Display:
        def __init__(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> None:
            assert raw and display_id
            cell.append(bundle)

        def update(self, bundle: dict[str, str], *, raw: bool) -> None:
            assert raw
            cell.append(bundle)

    ZMQInteractiveShell = type("ZMQInteractiveShell", (), {})  # known by its name
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=ZMQInteractiveShell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=Display))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_line(None) as tell:
        tell("counting", 0.5)
    assert cell == []  # within the first second
    monkeypatch.setattr(show, "_PATIENCE", 0.0)
    monkeypatch.setattr(show, "_PAUSE", 0.0)
    with progress_line(None) as tell:
        tell("counting <b>", 0.25)
        tell("done", 1.0)
    first, second, last = cell
    assert " 25%" in first["text/plain"] and "counting &lt;b&gt;" in first["text/html"]
    assert "100%" in second["text/plain"] and last == {"text/plain": "", "text/html": ""}
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


# ---- interrupts


@pytest.mark.parametrize("at", ["looking", "column weights", "corrections", "all rows", "counting"])
def test_an_interrupt_by_the_function_leaves_nothing_half_done(at: str) -> None:
    before = tb.fit(DATA, schema=SCHEMA)

    def stop(what: str, done: float) -> None:
        if what == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tb.fit(DATA, schema=SCHEMA, progress=stop)
    again = tb.fit(DATA, schema=SCHEMA)
    assert again.tally == before.tally and again.settings == before.settings


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of one that fell where none can be
def test_an_interrupt_by_a_signal_leaves_the_line_erased_and_the_next_fit_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(show, "_PATIENCE", 0.0)
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 20_000)
    data = {f"c{i}": rng.integers(0, 9, 20_000).astype(str).tolist() for i in range(12)} | {"y": y.tolist()}
    old = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # a worker that runs tests may ignore it
    begun = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)  # again, should one fall where Python cannot raise
        with pytest.raises(KeyboardInterrupt):
            [tb.fit(data, "y") for _ in range(100)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        signal.signal(signal.SIGINT, ours)
    assert time.monotonic() - begun < 30
    drawn = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert not drawn or drawn.endswith("\r")
    assert tb.fit(DATA, schema=SCHEMA).settings == tb.fit(DATA, schema=SCHEMA).settings


# ---- tune


def test_tune_is_never_worse_than_fit() -> None:
    table = shared_data.shared("titanic3")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TallybayesWarning)
        parts = tb.split(table, "survived", shares=(0.7, 0.3))
        fitted, tuned = tb.fit(parts["train"], "survived"), tb.tune(parts["train"], "survived")
        assert isinstance(tuned, tb.Tuned)
        losses = [tb.evaluate(m, parts["test"])["log_loss"] for m in (fitted, tuned.model)]
    assert losses[1] <= losses[0] + 0.005
    assert tuned.kept in ("fit", "tuned") and set(tuned.losses) == {"fit", "tuned"}
    if tuned.kept == "fit":
        assert tuned.settings == fitted.settings


def test_tune_takes_the_settings_of_a_fit_and_chooses_weights_anew() -> None:
    fitted = tb.fit(DATA, schema=SCHEMA)
    found = tb.tune(DATA, SCHEMA, settings=fitted.settings)
    assert isinstance(found, tb.Tuned) and calibrated(found.model).changed == 0
    assert "with weights" in repr(found) and found.plain.calibrated is None
    own = tb.tune(DATA, SCHEMA, settings=tb.Settings(weights={"mark": 0.5}))
    assert isinstance(own, tb.Tuned)
    assert own.kept == "plain" and own.settings == own.plain and own.settings.weights == {"mark": 0.5}


def test_lists_that_a_person_gives_bind_whatever_is_kept() -> None:
    found = tb.tune(DATA, SCHEMA, families={"temperature": ["gaussian"]}, smoothing=[tb.Laplace(0.3)], groups="patient")
    assert isinstance(found, tb.Tuned)
    assert found.settings.families["temperature"].name == "gaussian"
    assert "patient" not in found.model.beliefs
