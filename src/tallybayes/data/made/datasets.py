"""Data to begin with, so that every page runs anywhere: tables of the lectures, examples, and generators.

    tb.datasets.names()                      all of them
    tb.datasets.clinic()                     five patients; the columns are a dict that every call takes
    tb.datasets.mixed(10_000, seed=3)        any number of rows, the same on every machine
    tb.datasets.load("tennis")               one by its name

Everything is invented, or a worked example of the lectures. Of generated rows the truth is known, and kept beside them.

>>> import tallybayes as tb
>>> data = tb.datasets.clinic()
>>> tb.textbook(data, data.target).predict(data.truth["asked"]["Ann"]).tolist()
['Cold']
"""

from __future__ import annotations

import csv
import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...base.disk import file_errors
from ...base.errors import SettingsError, unknown
from ..sources import example
from .dataset import Dataset
from .generated import dependent, drift, humps, mixed
from .tables import (
    abc,
    census,
    clinic,
    eight_days,
    heights,
    labels,
    messages,
    play,
    same_weather,
    spam_words,
    sports,
    tennis,
    urn,
)  # fmt: skip
from .texts import mail_of, tickets

__all__ = [
    "Dataset",
    "abc",
    "census",
    "clinic",
    "dependent",
    "drift",
    "eight_days",
    "flats",
    "heights",
    "humps",
    "inbox",
    "labels",
    "load",
    "mails",
    "messages",
    "mixed",
    "names",
    "play",
    "same_weather",
    "spam_words",
    "sports",
    "tennis",
    "tickets",
    "urn",
]

_FLATS: Mapping[str, Callable[[str], Any]] = {"number": int, "rooms": int, "size": float, "rent": float}


def flats() -> Dataset:
    """240 invented flats, and whether they were let fast: the table of `tb.example("flats.csv")`.

    >>> data = tb.datasets.flats()
    >>> data.rows, data.target, data["rooms"][:3], data["size"].count(None)
    (240, 'let', [2, 2, ...], 18)
    """
    with open(example("flats.csv"), newline="", encoding="utf-8") as file:
        heads, *rows = csv.reader(file)
    columns = {
        name: [_FLATS.get(name, str)(cell) if cell else None for cell in cells]
        for name, cells in zip(heads, zip(*rows, strict=True), strict=True)
    }
    about = "Flats of a town: are they let fast or slowly? Invented."
    return Dataset(columns, name="flats", target="let", about=about)


def inbox(to: str | os.PathLike[str] | None = None) -> Dataset:
    """The sixty invented messages of `tb.example("inbox")`, as text; with `to`, a folder, also as files in it.

    >>> data = tb.datasets.inbox()
    >>> data.rows, data["file"][0], data["label"].count("spam")
    (60, 'ham/01-monday-meeting.eml', 26)
    """
    folder = example("inbox")
    files = sorted(folder.rglob("*.eml"))
    columns: dict[str, list[Any]] = {
        "file": [path.relative_to(folder).as_posix() for path in files],
        "message": [path.read_bytes().decode("utf-8") for path in files],
        "label": [path.parent.name for path in files],
    }
    about = "The mail of one person, sorted by hand. Invented."
    data = Dataset(columns, name="inbox", target="label", about=about)
    if to is not None:
        write_messages(data, to)
    return data


def mails(rows: int = 200, seed: int = 0, *, to: str | os.PathLike[str] | None = None) -> Dataset:
    """Made messages with their headers, as text; with `to`, a folder, also as files, which `tallybayes.mail` reads.

    truth["kind"] says of which kind each one is: work, friends, receipts; prizes, pills or phishing.

    >>> data = tb.datasets.mails(3)
    >>> data["message"][0].splitlines()[0].startswith("Return-Path: <")
    True
    """
    data = mail_of(rows, seed)
    if to is not None:
        write_messages(data, to)
    return data


def write_messages(data: Dataset, to: str | os.PathLike[str]) -> None:
    """Write messages into the folders of their labels; a file that is there already stays as it is."""
    for name, message in zip(data["file"], data["message"], strict=True):
        path = Path(to) / name
        with file_errors(path, "written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_bytes(message.encode())


def names() -> list[str]:
    """The names of all data sets, the lectures' tables first.

    >>> tb.datasets.names()[:3], "mixed" in tb.datasets.names()
    (['clinic', 'play', 'tennis'], True)
    """
    return list(_MADE)


def load(name: str, **options: Any) -> Dataset:
    """The data set of this name; `rows`, `seed` and what else its function takes are given by name.

    >>> tb.datasets.load("mixed", rows=5, seed=1).rows
    5
    """
    if name not in _MADE:
        raise unknown(SettingsError, f"there is no data set {name!r}", name, _MADE)
    taken = inspect.signature(_MADE[name]).parameters
    for option in options:
        if option not in taken:
            hint = f"it takes {', '.join(taken)}." if taken else "it takes nothing: its rows are what they are."
            raise SettingsError(f"the data set {name!r} does not take {option}=", hint=hint)
    return _MADE[name](**options)


_MADE: Mapping[str, Callable[..., Dataset]] = {
    made.__name__: made
    for made in (
        clinic, play, tennis, eight_days, same_weather, labels, urn, heights, sports, messages, spam_words, abc, census,
        flats, inbox, mixed, dependent, drift, humps, tickets, mails,
    )
}  # fmt: skip
