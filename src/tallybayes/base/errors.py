"""Everything tallybayes can refuse, and how it says so.

    TallybayesError
    ├── DataError (ValueError)        the data cannot be read or counted: which row, which column
    ├── SchemaError (ValueError)      the schema is wrong, or does not fit the data or another schema
    ├── SettingsError (ValueError)    a setting is out of range or contradicts the tally
    ├── CannotForget (ValueError)     the rows to forget were never counted
    ├── CannotEstimate (ValueError)   the tally is not one that a model can be asked of
    ├── ModelFileError (ValueError)   a model file is damaged, of another format, or claims what it cannot hold
    ├── FileError (OSError)           a file cannot be read or written; it is as it was
    └── MissingExtra (ImportError)    an optional package is needed

    TallybayesWarning (UserWarning)   the answer stands, but a person should know something about it
    └── OldNameWarning (DeprecationWarning)   a name works and will go: the message has the new one

Every message says what was found and where, then, after a blank line, ``Hint:`` and the call that mends it.
"""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import TypeVar

__all__ = [
    "CannotEstimate",
    "CannotForget",
    "DataError",
    "FileError",
    "MissingExtra",
    "ModelFileError",
    "OldNameWarning",
    "SchemaError",
    "SettingsError",
    "TallybayesError",
    "TallybayesWarning",
    "did_you_mean",
    "excerpt",
    "heard",
    "in_our_words",
    "old_name",
    "unknown",
    "warn",
]


class TallybayesError(Exception):
    """The root of everything that tallybayes raises on purpose; `found` and `hint` are the two halves of its message.

    >>> try:
    ...     tb.fit({"Sky": ["sunny", "rainy"], "Play": ["yes", "no"]}, target="Paly")
    ... except tb.TallybayesError as error:
    ...     print(error.hint)
    did you mean 'Play'? name the column to predict with target='…', or call it 'Paly' in the data.
    """

    def __init__(self, found: str, *, hint: str) -> None:
        found, hint = (s.encode("utf-8", "backslashreplace").decode() for s in (found, hint))  # can be printed
        super().__init__(f"{found}\n\nHint: {hint}")
        self.found = found
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.found, self.hint))


def _rebuild(kind: type[TallybayesError], found: str, hint: str) -> TallybayesError:
    return kind(found, hint=hint)


class DataError(TallybayesError, ValueError):
    """The data cannot be read or counted: which row, which column. It is also a ValueError.

    >>> tb.count({"Sky": ["sunny", "rainy"], "Play": ["yes"]}, "Play")
    Traceback (most recent call last):
    tallybayes.DataError: columns of different lengths: 'Sky' has 2, 'Play' has 1
    <BLANKLINE>
    Hint: give every column one value per row; None stands for a missing one.
    """

    unreadable = False  # whether it is about one cell that its column's kind cannot read


class SchemaError(TallybayesError, ValueError):
    """The schema is wrong, or does not fit the data or another schema. It is also a ValueError.

    >>> tb.Schema([tb.Column("Sky", "catgory")], target="Play")
    Traceback (most recent call last):
    tallybayes.SchemaError: column 'Sky' has the kind 'catgory'
    <BLANKLINE>
    Hint: did you mean 'category'? take one of 'category', 'number', 'text', 'vector', 'bag', 'pair', 'gap',
    'date', 'ignore', 'together'.
    """


class SettingsError(TallybayesError, ValueError):
    """A setting is out of range, has no such name, or contradicts the tally. It is also a ValueError.

    >>> tb.Laplace(-1)
    Traceback (most recent call last):
    tallybayes.SettingsError: alpha is -1
    <BLANKLINE>
    Hint: alpha counts imagined rows: take a number of at least 0.
    """


class CannotForget(TallybayesError, ValueError):
    """The rows to forget were never counted; the tally is as it was. It is also a ValueError.

    >>> tally = tb.count({"Sky": ["sunny", "rainy"], "Play": ["yes", "no"]}, "Play")
    >>> tally.forget({"Sky": "rainy", "Play": "yes"})
    Traceback (most recent call last):
    tallybayes.CannotForget: forgetting would leave column 'Sky', class 'yes', slot 'rainy' at n = -1; nothing has been
    forgotten
    <BLANKLINE>
    Hint: these rows were never counted as they are now: check their labels, weights and values.
    >>> tally.forget({"Sky": "rainy", "Play": "no"})
    Tally: 1 row · yes 1 · 1 column
    """


