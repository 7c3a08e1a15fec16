"""Where a model comes from: when it was made, by which release, from which files, and what has happened to it since.

A `History` is kept in the model's file and renewed by whatever changes the counts or the weights. It is no part of what
a model is: equal models may have different ones, and no digest knows it. `Provenance` is the page made of it, of the
counts and of the figures by which the fit judged itself. It holds names of files without their folders, times and
numbers of rows, and nothing of the machine or the person.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..base import canon
from ..base.records import misfit
from ..base.show import Page, Shown
from ..data.sources import Source

if TYPE_CHECKING:
    from .model import Model

MOST_SOURCES, MOST_EVENTS = 20, 10  # that are remembered by name
_LONGEST = 100  # characters of a name
_MOST = 1 << 62  # rows, or nats of a loss
_METRICS = {"accuracy": "right answers", "log_loss": "log loss"}


@dataclass(frozen=True)
class Event:
    """What has happened: rows were "added", "forgotten", "taken out" or "merged", or it was "recalibrated"."""

    what: str
    when: str  # in UTC, as 2024-05-31T18:00:00Z
    rows: int  # how many rows, or how many the weights were fitted on


@dataclass(frozen=True)
class FitFigures:
    """Figures on rows that had no part in the model: value, lower and upper end; and how many rows changed since."""

    how: str
    rows: int
    figures: Mapping[str, tuple[float, float, float]]
    changed: int = 0


@dataclass(frozen=True)
class History:
    """What a file remembers of how its model came about; that of a file from before begins with its first event."""

    made: str = ""
    release: str = ""
    sources: tuple[str, ...] = ()  # names of files, without folders
    more: int = 0  # files that are not named, since they were too many
    events: tuple[Event, ...] = ()
    earlier: int = 0  # events that are no longer listed
    held_out: FitFigures | None = None  # None: the settings know how the model was judged, or nobody does

    @classmethod
    def begun(cls, sources: Iterable[str] = ()) -> History:
        """The history of a model that is made now."""
        from .. import __version__

        return cls(_now(), __version__)._with_sources(sources)

    def after(self, what: str, rows: int, sources: Iterable[str] = ()) -> History:
        """One event later; of several alike in a row the last has the rows of all."""
        changed = 0 if what == "recalibrated" else rows
        event, events = Event(what, _now(), rows), list(self.events)
        if changed and events and events[-1].what == what:
            event = replace(event, rows=rows + events.pop().rows)
        events.append(event)
        gone = max(len(events) - MOST_EVENTS, 0)
        held = None if self.held_out is None else replace(self.held_out, changed=self.held_out.changed + changed)
        held = None if what == "recalibrated" else held  # the settings know better now
        out = replace(self, events=tuple(events[gone:]), earlier=self.earlier + gone, held_out=held)
        return out._with_sources(sources)

    def merged(self, others: Iterable[History], rows: int) -> History:
        """The history of a model to which others were added."""
        each = list(others)
        out = self.after("merged", rows, [name for other in each for name in other.sources])
        return replace(out, more=out.more + sum(other.more for other in each))

    def without_names(self) -> History:
        """The history of a copy for others, which does not say what files were called."""
        return replace(self, sources=(), more=self.more + len(self.sources))

    def _with_sources(self, names: Iterable[str]) -> History:
        new = [n for n in dict.fromkeys(names) if n not in self.sources]
        known = (*self.sources, *new)
        return replace(self, sources=known[:MOST_SOURCES], more=self.more + max(len(known) - MOST_SOURCES, 0))

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold."""
        held = self.held_out
        told = None if held is None else {**vars(held), "figures": {m: list(v) for m, v in held.figures.items()}}
        return {
            "made": self.made, "release": self.release, "sources": list(self.sources), "more": self.more,
            "events": [dict(vars(event)) for event in self.events], "earlier": self.earlier, "held_out": told,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, given: Any) -> History:
        """The history in a file; ValueError if it is none."""
        held, events = given["held_out"], [Event(**event) for event in given["events"]]
        if not isinstance(given["sources"], list):
            raise ValueError("the sources are no list")
        told = None
        if held is not None:
            told = FitFigures(**{**held, "figures": {m: tuple(v) for m, v in held["figures"].items()}})
        out = cls(**{**given, "sources": tuple(given["sources"]), "events": tuple(events), "held_out": told})
        wrong = misfit(out)
        if wrong or len(out.sources) > MOST_SOURCES or len(out.events) > MOST_EVENTS:
            raise ValueError(wrong or "more than a file remembers")
        counts = [out.more, out.earlier, *(event.rows for event in out.events)]
        counts += [] if told is None else [told.rows, told.changed]
        figures = {} if told is None else told.figures
        if not all(0 <= n < _MOST for n in counts) or not all(abs(x) < _MOST for v in figures.values() for x in v):
            raise ValueError("numbers that no model has")
        return out


