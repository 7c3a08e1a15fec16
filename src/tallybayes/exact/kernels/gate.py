"""The one gate to the Numba kernels: they are imported when a batch is large enough to repay it, and not before."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from functools import cache
from types import ModuleType
from typing import Any

from .kernelcache import refresh

log = logging.getLogger("tallybayes")

# Importing Numba and loading a cached kernel costs about as much as NumPy needs for this many cells
BREAK_EVEN = 2_000_000
_work_done = 0


def _repaid(cells: int) -> bool:
    """Whether the cells asked for so far would have repaid the import of Numba; it is then imported.

    TALLYBAYES_KERNELS=off keeps it away for good, =on takes it at once; without Numba installed it is never taken.
    """
    global _work_done
    wish = os.environ.get("TALLYBAYES_KERNELS", "auto")
    _work_done += cells
    if wish == "off" or (wish == "auto" and _work_done < BREAK_EVEN):
        return False
    try:
        _numba()
    except ImportError:
        return False
    return True


def kernels(cells: int) -> ModuleType | None:
    """The Numba module that adds numbers up, once that repays its import; None before that."""
    if not _repaid(cells):
        return None
    from . import moments as module

    return module


@cache
def _numba() -> None:
    """Numba, loaded once. Its first run on a machine compiles, and says so; later ones find the result cached."""
    event: Any = importlib.import_module("numba.core.event")

    class Compiling(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, e: Any) -> None:
            ours = getattr(e.data.get("dispatcher"), "__module__", "").startswith("tallybayes")
            if ours and not self.said:
                self.said = True
                message = "tallybayes: compiling for this machine, once; it takes a few seconds"
                print(message, file=sys.stderr) if sys.stderr.isatty() else log.info(message)

        def on_end(self, e: Any) -> None:
            """Nothing to say."""

    event.register("numba:compile", Compiling())
    refresh()


def text_kernels(size: int) -> ModuleType | None:
    """The Numba module that cuts texts, under the same rule; a byte of text is worth about half a cell."""
    if not _repaid(size // 2):
        return None
    from . import texts as wordscan

    return wordscan


def count_kernels(tokens: int) -> ModuleType | None:
    """The Numba module that counts tokens, under the same rule; a token is worth about two cells."""
    if not _repaid(2 * tokens):
        return None
    from . import countkernels

    return countkernels


def table_kernels(cells: int) -> ModuleType | None:
    """The Numba module that counts codes, under the same rule."""
    if not _repaid(cells):
        return None
    from . import tablekernels

    return tablekernels


def entry_kernels(entries: int) -> ModuleType | None:
    """The Numba module that adds up the entries of sparse matrices, under the same rule."""
    if not _repaid(entries):
        return None
    from . import entries as entrykernels

    return entrykernels


def code_kernels(texts: int) -> ModuleType | None:
    """The Numba module that numbers texts, under the same rule."""
    if not _repaid(texts):
        return None
    from . import codes as codekernels

    return codekernels


def score_kernels(cells: int) -> ModuleType | None:
    """The Numba module that scores, under the same rule."""
    if not _repaid(cells):
        return None
    from . import scores

    return scores


def grid_kernels(cells: int) -> ModuleType | None:
    """The Numba module that scores words under many smoothings, under the same rule."""
    if not _repaid(cells):
        return None
    from . import gridkernels

    return gridkernels
