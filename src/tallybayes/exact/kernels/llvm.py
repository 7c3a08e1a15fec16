"""A few instructions that Numba has no word for, written in LLVM's language, which knows them on every processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

intrinsic: Callable[[Any], Any] = _intrinsic  # its own annotation does not know that the first argument is Numba's

_BYTE, _BIT, _INT, _WORD = ir.IntType(8), ir.IntType(1), ir.IntType(32), ir.IntType(64)
_BLOCK, _EIGHT = ir.VectorType(_BYTE, 64), ir.VectorType(ir.DoubleType(), 8)
_WORDS = ir.VectorType(_WORD, 8)
_FAR = 1e298  # of a sum of squares: one more, or one that is not a number, is to be looked at again


def _pointer(context: Any, builder: Any, signature: Any, args: Any, array: int, place: Any, kind: Any = _EIGHT) -> Any:
    """Where something of this kind stands, from a place on in the array that is argument so and so."""
    data = context.make_array(signature.args[array])(context, builder, args[array]).data
    return builder.bitcast(builder.gep(data, [place]), kind.as_pointer())


@intrinsic
def eight(typing: Any, data: Any, place: Any) -> Any:
    """The eight bytes from a place on as one number, the first in the lowest place."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature, args, 0, args[1], _WORD), align=1)

    return types.uint64(data, types.uint64), code


def _of_word(instruction: Callable[[Any, Any], Any]) -> Any:
    """One instruction from 64 bits to 64 bits."""

    def of(typing: Any, word: Any) -> Any:
        return types.uint64(types.uint64), lambda context, builder, signature, args: instruction(builder, args[0])

    return intrinsic(of)


trailing_zeros = _of_word(lambda builder, word: builder.cttz(word, _BIT(0)))  # the lowest bit that is set; 64: none
ones = _of_word(lambda builder, word: builder.ctpop(word))  # how many bits are set


@intrinsic
def prefetch(typing: Any, array: Any, place: Any) -> Any:
    """Ask for an element that will be read soon."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature, args, 0, args[1], _BYTE)
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

        given = builder.load(_pointer(context, builder, signature, args, 0, args[1], _BLOCK), align=1)
        capital = builder.select(within(ord("A"), 26, given), all_of(32), all_of(0))
        folded = builder.or_(given, builder.select(args[4], capital, all_of(0)))
        letter = within(ord("a"), 26, builder.or_(given, all_of(32)))
        rest = builder.or_(within(ord("0"), 10, given), builder.icmp_unsigned("==", given, all_of(ord("_"))))
        high = builder.icmp_signed("<", given, all_of(0))
        builder.store(folded, _pointer(context, builder, signature, args, 2, args[3], _BLOCK), align=1)
        return builder.bitcast(builder.or_(builder.or_(letter, rest), high), _WORD)

    return types.uint64(data, types.uint64, out, types.uint64, types.boolean), code


@intrinsic
def marks_of(typing: Any, data: Any, place: Any, sign: Any) -> Any:
    """A bit for each of the 64 bytes from a place on: whether it is this sign or ends a line."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = builder.load(_pointer(context, builder, signature, args, 0, args[1], _BLOCK), align=1)
        one = builder.insert_element(ir.Constant(_BLOCK, ir.Undefined), args[2], _INT(0))
        found = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INT, 64), [0] * 64))
        found = builder.icmp_unsigned("==", given, found)
        for end in b"\n\r":
            found = builder.or_(found, builder.icmp_unsigned("==", given, ir.Constant(_BLOCK, [end] * 64)))
        return builder.bitcast(found, _WORD)

    return types.uint64(data, types.uint64, types.uint8), code


