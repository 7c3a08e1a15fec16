"""The one gate to the Numba kernels: they are imported when a batch is large enough to repay it, and not before."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

log = logging.getLogger("tallybayes")

# Importing Numba and loading a cached kernel costs about as much as NumPy needs for this many cells
BREAK_EVEN = 2_000_000
_CELLS = {"texts": 0.5, "tokens": 2}  # what a byte of text and a token are worth; everything else is worth one
_work_done = 0
_loaded: list[bool] = []  # once Numba is
_modules: dict[str, ModuleType] = {}  # that have been imported to the end


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
        if not _loaded:
            with _uninterrupted():
                _numba()
            _loaded.append(True)
    except ImportError:
        return False
    return True


def kernels(of: str, work: int) -> ModuleType | None:
    """The Numba module `moments`, `codes`, `entries`, `texts`, `tokens` or `scores`, once that repays its import.

    `work` is how many of them there are to do: cells, entries, bytes of text, tokens.
    """
    if not _repaid(int(_CELLS.get(of, 1) * work)):
        return None
    if of not in _modules:
        with _uninterrupted():
            _modules[of] = import_module(f".{of}", __package__)  # another thread that imports it is waited for
    return _modules[of]


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C is raised when this is over: an import that is cut off would leave half a module behind for good."""
    own = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not None
    if not own:  # a handler that is not Python's could not be put back
        yield
        return
    caught: list[tuple[int, Any]] = []
    before = signal.signal(signal.SIGINT, lambda *given: caught.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if caught and callable(before):
        before(*caught[-1])


@cache
def _numba() -> None:
    """Numba, loaded once. Its first run on a machine compiles, and says so; later ones find the result cached."""
    event: Any = import_module("numba.core.event")
    from .compiling import refresh

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
