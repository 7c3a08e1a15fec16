"""Compiled functions, each compiled when it is first called: a first run waits only for what its data need.

No kernel makes an array or counts who holds one (`_nrt`): NumPy makes all room, before a kernel is called or when it
comes back for more. That halves what Numba writes for each function, and so the time that a first run takes.

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

_HOME = Path(__file__).parent
_STAMP = "kernels.sha256"
INDICES = ("int32", "int64")  # of Arrow's and SciPy's arrays
_LOCK = Lock()
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}


def kernel(function: Callable[..., Any], **options: Any) -> Any:
    """A compiled function that Python calls, kept on disk where there is a place to keep it."""
    compiled: Any = nb.njit(**_OPTIONS | options)(function)
    with suppress(RuntimeError):  # no directory can be written: it is compiled in every process
        compiled.enable_caching()
    return compiled


def helper(function: Callable[..., Any]) -> Any:
    """A compiled function that only other kernels call."""
    return kernel(function, no_cpython_wrapper=True)


class LazyKernel:
    """A function of arrays with fixed signatures, each compiled or read from the cache at the first call it fits.

    Every signature has a compiled function of its own, which no thread sees before it is finished: while Numba adds a
    signature to a function, calls of the others from other threads fail.
    """

    def __init__(self, function: Callable[..., Any], signatures: Sequence[str]) -> None:
        self.function = function
        # Arrow's arrays are read-only, which is a type of its own, and one that takes both
        self.signatures = [re.sub(r"const (\w+)\[(.*?)::1\]", _read_only, s) for s in signatures]
        self.ready: dict[tuple[np.dtype[Any], ...], Any] = {}
        self.only: Any = None  # the function of the one signature: who it fits is not asked again
        self.__doc__ = function.__doc__

    def __call__(self, *given: Any) -> Any:
        """The function's answer."""
        if self.only is not None:
            return self.only(*given)
        types = tuple([a.dtype for a in given if type(a) is np.ndarray])
        compiled = self.ready.get(types)
        if compiled is None:
            with _LOCK:
                compiled = self.ready.get(types) or self._compiled(types)
                self.ready[types] = compiled
                self.only = compiled if len(self.signatures) == 1 else None
        return compiled(*given)

    def _compiled(self, types: tuple[np.dtype[Any], ...]) -> Any:
        compiled = kernel(self.function)
        compiled.compile(self._fitting(types))
        compiled.disable_compile()  # arrays that differ only in being writable are no new signature
        return compiled

    def _fitting(self, types: tuple[np.dtype[Any], ...]) -> Any:
        for signature in self.signatures:
            found, _ = nb.core.sigutils.normalize_signature(signature)  # type: ignore[no-untyped-call]
            if tuple(nb.np.numpy_support.as_dtype(t.dtype) for t in found if isinstance(t, nb.types.Array)) == types:
                return found
        raise TypeError(f"a kernel was given arrays of {', '.join(map(str, types))}; it takes {self.signatures}")


def _read_only(array: re.Match[str]) -> str:
    return f"Array({array[1]}, {array[2].count(':') + 1}, 'C', True)"


def lazy(signature: str, **kinds: Sequence[str]) -> Callable[[Callable[..., Any]], LazyKernel]:
    """Make a kernel of a function that is called from Python only, never from another kernel.

    A signature is Numba's; `const` is for arrays that are only read, and `{i}` for each of the kinds i=("int32", …).
    """
    each = [dict(zip(kinds, some, strict=True)) for some in product(*kinds.values())]
    return lambda function: LazyKernel(function, [signature.format(**some) for some in each])


def refresh() -> None:
    """Forget what was compiled from other sources, wherever Numba keeps it for this package."""
    from numba.core.caching import FunctionCache

    with suppress(RuntimeError, OSError):  # no place to keep anything: then nothing is kept, and nothing is old
        forget_old(Path(FunctionCache(refresh).cache_path))  # type: ignore[no-untyped-call]


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
    for index in folder.glob("*.nbi"):
        index.unlink(missing_ok=True)
    kept.write_bytes(stamp.encode())