class CannotEstimate(TallybayesError, ValueError):
    """The tally is not one that a model can be asked of: a difference that no rows have. It is also a ValueError.

    >>> tally = tb.count({"Sky": ["sunny"], "Play": ["yes"]}, "Play")
    >>> (tally - tally - tally).model()
    Traceback (most recent call last):
    tallybayes.CannotEstimate: this tally is a difference that no rows can have: the rows, class 'yes', slot '' at
    n = -1
    <BLANKLINE>
    Hint: estimate a sum of counted rows; subtract only what was added before.
    """


class ModelFileError(TallybayesError, ValueError):
    """A model file is damaged, of another format, or claims what it cannot hold. It is also a ValueError.

    >>> import os
    >>> tb.textbook({"Sky": ["sunny", "rainy"], "Play": ["yes", "no"]}, "Play").save("play.tb.parquet")
    >>> os.truncate("play.tb.parquet", 1000)  # as a copy that was cut short
    >>> tb.load("play.tb.parquet")
    Traceback (most recent call last):
    tallybayes.ModelFileError: play.tb.parquet: no Parquet file, or only a part of one
    <BLANKLINE>
    Hint: give a file that model.save(path) wrote; if it was one, it is damaged.
    """


class FileError(TallybayesError, OSError):
    """A file cannot be read or written; it is as it was. It is also the system's own error, with its `errno`.

    >>> try:
    ...     tb.load("absent")
    ... except FileNotFoundError as error:  # as of any file
    ...     print(error)
    absent cannot be read: No such file or directory
    <BLANKLINE>
    Hint: check the name of the file and of its folder.
    """

    @classmethod
    def of(cls, error: OSError, path: object, verb: str, near: str = "") -> FileError:
        """The system's error about a path, also a PermissionError or FileNotFoundError where that was one.

        `near` says which file may have been meant.
        """
        if isinstance(error, cls):
            return error
        hint = _HINTS.get(error.errno or 0, "check the disk, then try again.")
        return _file_error(f"{path} cannot be {verb}: {error.strerror or error}", near + hint, error.errno)

    def __reduce__(self) -> tuple[object, ...]:
        return (_file_error, (self.found, self.hint, self.errno))


_HINTS = {
    errno.ENOENT: "check the name of the file and of its folder.",
    errno.ENOSPC: "make room on the disk, then try again.",
    errno.EDQUOT: "make room within your quota, then try again.",
    errno.EFBIG: "the system allows no file of this size here: take another place or lift the limit.",
    errno.EACCES: "mend the permissions of the file and its folder, or take another place.",
    errno.EPERM: "mend the permissions of the file and its folder, or take another place.",
    errno.EROFS: "take a place that can be written to.",
    errno.EISDIR: "name a file, not a folder.",
}


def _file_error(found: str, hint: str, number: int | None) -> FileError:
    builtin = OSError if number is None else type(OSError(number, ""))  # the class that the system's error has
    kind = (
        FileError
        if builtin is OSError
        else _file_errors.setdefault(
            builtin, type("FileError", (FileError, builtin), {"__module__": "tallybayes", "__doc__": FileError.__doc__})
        )
    )
    out = kind(found, hint=hint)
    out.errno = number
    return out


_file_errors: dict[type[OSError], type[FileError]] = {}


class MissingExtra(TallybayesError, ImportError):
    """An optional package is needed for this; the hint is the command that installs it. It is also an ImportError.

    >>> raise tb.MissingExtra("pictures need matplotlib", hint="pip install 'tallybayes[plot]'")
    Traceback (most recent call last):
    tallybayes.MissingExtra: pictures need matplotlib
    <BLANKLINE>
    Hint: pip install 'tallybayes[plot]'
    """


class TallybayesWarning(UserWarning):
    """The answer stands, but a person should know something about it.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     model = tb.Model.written({"yes": 0.75, "no": 0.26})
    >>> print(told[0].message)
    the priors add up to 1.01 and were divided by that
    """