def _loop(builder: Any, start: Any, stop: Any, first: list[Any], body: Callable[[Any, list[Any]], list[Any]]) -> Any:
    """A loop over places that keeps its state in registers: state = body(place, state)."""
    before, head = builder.block, builder.append_basic_block("head")
    inside, after = builder.append_basic_block("inside"), builder.append_basic_block("after")
    builder.branch(head)
    builder.position_at_end(head)
    place, *state = (builder.phi(v.type) for v in (start, *first))
    builder.cbranch(builder.icmp_unsigned("<", place, stop), inside, after)
    builder.position_at_end(inside)
    after_one = [builder.add(place, _WORD(1)), *body(place, state)]
    for phi, at_first, then in zip((place, *state), (start, *first), after_one, strict=True):
        phi.add_incoming(at_first, before)
        phi.add_incoming(then, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return state


@intrinsic
def add_table_rows(
    typing: Any, table: Any, rows: Any, start: Any, stop: Any, width: Any, left: Any, out: Any, to: Any
) -> Any:
    """Add to eight doubles of `out` those from `left` on in some rows of a table of this width, by fours of rows."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = partial(_pointer, context, builder, signature, args)

        def four(place: Any, state: list[Any]) -> list[Any]:
            found, first = [], builder.shl(place, _WORD(2))
            for i in range(4):
                row = builder.load(at(1, builder.add(first, _WORD(i)), number))
                row = builder.zext(row, _WORD) if number is not _WORD else row
                found.append(builder.load(at(0, builder.add(builder.mul(row, args[4]), args[5])), align=8))
            w, x, y, z = found
            return [builder.fadd(state[0], builder.fadd(builder.fadd(w, x), builder.fadd(y, z)))]

        number = _INT if signature.args[1].dtype.bitwidth == 32 else _WORD
        (total,) = _loop(builder, args[2], args[3], [ir.Constant(_EIGHT, [0.0] * 8)], four)
        before = builder.load(at(6, args[7]), align=8)
        builder.store(builder.fadd(before, total), at(6, args[7]), align=8)
        return context.get_dummy_value()

    place = types.uint64
    return types.void(table, rows, place, place, place, place, out, place), code


def _adding(size: int) -> Any:
    """Add to `size` doubles of `out` those from a place on in a table."""
    kind = ir.VectorType(ir.DoubleType(), size)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = partial(_pointer, context, builder, signature, args)
        total = builder.load(at(2, args[3], kind), align=8)
        total = builder.fadd(total, builder.load(at(0, args[1], kind), align=8))
        builder.store(total, at(2, args[3], kind), align=8)
        return context.get_dummy_value()

    def one(typing: Any, table: Any, a: Any, out: Any, to: Any) -> Any:
        return types.void(table, types.intp, out, types.intp), code

    return intrinsic(one)


add_eight, add_four, add_two, add_one = (_adding(size) for size in (8, 4, 2, 1))


def _gathering(*sizes: int) -> Any:
    """Add to blocks of doubles of `out` those of some rows of a table, one after the other, without leaving registers.

    `count` numbers of rows stand a step apart from a place on; the blocks follow each other from `left` on, the last
    of them at `last`. It may overlap the one before: all are read before the first is written. `anew` forgets what
    `out` held.
    """
    kinds = [ir.VectorType(ir.DoubleType(), size) for size in sizes]

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = partial(_pointer, context, builder, signature, args)
        first, step, count, width, to, left, last, anew = (args[i] for i in (1, 2, 3, 5, 7, 8, 9, 10))
        begins = [*(builder.add(left, _WORD(sum(sizes[:i]))) for i in range(len(sizes) - 1)), last]

        def load(array: int, place: Any) -> list[Any]:
            each = zip(kinds, begins, strict=True)
            return [builder.load(at(array, builder.add(place, begin), kind), align=8) for kind, begin in each]

        def row(place: Any, sums: list[Any]) -> list[Any]:
            number = builder.load(at(0, builder.add(first, builder.mul(place, step)), _INT))
            own = load(4, builder.mul(builder.zext(number, _WORD), width))
            return [builder.fadd(total, more) for total, more in zip(sums, own, strict=True)]

        nothing = [ir.Constant(kind, [0.0] * kind.count) for kind in kinds]
        before = [builder.select(anew, none, held) for none, held in zip(nothing, load(6, to), strict=True)]
        sums = _loop(builder, _WORD(0), count, before, row)
        for kind, begin, total in zip(kinds, begins, sums, strict=True):
            builder.store(total, at(6, builder.add(to, begin), kind), align=8)
        return context.get_dummy_value()

    def rows(
        typing: Any, numbers: Any, first: Any, step: Any, count: Any, table: Any, width: Any, out: Any, to: Any,
        left: Any, last: Any, anew: Any,
    ) -> Any:  # fmt: skip
        n = types.uint64
        return types.void(numbers, n, n, n, table, n, out, n, n, n, types.boolean), code

    return intrinsic(rows)


gather_1, gather_4, gather_8, gather_12 = (_gathering(*s) for s in ((1,), (2, 2), (4, 4), (8, 4)))
gather_16, gather_20, gather_24, gather_28 = (_gathering(*s) for s in ((8, 8), (8, 8, 4), (8, 8, 8), (8, 8, 8, 4)))
gather_32 = _gathering(8, 8, 8, 8)


@intrinsic
def products_of_four(
    typing: Any, words: Any, amounts: Any, start: Any, stop: Any, codes: Any, first: Any, tables: Any, column: Any,
    out: Any, to: Any, step: Any,
) -> Any:  # fmt: skip
    """Σ amount · (eight doubles of a table) over some words, for four classes at once, without leaving the registers.

    The doubles are those from tables[codes[word + first + class] + column] on: nothing is left to be multiplied. The
    sum of each class goes to `out`, a step further than the one before.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = partial(_pointer, context, builder, signature, args)

        def word(place: Any, sums: list[Any]) -> list[Any]:
            amount = builder.load(at(1, place, ir.DoubleType()))
            one = builder.insert_element(ir.Constant(_EIGHT, ir.Undefined), amount, _INT(0))
            factor = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INT, 8), [0] * 8))
            row = builder.add(builder.load(at(0, place, _WORD)), args[5])
            out = []
            for y, total in enumerate(sums):
                number = builder.zext(builder.load(at(4, builder.add(row, _WORD(y)), _INT)), _WORD)
                source = at(6, builder.add(number, args[7]))
                out.append(builder.fadd(total, builder.fmul(factor, builder.load(source, align=8))))
            return out

        sums = _loop(builder, args[2], args[3], [ir.Constant(_EIGHT, [0.0] * 8)] * 4, word)
        for y, total in enumerate(sums):
            place = builder.add(args[9], builder.mul(args[10], _WORD(y)))
            builder.store(total, at(8, place), align=8)
        return context.get_dummy_value()

    place = types.uint64
    given = (words, amounts, place, place, codes, place, tables, place, out, place, place)
    return types.void(*given), code


