"""Compiled functions, each compiled when it is first called: a first run waits only for what its data need.

No kernel makes an array or counts who holds one (`_nrt`): NumPy makes all room, before a kernel is called or when it
comes back for more. That halves what Numba writes for each function, and so the time that a first run takes.

What was compiled has answered a few numbers as Python does (`checking`) before it answers anything else.

Numba knows a compiled function on disk by the file it is written in. What it calls from another file is compiled into
it, and if only that file has changed since, say by an upgrade, the old code would run on: `refresh` sees to that.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any

import numba as nb
import numpy as np

from . import gate

_HOME = Path(__file__).parent
_STAMP = "kernels.sha256"
_CHECKED = "kernels.checked"  # which functions on disk have answered as Python does, a line for each
INDICES = ("int32", "int64")  # of Arrow's and SciPy's arrays
_LOCK = Lock()
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Numba's own function, kept on disk where there is a place to keep it."""
    out: Any = nb.njit(**_OPTIONS | options)(function)
    with suppress(RuntimeError):  # no directory can be written: it is compiled in every process
        out.enable_caching()
    return out


def helper(function: Callable[..., Any]) -> Any:
    """A compiled function that only other kernels call."""
    return compiled(function, no_cpython_wrapper=True)


class LazyKernel:
    """A function that Python calls, compiled or read from the cache, and checked, at the first call.

    It has fixed signatures, or that of the numbers it is checked with. Each has a compiled function of its own, which
    no thread sees before it is finished: while Numba adds a signature to a function, calls of the others from other
    threads fail.
    """

    def __init__(self, function: Callable[..., Any], signatures: Sequence[str] = ()) -> None:
        self.function = function
        # Arrow's arrays are read-only, which is a type of its own, and one that takes both
        self.signatures = [re.sub(r"const (\w+)\[(.*?)::1\]", _read_only, s) for s in signatures]
        self.ready: dict[tuple[np.dtype[Any], ...], Any] = {}
        self.only: Any = None  # the function of the one signature: who it fits is not asked again
        self.__doc__ = function.__doc__

    def __call__(self, *given: Any) -> Any:
        """The function's answer; `gate.Unfit` where it cannot be had from Numba."""
        made = self.only
        if made is None:
            types = tuple([a.dtype for a in given if type(a) is np.ndarray]) if len(self.signatures) > 1 else ()
            made = self.ready.get(types) or self._made(types)
        try:
            return made(*given)
        except TypeError as error:  # by Numba, which has no function for such arguments; nothing has been done
            raise gate.unfit(self.function.__name__, f"it was called with other arguments: {error}") from error

    def sure(self) -> None:
        """Have the function of the one signature ready, or raise `gate.Unfit`: for who writes where it reads."""
        if self.only is None:
            self._made(())

    def _made(self, types: tuple[np.dtype[Any], ...]) -> Any:
        with _LOCK:
            made = self.ready.get(types)
            if made is None:
                gate.still_fit()
                made = self._compiled(self._fitting(types) if self.signatures else ())
                self.ready[types] = made
                self.only = made if len(self.signatures) < 2 else None
        return made

    def _compiled(self, signature: tuple[Any, ...]) -> Any:
        """The function for a signature, or for the arguments that it is checked with."""
        from . import checking

        try:
            made = compiled(self.function)
            if not self.signatures:
                signature = tuple(map(nb.typeof, next(checking.probes(self.function))))
            made.compile(signature)
            made.disable_compile()  # arrays that differ only in being writable are no new signature
            name = f"{self.function.__module__}.{self.function.__name__} {signature}"
            if made.stats.cache_hits and name in Checked.of_disk:
                return made
            calls = checking.probes(self.function)
            signed = [checking.as_signed(c, signature) for c in calls] if self.signatures else list(calls)
            found = checking.difference(self.function, made, signed)
        except Exception as error:  # whatever an unknown Numba may raise
            raise gate.unfit(self.function.__name__, f"{type(error).__name__}: {error}") from error
        if found is not None:
            Checked.of_disk.forget()
            raise gate.unfit(self.function.__name__, found)
        Checked.of_disk.add(name)
        return made

    def _fitting(self, types: tuple[np.dtype[Any], ...]) -> Any:
        for signature in self.signatures:
            found, _ = nb.core.sigutils.normalize_signature(signature)  # type: ignore[no-untyped-call]
            arrays = (t for t in found if isinstance(t, nb.types.Array))
            if not types or tuple(nb.np.numpy_support.as_dtype(t.dtype) for t in arrays) == types:
                return found
        raise TypeError(f"a kernel was given arrays of {', '.join(map(str, types))}; it takes {self.signatures}")