class OldNameWarning(TallybayesWarning, DeprecationWarning):
    """A name works as it did and will go: the message has the new one, and the release that the old one goes with.

    A program that is to stop at names that will go says so:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=tb.OldNameWarning)
    >>> warnings.resetwarnings()
    """


for _public in (TallybayesWarning, OldNameWarning, TallybayesError, *TallybayesError.__subclasses__()):
    _public.__module__ = "tallybayes"  # as users import them, so a traceback shows `tallybayes.CannotForget`


_hearing: ContextVar[list[str] | None] = ContextVar("hearing", default=None)


@contextmanager
def heard() -> Iterator[list[str]]:
    """Within it, what this thread would be warned of goes into a list: for a page, where nobody sees a warning."""
    told: list[str] = []
    before = _hearing.set(told)
    try:
        yield told
    finally:
        _hearing.reset(before)


def warn(message: str, kind: type[TallybayesWarning] = TallybayesWarning) -> None:
    """Issue a TallybayesWarning that points at the caller's own line, however deep the library is."""
    told = _hearing.get()
    if told is not None:
        told.append(message)
        return
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tallybayes":
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, kind, stacklevel=depth)


def old_name(before: str, now: str, goes: str) -> None:
    """Say that something is called otherwise now, and with which release the old name goes."""
    warn(f"{before} is called {now} now; the old name goes with release {goes}", OldNameWarning)


E = TypeVar("E", bound=TallybayesError)
_MOST_NAMES, _MOST_CHARACTERS = 5_000, 60  # compared: each pair of names takes time as the square of their lengths
_MOST_LISTED = 20


def unknown(error: type[E], found: str, name: object, known: Iterable[object], hint: str = "") -> E:
    """The refusal of a name that nobody knows: what was found, then the known name nearest to it, then the hint.

    Without a hint of its own the known names are listed.

    >>> raise unknown(SettingsError, "there is no class 'flue'", "flue", ["Flu", "Cold"])
    Traceback (most recent call last):
    tallybayes.SettingsError: there is no class 'flue'
    <BLANKLINE>
    Hint: did you mean 'Flu'? take one of 'Flu', 'Cold'.
    """
    names = list(map(str, known))
    listed = f"take one of {excerpt(names, _MOST_LISTED)}." if names else "there are none."
    return error(found, hint=did_you_mean(name, names) + (hint or listed))


# What JSON that nobody wrote in earnest can end in: wrong types, missing keys, huge numbers, deep nesting
_MEANINGLESS: tuple[type[Exception], ...] = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, NotImplementedError),
    *(RecursionError, TypeError, ValueError),
)


@contextmanager
def in_our_words(
    error: type[TallybayesError], found: str, *, hint: str, more: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Raise `error` for whatever goes wrong while sense is made of a file's content, which may be anything.

    >>> with in_our_words(ModelFileError, "it means nothing", hint="save it again."):
    ...     {}["classes"]
    Traceback (most recent call last):
    tallybayes.ModelFileError: it means nothing: KeyError: 'classes'
    <BLANKLINE>
    Hint: save it again.
    """
    try:
        yield
    except TallybayesError:
        raise
    except _MEANINGLESS + more as wrong:
        raise error(f"{found}: {type(wrong).__name__}: {str(wrong)[:200]}", hint=hint) from wrong


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The known name nearest to `name` as half a sentence, or an empty string.

    >>> did_you_mean("tempo", ["Temp", "Sky"])
    "did you mean 'Temp'? "
    """
    import difflib  # only when something has gone wrong

    by_lower = {k[:_MOST_CHARACTERS].lower(): k for k in map(str, islice(known, _MOST_NAMES))}
    near = difflib.get_close_matches(str(name)[:_MOST_CHARACTERS].lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]!r}? " if near else ""


def excerpt(items: Iterable[object], most: int = 8) -> str:
    """The first few items, quoted, for a message that must stay short.

    >>> excerpt(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    shown = [repr(str(i)[:60]) for i in items]
    rest = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {rest} more" if rest > 0 else "")