def _slicing(masked: bool) -> Any:
    """Cut eight numbers from each of some places on into slices of 21 bits, a + b + c, and add the slices up.

    Adding and subtracting `magic`, 1.5·2^(k + 52), rounds to whole numbers of 2^k; the rest is exact. What does not fit
    into the slices is left out, and `lost` has its bits, a byte for each place. Σ(a + b), Σc, Σa², Σab, Σ(2ac + b²),
    Σbc and Σc², eight of each, are made whole numbers by `units`, one for the sums and one for the squares, and added
    to eight integers of `out` each. Masked, NaN adds nothing and is not lost.
    """

    def sums(
        typing: Any, x: Any, places: Any, start: Any, stop: Any, left: Any, magic: Any, units: Any, lane: Any, out: Any,
        to: Any, lost: Any,
    ) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            at = partial(_pointer, context, builder, signature, args)

            def all_of(number: float) -> Any:
                return ir.Constant(_EIGHT, [number] * 8)

            def scaled(number: Any, bits: int) -> Any:
                return builder.fmul(number, all_of(2.0**bits))

            def cut(number: Any, unit: Any) -> Any:
                return builder.fsub(builder.fadd(number, unit), unit)

            def plus(total: Any, one: Any, other: Any) -> Any:  # products and sums are exact, whether fused or not
                return builder.fadd(total, builder.fmul(one, other, flags=("contract",)), flags=("contract",))

            high = builder.load(at(5, args[7]), align=8)
            middle, low = scaled(high, -21), scaled(high, -42)

            def row(place: Any, sums: list[Any]) -> list[Any]:
                from_here = builder.add(builder.load(at(1, place, _WORD)), args[4])
                v = builder.load(at(0, from_here), align=8)
                if masked:
                    v = builder.select(builder.fcmp_ordered("==", v, v), v, all_of(0.0))
                a = cut(v, high)
                rest = builder.fsub(v, a)
                b = cut(rest, middle)
                rest = builder.fsub(rest, b)
                c = cut(rest, low)
                fits = builder.fcmp_ordered("==", rest, c)
                builder.store(builder.bitcast(builder.not_(fits), _BYTE), at(10, place, _BYTE))
                a, b, c = (builder.select(fits, s, all_of(0.0)) for s in (a, b, c))
                upper, lower, aa, ab, ac, bb, bc, cc = sums
                return [
                    builder.fadd(upper, builder.fadd(a, b)), builder.fadd(lower, c), plus(aa, a, a), plus(ab, a, b),
                    plus(ac, a, c), plus(bb, b, b), plus(bc, b, c), plus(cc, c, c),
                ]  # fmt: skip

            upper, lower, aa, ab, ac, bb, bc, cc = _loop(builder, args[2], args[3], [all_of(0.0)] * 8, row)
            mixed = builder.fadd(builder.fadd(ac, ac), bb)
            both = builder.add(args[7], args[7])
            unit, square = (builder.load(at(6, builder.add(both, _WORD(8 * k))), align=8) for k in range(2))
            whole = [builder.fmul(upper, unit), builder.fmul(lower, scaled(unit, 21))]
            whole += [builder.fmul(s, scaled(square, 21 * k)) for k, s in enumerate((aa, ab, mixed, bc, cc))]
            for k, total in enumerate(whole):
                target = at(8, builder.add(args[9], _WORD(8 * k)), _WORDS)
                more = builder.fptosi(total, _WORDS)
                builder.store(builder.add(builder.load(target, align=8), more), target, align=8)
            return context.get_dummy_value()

        n = types.uint64
        return types.void(x, places, n, n, n, magic, units, n, out, n, lost), code

    return sums


