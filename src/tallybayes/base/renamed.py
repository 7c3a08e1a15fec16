"""Arguments that had another name first: both work, and the signature shows the one that all verbs share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from .errors import old_name

P = ParamSpec("P")
R = TypeVar("R")


def renamed(*, goes_with_release: str | None = None, **first: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function also take arguments by their first names: renamed(first="now").

    Where the first names will go, `goes_with_release` says when, and whoever uses them is warned.

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
                if goes_with_release is not None:
                    old_name(f"{function.__name__}({before}=…)", f"{first[before]}=…", goes_with_release)
                named[first[before]] = named.pop(before)
            return function(*args, **given)

        return called

    return wrapped
