"""Compiled kernels that are still those of the sources.

Numba knows a compiled function by the file it is written in. What it calls from another file is compiled into it, and
if only that file has changed since, say by an upgrade, the old code would run on.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

_HOME = Path(__file__).parent
SOURCES = ("*.py",)
_STAMP = "kernels.sha256"


def refresh() -> None:
    """Forget what was compiled from other sources, wherever Numba keeps it for this package."""
    from numba.core.caching import FunctionCache

    with suppress(RuntimeError, OSError):  # no place to keep anything: then nothing is kept, and nothing is old
        forget_old(Path(FunctionCache(refresh).cache_path))  # type: ignore[no-untyped-call]


def forget_old(folder: Path) -> None:
    """Remove the index of every compiled function in a folder unless all were made of these sources.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "textkernels.count-9.nbi").touch()
    >>> forget_old(folder)
    >>> [p.name for p in folder.iterdir()]
    ['kernels.sha256']
    """
    sources = sorted({path for pattern in SOURCES for path in _HOME.glob(pattern)})
    stamp = hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in sources)).hexdigest()
    kept = folder / _STAMP
    if kept.exists() and kept.read_text() == stamp:
        return
    for index in folder.glob("*.nbi"):
        index.unlink(missing_ok=True)
    kept.write_text(stamp)
