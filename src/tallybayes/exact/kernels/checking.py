"""Whether a compiled function answers a few numbers as Python does.

Every kernel is written in Python, and what it calls is, too, down to the instructions of `llvm`, whose readable twins
are in `llvm_twins`. So there is a twin of every kernel that Numba has no part in: the same lines, read by Python. That
takes a few milliseconds for the few numbers of a probe, and is done when a kernel has been compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from . import llvm, llvm_twins

Given = tuple[Any, ...]  # the arguments of one call
# Where a processor may fuse a product and a sum, or divides before it multiplies, the last bits are its own
_LOOSE = {"add_normal", "add_normal_rows", "best_normal_rows"}
_CLOSE = 1e-12


@cache
def twin(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without Numba: everything it calls is Python, too."""
    assert isinstance(function, FunctionType)
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        value = names.get(name)
        if value is llvm:
            names[name] = llvm_twins
        elif value is not None and value is getattr(llvm, name, None) and not isinstance(value, (ModuleType, type)):
            names[name] = getattr(llvm_twins, name)
        elif (own := getattr(value, "py_func", None)) is not None:
            names[name] = twin(own)
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__)


def by_python(function: Callable[..., Any], given: Given) -> Any:
    """What the twin of a kernel answers; arrays are written to as the kernel would."""
    with np.errstate(all="ignore"):  # integers wrap round, as they do when compiled
        return twin(function)(*given)


def probes(function: Callable[..., Any]) -> Iterator[Given]:
    """The calls that a kernel is checked with; none if it is none of ours."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    from .text_probes import TEXT_PROBES

    if name in TEXT_PROBES:
        return TEXT_PROBES[name]()
    from .probes import PROBES

    return PROBES[name]() if name in PROBES else iter(())


def as_signed(given: Given, signature: Any) -> Given:
    """The arguments of a call, arrays of the kinds that a signature has."""
    kinds = [getattr(t, "dtype", None) for t in signature]
    return tuple(
        np.ascontiguousarray(a, dtype=str(kind)) if isinstance(a, np.ndarray) else a
        for a, kind in zip(given, kinds, strict=True)
    )


def difference(function: Callable[..., Any], made: Callable[..., Any], calls: list[Given]) -> str | None:
    """What a compiled function answers otherwise than Python does; None if nothing."""
    for number, given in enumerate(calls, 1):
        wanted_of, found_of = copied(given), copied(given)
        wanted, found = by_python(function, wanted_of), made(*found_of)
        if not alike(wanted, found, loose=function.__name__ in _LOOSE):
            return f"it answers {_short(found)} where {_short(wanted)} is right (check {number})"
        for place, (right, own) in enumerate(zip(wanted_of, found_of, strict=True), 1):
            if not alike(right, own, loose=function.__name__ in _LOOSE):
                return f"it has written {_short(own)} where {_short(right)} is right (check {number}, array {place})"
    return None


def copied(given: Any) -> Any:
    """Arrays and tuples of arrays to be written to; what is only read stays read-only, which is a type."""
    if isinstance(given, np.ndarray):
        out = given.copy()
        out.flags.writeable = given.flags.writeable
        return out
    if isinstance(given, tuple):
        each = [copied(a) for a in given]
        return type(given)(*each) if hasattr(given, "_fields") else tuple(each)
    return given


def alike(one: Any, other: Any, loose: bool) -> bool:
    """Whether two answers are the same to the last bit, or nearly."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(alike(a, b, loose) for a, b in zip(one, other, strict=True))
    if one is None or other is None:
        return one is other
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape:
        return False
    if loose and a.dtype.kind == "f":
        return bool(np.allclose(a, b, rtol=_CLOSE, atol=_CLOSE, equal_nan=True))
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f"))


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"
