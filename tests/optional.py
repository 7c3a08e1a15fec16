"""Packages that are not there in every environment in which the tests marked `core` run.

    duckdb = optional.package("duckdb")

is the package, or a stand-in: a test that asks it for anything is skipped, and all others run.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


class _Absent:
    """What stands in for a package that is not installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, asked: str) -> Any:
        if asked.startswith(("_", "pytest")):  # pytest looks at everything in a module
            raise AttributeError(asked)
        pytest.skip(f"{self._name} is not installed")


def is_there(name: str) -> bool:
    return find_spec(name) is not None


def package(name: str) -> Any:
    return import_module(name) if is_there(name) else _Absent(name)


def values(name: str, *asked: str) -> list[Any]:
    """What a package calls so, to be tried in turn; nothing where it is not installed."""
    return [getattr(import_module(name), one) for one in asked] if is_there(name) else []
