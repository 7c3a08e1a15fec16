"""SciPy, imported when it is first asked for: it takes longer to import than a small model takes to answer."""

from __future__ import annotations

import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any


class _Module:
    """A module that is imported when an attribute is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


class _Sparse(_Module):
    def issparse(self, value: object) -> bool:
        """Whether this is a sparse matrix; while SciPy is not there nothing can be."""
        module: Any = sys.modules.get(self._name)
        return hasattr(module, "issparse") and bool(module.issparse(value))  # it is there before it is whole


special: Any = _Module("scipy.special")
scipy: Any = SimpleNamespace(sparse=_Sparse("scipy.sparse"), special=special)


def gammaln(x: Any) -> Any:
    """log Γ(x)."""
    return special.gammaln(x)


def ndtr(x: Any) -> Any:
    """Φ(x), the normal distribution function."""
    return special.ndtr(x)


def xlogy(x: Any, y: Any) -> Any:
    """x·log y, 0 where x is 0."""
    return special.xlogy(x, y)
