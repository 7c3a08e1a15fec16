"""The one gate to the Numba kernels: they are imported when a batch is large enough to repay it, and not before.

Numba is optional, and what the kernels ask of it is partly its own affair: LLVM written by hand, the option `_nrt`, its
events. So nothing rests on it. Where it is absent, cannot be imported, lacks something or has compiled a function that
answers a few numbers otherwise than Python does, the kernels are off for the rest of the process, one line says why,
and every answer comes by the readable road: what was begun with a kernel is done again (`guarded`).
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger("tallybayes")

# Importing Numba and loading a cached kernel costs about as much as NumPy needs for this many cells
BREAK_EVEN = 2_000_000
# Those with which the tests of the kernels pass; with any other, what is found on disk is checked in every process
TRIED = ("0.61", "0.62", "0.63", "0.64", "0.65", "0.68")
FASTER = "pip install 'tallybayes[fast]'"
# What a byte of text, a token and a byte of a CSV are worth; everything else is worth one
_CELLS = {"texts": 0.5, "tokens": 2, "fields": 0.01}
_HELD = ("_kernels", "_row_kernels")  # where an object keeps the kernels that it was given
_work_done = 0
_loaded: list[str] = []  # the version of Numba, once it is
_modules: dict[str, ModuleType] = {}  # that have been imported to the end
_off: list[str] = []  # why there are no kernels in this process, once there are none
_lock = threading.Lock()


class Unfit(Exception):
    """A kernel cannot be trusted, and has not been called: what wanted it is to go the readable road."""


def why_off() -> str | None:
    """Why the kernels are off for the rest of this process; None if they are not."""
    return _off[0] if _off else None


def kernels(of: str, work: int) -> ModuleType | None:
    """The Numba module `moments`, `codes`, `entries`, `fields`, `texts`, `tokens` or `scores`, once that repays itself.

    `work` is how many of them there are to do: cells, entries, bytes of a CSV or of text, tokens.
    """
    if not _repaid(int(_CELLS.get(of, 1) * work)):
        return None
    if of not in _modules:
        try:
            with _uninterrupted():
                _modules[of] = import_module(f".{of}", __package__)  # another thread that imports it is waited for
        except Exception as error:  # an option or a name that this Numba does not have
            unfit(of, f"{type(error).__name__}: {error}")
            return None
    return _modules[of]


def guarded(work: Callable[P, T]) -> Callable[P, T]:
    """The function; if a kernel that it calls is found unfit, it is called again, and goes the readable road.

    It must not have changed what it was given by then. Kernels that an object keeps for its methods are let go.
    """

    @wraps(work)
    def done(*given: P.args, **named: P.kwargs) -> T:
        try:
            return work(*given, **named)
        except Unfit:
            kept = getattr(given[0], "__dict__", {}) if given else {}
            kept.update(dict.fromkeys([name for name in _HELD if name in kept]))
            return work(*given, **named)

    return done


def sure(kernels: ModuleType | None, *names: str) -> ModuleType | None:
    """The same kernels, once these of them are ready: for who writes where it reads, and could not do it again."""
    for name in names if kernels is not None else ():
        getattr(kernels, name).sure()
    return kernels


def unfit(what: str, found: str) -> Unfit:
    """Switch the kernels off for the rest of the process, and say why, once; returns what to raise."""
    version = f"Numba {_loaded[0]}" if _loaded else "Numba"
    untried = f" (untried; tried: {', '.join(TRIED)})" if _loaded and not is_tried(_loaded[0]) else ""
    _switch_off(
        f"tallybayes: {version}{untried} is not used: {what}: {found[:300]}; answers stay right, and take longer",
        logging.WARNING,
    )
    return Unfit(what)


def still_fit() -> None:
    """Raise `Unfit` where the kernels have been switched off since somebody was given them."""
    if _off:
        raise Unfit(_off[0])


def is_tried(version: str) -> bool:
    """Whether the kernels were tried with this Numba.

    >>> is_tried("0.68.1"), is_tried("0.680.1"), is_tried("99.0.0")
    (True, False, False)
    """
    return ".".join(version.split(".")[:2]) in TRIED


def _repaid(cells: int) -> bool:
    """Whether the cells asked for so far would have repaid the import of Numba; it is then imported.

    TALLYBAYES_KERNELS=off keeps it away for good, =on takes it at once; without Numba installed it is never taken.
    """
    global _work_done
    wish = os.environ.get("TALLYBAYES_KERNELS", "auto")
    _work_done += cells
    if _off or wish == "off" or (wish == "auto" and _work_done < BREAK_EVEN):
        return False
    if not _loaded:
        with _lock:
            if not _loaded and not _off:
                _load()
    return not _off


def _load() -> None:
    """Import Numba, or switch the kernels off and say what was in the way."""
    try:
        with _uninterrupted():
            version = _numba()
    except ModuleNotFoundError as error:
        if error.name in ("numba", "llvmlite"):
            return _switch_off(f"tallybayes: batches like this one are faster with Numba: {FASTER}", logging.INFO)
        unfit("import", f"{type(error).__name__}: {error}")
    except Exception as error:  # it refuses a Python or a NumPy that it does not know, in more than one way
        unfit("import", f"{type(error).__name__}: {error}")
    else:
        _loaded.append(version)


def _switch_off(message: str, level: int) -> None:
    if not _off:
        _off.append(message)
        _say(message, level)


def _say(message: str, level: int) -> None:
    """To a person at a terminal; anywhere else to the log."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(message, file=sys.stderr)
    else:
        log.log(level, message)


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
def _numba() -> str:
    """The version of Numba, loaded once. Its first run on a machine compiles, and says so; later ones find the result
    cached.
    """
    event: Any = import_module("numba.core.event")
    version = str(import_module("numba").__version__)
    from .compiling import refresh

    class Compiling(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, e: Any) -> None:
            ours = getattr(e.data.get("dispatcher"), "__module__", "").startswith("tallybayes")
            if ours and not self.said:
                self.said = True
                _say("tallybayes: compiling for this machine, once; it takes a few seconds", logging.INFO)

        def on_end(self, e: Any) -> None:
            """Nothing to say."""

    refresh(is_tried(version))
    event.register("numba:compile", Compiling())
    if not is_tried(version):
        log.info(
            "tallybayes: Numba %s is untried (tried: %s); every kernel is checked before it answers",
            version, ", ".join(TRIED),
        )  # fmt: skip
    return version
