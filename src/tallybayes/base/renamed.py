"""Arguments that had another name first: both work, and the signature shows the one that all verbs share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**first: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function also take arguments by their first names: renamed(first="now").

    >>> @renamed(figures="metrics")
    ... def curve(metrics=()):
    ...     return metrics
    >>> curve(figures=["accuracy"])
    ['accuracy']
    """

    def wrapped(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def called(*args: P.args, **given: P.kwargs) -> R:
            named: Any = given
            for before in first.keys() & named.keys():
                if first[before] in named:
                    raise TypeError(f"{function.__name__}() got {before} beside {first[before]}, which mean the same")
                named[first[before]] = named.pop(before)
            return function(*args, **given)

        return called

    return wrapped