def _read_only(array: re.Match[str]) -> str:
    return f"Array({array[1]}, {array[2].count(':') + 1}, 'C', True)"


def kernel(function: Callable[..., Any]) -> LazyKernel:
    """Make a kernel of a function that Python calls with arguments of one kind: those it is checked with."""
    return LazyKernel(function)


def lazy(signature: str, **kinds: Sequence[str]) -> Callable[[Callable[..., Any]], LazyKernel]:
    """Make a kernel of a function that is called from Python only, never from another kernel.

    A signature is Numba's; `const` is for arrays that are only read, and `{i}` for each of the kinds i=("int32", …).
    """
    each = [dict(zip(kinds, some, strict=True)) for some in product(*kinds.values())]
    return lambda function: LazyKernel(function, [signature.format(**some) for some in each])


class Checked:
    """Which functions on disk have been checked, under this Numba and for this processor.

    An untried Numba has none: what it finds on disk is checked in every process.
    """

    of_disk: Checked

    def __init__(self, folder: Path | None, under: str) -> None:
        self.folder, self.under = folder, under
        self.names: set[str] = set()
        if folder is not None:
            with suppress(OSError):
                self.names.update((folder / _CHECKED).read_text().split())

    def _mark(self, name: str) -> str:
        return hashlib.sha256(f"{self.under} {name}".encode()).hexdigest()[:32]

    def __contains__(self, name: str) -> bool:
        return self._mark(name) in self.names

    def add(self, name: str) -> None:
        """Remember a function that has been checked."""
        if self.folder is not None and name not in self:
            self.names.add(self._mark(name))
            with suppress(OSError), (self.folder / _CHECKED).open("a") as file:
                file.write(f"{self._mark(name)}\n")

    def forget(self) -> None:
        """Trust nothing on disk any longer: something there is wrong, and was written under a name that was right."""
        self.names.clear()
        if self.folder is not None:
            with suppress(OSError):
                (self.folder / _CHECKED).unlink(missing_ok=True)


Checked.of_disk = Checked(None, "")  # of a kernel that did not come through the gate nothing is known


def refresh(tried: bool) -> None:
    """Forget what was compiled from other sources, wherever Numba keeps it for this package."""
    import llvmlite
    from numba.core.caching import FunctionCache
    from numba.core.registry import cpu_target

    folder = None
    with suppress(RuntimeError, OSError):  # no place to keep anything: then nothing is kept, and nothing is old
        folder = Path(FunctionCache(refresh).cache_path)  # type: ignore[no-untyped-call]
        forget_old(folder)
    processor = cpu_target.target_context.codegen().magic_tuple()
    under = f"{nb.__version__} {llvmlite.__version__} {processor}"
    Checked.of_disk = Checked(folder if tried else None, under)


def forget_old(folder: Path) -> None:
    """Remove the index of every compiled function in a folder unless all were made of these sources.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "words.count-9.nbi").touch()
    >>> forget_old(folder)
    >>> [p.name for p in folder.iterdir()]
    ['kernels.sha256']
    """
    sources = (hashlib.sha256(path.read_bytes()).digest() for path in sorted(_HOME.glob("*.py")))
    stamp = hashlib.sha256(b"".join(sources)).hexdigest()
    kept = folder / _STAMP
    if kept.exists() and kept.read_bytes() == stamp.encode():
        return
    for index in (*folder.glob("*.nbi"), folder / _CHECKED):
        index.unlink(missing_ok=True)
    kept.write_bytes(stamp.encode())
