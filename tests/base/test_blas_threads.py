"""Linear algebra on one thread while fits go on, and on as many as before when the last of them is over."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from threadpoolctl import ThreadpoolController

from tallybayes.base import threads
from tallybayes.base.threads import one_blas_thread


def limits() -> set[int]:
    """How many threads the libraries of linear algebra would take now."""
    return {library["num_threads"] for library in threads._blas()[0].info()}


@pytest.fixture(autouse=True)
def two() -> Iterator[None]:
    """Two threads before and after, on any machine."""
    libraries = threads._blas()[0]
    if not libraries.info():
        pytest.skip("every library of linear algebra here has its limits by thread")
    before = libraries.limit(limits=2, user_api="blas")
    with libraries.limit(limits=2, user_api="blas"):
        pass  # so that any thread may set limits
    yield
    found = limits()
    with before:
        pass
    assert found == {2}


class Fit:
    """A thread that comes and goes when it is told to, and lives on."""

    def __init__(self) -> None:
        self._told, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._within = self._over = False
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        with ExitStack() as stack:
            self._told.acquire()
            while not self._over:
                if self._within:
                    stack.close()
                else:
                    stack.enter_context(one_blas_thread())
                self._within = not self._within
                self._done.release()
                self._told.acquire()

    def step(self) -> set[int]:
        """Come, or go; the limits behind that."""
        self._told.release()
        assert self._done.acquire(timeout=20)
        return limits()

    def end(self) -> None:
        self._over = True
        self._told.release()
        self._thread.join(20)


@pytest.fixture
def fits() -> Iterator[list[Fit]]:
    out = [Fit() for _ in range(3)]
    yield out
    for fit in out:
        fit.end()


@pytest.mark.parametrize("going", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_first_to_come_sets_the_limit_and_the_last_to_go_restores_it(fits: list[Fit], going: Any) -> None:
    for _ in range(2):
        assert [fit.step() for fit in fits] == [{1}] * 3
        assert [fits[i].step() for i in going] == [{1}, {1}, {2}]
    with one_blas_thread(), one_blas_thread():
        assert limits() == {1}
        assert fits[0].step() == {1}
    assert limits() == {1}
    assert fits[0].step() == {2}


def test_an_error_within_restores_the_limit() -> None:
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert limits() == {2}


def test_libraries_with_limits_by_thread_have_each_thread_limited_and_restored(
    fits: list[Fit], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that notes which thread has set its limit to what."""
    calls, own = [], threads._blas()[0]

    class Library:
        def limit(self, **given: Any) -> Any:
            stack, me = ExitStack(), threading.get_ident()
            calls.append((me, 1))
            stack.callback(lambda: calls.append((threading.get_ident(), 2)))
            return stack

    monkeypatch.setattr(threads, "_blas", lambda: (own, Library()))
    for fit in (*fits, *fits):
        fit.step()
    assert len({thread for thread, _ in calls}) == 3
    for thread in {thread for thread, _ in calls}:
        assert [n for t, n in calls if t == thread] == [1, 2]


def test_every_library_is_of_one_of_both_sorts() -> None:
    both = [library["filepath"] for some in threads._blas() for library in some.info()]
    assert sorted(both) == sorted(found["filepath"] for found in ThreadpoolController().select(user_api="blas").info())