slice_sums = intrinsic(_slicing(masked=False))
slice_sums_of_some = intrinsic(_slicing(masked=True))


def _eight_sums(builder: Any, rows: Sequence[Any]) -> Any:
    """The sums of eight vectors of eight as one vector; the halves of each are added, then the quarters, then the rest.

    The order is that of vectors 0, 4, 1, 5, 2, 6, 3, 7. 21 instructions, where one sum after another takes 50.
    """

    def both(a: Any, b: Any, first: list[int], second: list[int]) -> Any:
        kind = ir.VectorType(_INT, 8)
        one, other = (builder.shuffle_vector(a, b, ir.Constant(kind, places)) for places in (first, second))
        return builder.fadd(one, other)

    halves = [
        both(a, b, [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15])
        for a, b in zip(rows[::2], rows[1::2], strict=True)
    ]
    quarters = [
        both(a, b, [0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15])
        for a, b in zip(halves[::2], halves[1::2], strict=True)
    ]
    return both(quarters[0], quarters[1], [0, 8, 2, 10, 4, 12, 6, 14], [1, 9, 3, 11, 5, 13, 7, 15])


def _four_rows(masked: bool) -> Any:
    """For four rows, so far apart, and two classes: whole − Σ ((x − μ)·s)², eight columns at a time.

    `left` says where each eight begin, `bells` has eight μ, eight s and eight constants for each eight and class.
    `out` gets the four rows of both classes. Masked, NaN adds nothing, and all others add their constants. Returns
    whether all sums are numbers and not too large.
    """

    def rows(
        typing: Any, x: Any, place: Any, step: Any, left: Any, bells: Any, bell: Any, whole: Any, of: Any, out: Any,
        to: Any,
    ) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            at = partial(_pointer, context, builder, signature, args)

            def load(array: int, place: Any) -> Any:
                return builder.load(at(array, place), align=8)

            def eight_columns(k: Any, sums: list[Any]) -> list[Any]:
                begin, bell = builder.load(at(3, k, _WORD)), builder.add(args[5], builder.mul(k, _WORD(48)))
                mean, inverse, constant = (
                    [load(4, builder.add(bell, _WORD(8 * part + 24 * y))) for y in range(2)] for part in range(3)
                )
                out = []
                for i, total in enumerate(sums):
                    y, row = divmod(i, 4)
                    v = load(0, builder.add(builder.add(args[1], builder.mul(args[2], _WORD(row))), begin))
                    z = builder.fmul(builder.fsub(v, mean[y]), inverse[y])
                    if masked:
                        there = builder.fcmp_ordered("==", v, v)
                        z, less = (builder.select(there, part, none) for part in (z, constant[y]))
                        total = builder.fsub(total, less)
                    square = builder.fmul(z, z, flags=("contract",))
                    out.append(builder.fadd(total, square, flags=("contract",)))
                return out

            none = ir.Constant(_EIGHT, [0.0] * 8)
            count = context.make_array(signature.args[3])(context, builder, args[3]).nitems
            sums = _eight_sums(builder, _loop(builder, _WORD(0), count, [none] * 8, eight_columns))
            builder.store(builder.fsub(load(6, args[7]), sums), at(8, args[9]), align=8)
            near = builder.fcmp_ordered("<", sums, ir.Constant(_EIGHT, [_FAR] * 8))
            return builder.icmp_unsigned("==", builder.bitcast(near, _BYTE), _BYTE(255))

        n = types.uint64
        return types.boolean(x, n, n, left, bells, n, whole, n, out, n), code

    return rows


normals_of_four = intrinsic(_four_rows(masked=False))
normals_without_nan = intrinsic(_four_rows(masked=True))
