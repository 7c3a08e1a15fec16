"""Folders for files that nobody keeps: rows that are read again, a download on its way.

They go when whoever needs them goes. Windows takes away no file that is open, so what is left is tried once more when
the process ends; rows of somebody's should not lie about.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

_PREFIX = "tallybayes-"


def folder_of(owner: object) -> str:
    """A new folder that goes when its owner does."""
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    weakref.finalize(owner, cleared, folder)
    return folder


@contextmanager
def folder_for_now() -> Iterator[str]:
    """A new folder that goes when the block ends."""
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    try:
        yield folder
    finally:
        cleared(folder)


def cleared(folder: str) -> None:
    """Take a folder away with all that is in it, at the latest when the process ends."""
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.exists(folder):
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
