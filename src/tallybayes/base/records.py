"""Whether a record that was read from a file holds what its fields declare: annotations are the one list of types.

A file may come from a stranger. What it says becomes dataclasses whose annotations nobody enforces, so a list where a
text belongs would be found by whichever line happens to use it, long after loading. Here the whole record is looked
through at once, with all records within it.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

_WHOLE = (0, 1)  # what a program may have given for False and True


class Record:
    """A value that works things out about itself when they are asked for, and remembers them.

    It is pickled as it is at one moment: another thread may be about to remember something.
    """

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))


def misfit(record: Any) -> str | None:
    """Which field of a dataclass holds what it cannot, by its way from the record; None if all is as declared.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Floor:
    ...     share: float
    >>> misfit(Floor(0.5)), misfit(Floor("wide"))
    (None, "share='wide', which is no float")
    """
    return next(_wrong(record), None)


def _wrong(record: Any) -> Iterator[str]:
    kind: type = type(record)
    declared = _declared(kind)
    for field in fields(record):
        value, wanted = getattr(record, field.name), declared.get(field.name, Any)
        if not _fits(value, wanted):
            shown = wanted.__name__ if isinstance(wanted, type) and not typing.get_args(wanted) else wanted
            yield f"{field.name}={value!r:.60}, which is no {shown}"
        for where, inner in _within(value, field.name):
            yield from (f"{where}: {found}" for found in _wrong(inner))


@cache
def _declared(record: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(record)
    except (NameError, TypeError):  # of a class made elsewhere, whose annotations mean nothing here
        return {}


def _within(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The records that a value is, or is made of."""
    if is_dataclass(value):
        yield where, value
    elif isinstance(value, (tuple, list)):
        for i, each in enumerate(value):
            yield from _within(each, f"{where}[{i}]")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _within(each, f"{where}[{key!r:.60}]")


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of an annotated type; a list does for a tuple, an int for a float, 0 or 1 for a bool."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is object:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inside)
    if origin is tuple:
        if not isinstance(value, (tuple, list)):
            return False
        each = [inside[0]] * len(value) if len(inside) == 2 and inside[1] is ... else inside
        return len(each) == len(value) and all(map(_fits, value, each))
    if getattr(origin, "__name__", "") == "ndarray":
        import numpy as np  # not before: a tokeniser is a record, too, and one that a mail server waits for

        of = [one for one in typing.get_args(inside[1]) if isinstance(one, type)]
        return isinstance(value, np.ndarray) and all(np.issubdtype(value.dtype, one) for one in of)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_fits(k, inside[0]) and _fits(v, inside[1]) for k, v in value.items())
    if kind is bool:
        return isinstance(value, bool) or value in _WHOLE
    if kind in (int, float):
        return isinstance(value, (int,) if kind is int else (int, float)) and not isinstance(value, bool)
    return not isinstance(kind, type) or isinstance(value, kind)
