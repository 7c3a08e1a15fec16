"""A progress bar for a person at a terminal; nothing for anybody else."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

_PATIENCE = 1.0  # seconds before a bar is worth looking at


@contextlib.contextmanager
def bar(what: str = "reading", stream: Any = None) -> Iterator[Callable[[int, float | None], None] | None]:
    """A callback for `tb.read(…, progress=…)` that draws a bar on standard error, or None where nobody watches.

    The bar appears after a second and leaves no trace. Reading again, as `fit` does, starts it again.

    >>> import io
    >>> with bar("counting", io.StringIO()) as tell:
    ...     print(tell)
    None
    """
    stream = sys.stderr if stream is None else stream
    if not stream.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]:,} rows"))
    shown = Progress(*columns, TimeRemainingColumn(), console=Console(file=stream), transient=True)
    task = shown.add_task(what, total=None, rows=0)
    begun = time.monotonic()
    before = 0

    def tell(rows: int, share: float | None) -> None:
        nonlocal before
        if rows < before:
            shown.reset(task, rows=0)
        before = rows
        if not shown.live.is_started and time.monotonic() - begun > _PATIENCE:
            shown.start()
        shown.update(task, total=None if share is None else 1.0, completed=share or 0.0, rows=rows)

    try:
        yield tell
    finally:
        if shown.live.is_started:
            shown.stop()
