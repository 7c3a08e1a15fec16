"""Threads over batches: exact sums do not care about the order, and the hot loops release the interpreter's lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .errors import SettingsError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

A = TypeVar("A")
B = TypeVar("B")


def threads() -> int:
    """How many threads to use: TALLYBAYES_THREADS, or the cores this process may run on."""
    wish = os.environ.get("TALLYBAYES_THREADS")
    if wish is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not wish.isdigit() or int(wish) < 1:
        raise SettingsError(f"TALLYBAYES_THREADS={wish!r}", hint="set it to a whole number of at least 1.")
    return int(wish)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Linear algebra on this thread alone: on small matrices its threads wait for each other ten times as long as they
    work.

    Most libraries have one limit for the whole process: the first who comes sets it, and the last who goes restores it,
    on whichever thread that is.
    """
    by_process, by_thread = _blas()
    with by_thread.limit(limits=1, user_api="blas"):
        with _Limited.lock:
            if _Limited.by == 0:
                _Limited.before = by_process.limit(limits=1, user_api="blas")
                with by_process.limit(limits=1, user_api="blas"):
                    pass  # on its way out it lets other threads set limits, too
            _Limited.by += 1
        try:
            yield
        finally:
            with _Limited.lock:
                _Limited.by -= 1
                if _Limited.by == 0:
                    with _Limited.before:
                        _Limited.before = None


class _Limited:
    """By how many the libraries of this process are limited at the moment, and what they were before that."""

    lock, by, before = Lock(), 0, cast(Any, None)


@cache
def _blas() -> tuple[ThreadpoolController, ThreadpoolController]:
    """The libraries of linear algebra with a limit for the process, and those with one for each thread.

    They are looked for once: that takes longer than to fit a small table.
    """
    import scipy.linalg.blas  # noqa: F401 - has a library of its own, and one that is loaded later knows no limit
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas")
    each = {True: list[str](), False: list[str]()}
    for library in found.info():
        each[library.get("threading_layer") == "openmp"].append(library["filepath"])
    return found.select(filepath=each[False]), found.select(filepath=each[True])


def each(work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """work(item) for every item, in order; a few at a time, so that a long stream is never held in memory."""
    waiting = iter(items)
    first = list(_take(waiting, 2))
    count = threads() if len(first) == 2 else 1
    if count == 1:
        yield from map(work, first)
        yield from map(work, waiting)
        return
    with ThreadPoolExecutor(count) as pool:
        going: deque[Future[B]] = deque([pool.submit(work, first[1])])
        yield work(first[0])  # on this thread: a warning about the data finds the caller's line
        for item in waiting:
            going.append(pool.submit(work, item))
            if len(going) > count:
                yield going.popleft().result()
        while going:
            yield going.popleft().result()


def parallel(jobs: Sequence[Callable[[], B]]) -> list[B]:
    """The results of some jobs, run side by side; the last one on this thread."""
    if len(jobs) < 2:
        return [job() for job in jobs]
    with ThreadPoolExecutor(len(jobs) - 1) as pool:
        going = [pool.submit(job) for job in jobs[:-1]]
        last = jobs[-1]()
        return [*(g.result() for g in going), last]


def _take(items: Iterator[A], most: int) -> Iterator[A]:
    for _ in range(most):
        try:
            yield next(items)
        except StopIteration:
            return
