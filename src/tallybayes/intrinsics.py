"""A few instructions that Numba has no word for, written in LLVM's language, which knows them on every processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

intrinsic: Callable[[Any], Any] = _intrinsic  # its own annotation does not know that the first argument is Numba's

_BYTE, _BIT, _INT, _WORD = ir.IntType(8), ir.IntType(1), ir.IntType(32), ir.IntType(64)
_BLOCK, _EIGHT = ir.VectorType(_BYTE, 64), ir.VectorType(ir.DoubleType(), 8)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, place: Any, to: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), to.as_pointer())


@intrinsic
def eight(typing: Any, data: Any, place: Any) -> Any:
    """The eight bytes from a place on as one number, the first in the lowest place."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], args[0], args[1], _WORD), align=1)

    return types.uint64(data, types.uint64), code


@intrinsic
def trailing_zeros(typing: Any, word: Any) -> Any:
    """The place of the lowest bit that is set; 64 if there is none."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], _BIT(0))

    return types.uint64(types.uint64), code


@intrinsic
def ones(typing: Any, word: Any) -> Any:
    """How many bits are set."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), code


@intrinsic
def prefetch(typing: Any, array: Any, place: Any) -> Any:
    """Ask for an element that will be read soon."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1], _BYTE)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
        name = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        builder.call(name, [pointer, _INT(0), _INT(3), _INT(1)])  # for reading, to stay, data
        return context.get_dummy_value()

    return types.void(array, types.uint64), code


@intrinsic
def fold_block(typing: Any, data: Any, place: Any, out: Any, to: Any, lower: Any) -> Any:
    """Copy 64 bytes, ASCII letters in lower case if asked for; the bits say which belong to words or are not ASCII."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def all_of(byte: int) -> Any:
            return ir.Constant(_BLOCK, [byte] * 64)

        def within(first: int, count: int, of: Any) -> Any:
            return builder.icmp_unsigned("<", builder.sub(of, all_of(first)), all_of(count))

        given = builder.load(_pointer(context, builder, signature.args[0], args[0], args[1], _BLOCK), align=1)
        capital = builder.select(within(ord("A"), 26, given), all_of(32), all_of(0))
        folded = builder.or_(given, builder.select(args[4], capital, all_of(0)))
        letter = within(ord("a"), 26, builder.or_(given, all_of(32)))
        rest = builder.or_(within(ord("0"), 10, given), builder.icmp_unsigned("==", given, all_of(ord("_"))))
        high = builder.icmp_signed("<", given, all_of(0))
        builder.store(folded, _pointer(context, builder, signature.args[2], args[2], args[3], _BLOCK), align=1)
        return builder.bitcast(builder.or_(builder.or_(letter, rest), high), _WORD)

    return types.uint64(data, types.uint64, out, types.uint64, types.boolean), code


@intrinsic
def add_four(typing: Any, table: Any, a: Any, b: Any, c: Any, d: Any, out: Any, to: Any) -> Any:
    """Add to eight doubles of `out` the eight from each of four places of a table."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def at(array: int, place: Any) -> Any:
            return _pointer(context, builder, signature.args[array], args[array], place, _EIGHT)

        w, x, y, z = (builder.load(at(0, place), align=8) for place in args[1:5])
        total = builder.fadd(
            builder.load(at(5, args[6]), align=8), builder.fadd(builder.fadd(w, x), builder.fadd(y, z))
        )
        builder.store(total, at(5, args[6]), align=8)
        return context.get_dummy_value()

    place = types.uint64
    return types.void(table, place, place, place, place, out, place), code


@intrinsic
def add_scaled(typing: Any, table: Any, place: Any, by: Any, out: Any, to: Any) -> Any:
    """Add to eight doubles of `out` the eight from a place of a table, multiplied by a number."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = _pointer(context, builder, signature.args[0], args[0], args[1], _EIGHT)
        target = _pointer(context, builder, signature.args[3], args[3], args[4], _EIGHT)
        first = builder.insert_element(ir.Constant(_EIGHT, ir.Undefined), args[2], _INT(0))
        factor = builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_INT, 8), [0] * 8))
        more = builder.fmul(factor, builder.load(source, align=8))
        builder.store(builder.fadd(builder.load(target, align=8), more), target, align=8)
        return context.get_dummy_value()

    return types.void(table, types.uint64, types.float64, out, types.uint64), code