def _now() -> str:
    """The time, to a second; that of SOURCE_DATE_EPOCH where files are to be the same whenever they are made."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = int(given) if re.fullmatch("[0-9]{1,11}", given) else int(time.time())
    return dt.datetime.fromtimestamp(moment, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def names_of(data: Any) -> tuple[str, ...]:
    """What the files behind some data are called, without their folders; none where the data are no files.

    >>> names_of("people/rows.csv"), names_of(["a.csv", "/tmp/b.csv"]), names_of({"x": [1]})
    (('rows.csv',), ('a.csv', 'b.csv'), ())
    """
    if isinstance(data, (str, os.PathLike)):
        name = re.split(r"[/\\]", str(os.fspath(data)).partition("?")[0].rstrip("/\\"))[-1]
        hidden = "@" in name or "://" in str(data)  # an address may have a password in it
        return () if hidden or not name else (canon.printable(name, _LONGEST),)
    if isinstance(data, (list, tuple)) and all(isinstance(each, (str, os.PathLike)) for each in data):
        return tuple(name for each in data for name in names_of(each))
    return names_of(data.files) if isinstance(data, Source) else ()


@dataclass(frozen=True, eq=False, repr=False)
class Provenance(Shown):
    """Where a model comes from, as a page to print: its history, its counts, and the figures of its fit."""

    history: History
    rows: int | None  # None: it was written by hand
    skipped: int
    digest: str | None
    held_out: FitFigures | None = field(default=None)

    @classmethod
    def of(cls, model: Model) -> Provenance:
        """The provenance of a model."""
        tally, calibrated = model.tally, model.settings.calibrated
        held = model.history.held_out
        if held is None and calibrated is not None and calibrated.figures:
            figures = {m: calibrated.interval(m) for m in _METRICS if m in calibrated.figures}
            held = FitFigures("held-out rows", calibrated.judged, figures, calibrated.changed)
        if tally is None:
            return cls(model.history, None, 0, None, held)
        return cls(model.history, tally.rows, tally.skipped, tally.digest, held)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        held = None if self.held_out is None else replace(self.history, held_out=self.held_out).to_dict()["held_out"]
        counted = {"rows": self.rows, "skipped": self.skipped, "digest": self.digest}
        return {**self.history.to_dict(), **counted, "held_out": held}

    def lines(self) -> list[tuple[str, str]]:
        """What it says, line by line: a word, and what it is."""
        history, out = self.history, []
        made = f"{_told(history.made)} by tallybayes {history.release}" if history.made else "nobody wrote down when"
        out.append(("made", made))
        if self.rows is None:
            out.append(("counted", "nothing: it was written by hand"))
        else:
            skipped = f", {self.skipped:,} more without a label" if self.skipped else ""
            out.append(("counted", f"{canon.many(self.rows, 'row')}{skipped}"))
        if history.sources or history.more:
            names = [canon.printable(name, _LONGEST) for name in history.sources]
            if history.more:
                names.append(f"{history.more:,} more" if names else canon.many(history.more, "file"))
            out.append(("from", ", ".join(names)))
        if history.earlier:
            out.append(("changed", f"{canon.many(history.earlier, 'time')} before"))
        for event in history.events:
            on = "weights fitted anew on " if event.what == "recalibrated" else ""
            done = "" if on else f" {canon.printable(event.what, 20)}"
            out.append(("changed", f"{on}{canon.many(event.rows, 'row')}{done}, {_told(event.when)}"))
        if self.held_out is not None and self.held_out.figures:
            held = self.held_out
            told = [
                f"{words} {held.figures[m][0]:.4f} ({held.figures[m][1]:.4f} to {held.figures[m][2]:.4f})"
                for m, words in _METRICS.items()
                if m in held.figures
            ]
            since = f", before {canon.many(held.changed, 'row')} changed" if held.changed else ""
            out.append(("judged", f"by {held.rows:,} {canon.printable(held.how, 60)}: {', '.join(told)}{since}"))
        if self.digest is not None:
            out.append(("digest", self.digest))
        return out

    def _page(self) -> Page:
        return Page("Where the model comes from", [list(line) for line in self.lines()], left=2)


def _told(moment: str) -> str:
    """A time as people read it."""
    return canon.printable(moment.replace("T", " ").replace("Z", " UTC"), 40)
