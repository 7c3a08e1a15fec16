"""What is counted: a `Column` for each column, and the `Schema` that holds them.

A schema says which kind each column is and why. It is a value: edit it with `with_column`, keep it with `save`,
share it between machines, and tallies made anywhere with it add up.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar

from ..base import canon
from ..base.disk import read_whole, write_atomically
from ..base.errors import SchemaError, excerpt, in_our_words, unknown, warn
from ..base.records import Record, misfit
from ..base.show import Page, Shown
from ..exact.cells import Cells
from .kinds import KINDS, Kind, check_fields, check_part, kept
from .pairs import PairColumn
from .spelling import Spelling
from .text.tokeniser import Tokeniser

DATE_PARTS = KINDS["date"].parts
VERSION = 1
UNICODE = unicodedata.unidata_version


@dataclass(frozen=True)
class Column:
    """One column: its name, its kind, and what only the schema can know about it.

    >>> tb.Column("colour", "category", values=["red", "blue"])
    Column('colour', 'category', values=('blue', 'red'))
    """

    name: str
    kind: str
    values: tuple[str, ...] | None = None  # category: what the column can take, seen or not
    cells: Cells | None = None  # number: the histogram behind kernel, bins and levels
    text: Tokeniser | None = None  # text: how it is cut into tokens
    levels: int | None = None  # bag or text: also count how often each word occurs once, twice, … up to this
    width: int | None = None  # vector: how many positions
    source: str | None = None  # the column of the data, if it has another name
    part: str | None = None  # of a date: days, weekday, month or hour
    of: tuple[PairColumn, ...] | None = None  # pair, together: the columns counted so; gap: the one with gaps
    missing: str | tuple[str, ...] = ()  # further texts that mean "missing" in this column
    reason: str = field(default="", compare=False)  # why `infer` chose this
    spelling: Spelling | None = None  # how its texts are read, if not as plain numbers, ISO dates or as they stand

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown(SchemaError, f"column {self.name!r} has the kind {self.kind!r}", self.kind, KINDS)
        check_fields(self)
        if self.values is not None:
            texts = {canon.text(v) for v in self.values}
            object.__setattr__(self, "values", tuple(sorted(t for t in texts if t is not None)))
        if self.text is None and "text" in self.about.fields:
            object.__setattr__(self, "text", Tokeniser())
        check_part(self.name, self.kind, self.part)
        marks = (self.missing,) if isinstance(self.missing, str) else self.missing
        object.__setattr__(self, "missing", tuple(sorted(set(marks))))

    def __repr__(self) -> str:
        shown = [repr(self.name), repr(self.kind)]
        for name in ("values", "text", "levels", "width", "source", "part", "of", "spelling"):
            value = getattr(self, name)
            if value not in (None, Tokeniser() if name == "text" else None):
                shown.append(f"{name}={value!r}")
        return f"Column({', '.join(shown)})"

    @property
    def about(self) -> Kind:
        """What is known of its kind."""
        return KINDS[self.kind]

    @property
    def like(self) -> str:
        """The kind whose blocks it makes: its own, or the one that its kind is like."""
        return KINDS[self.kind].like

    @property
    def only_here(self) -> bool:
        """Whether it, or one of the two of a pair, is read by Python code that no other program has."""
        own: list[Column | PairColumn] = [self, *(self.of or ())]
        return not all(KINDS[each.kind].read_as for each in own)

    @property
    def reads(self) -> str:
        """The name of the column of the data that this one reads."""
        return self.inputs[0] if self.of is None or len(self.of) == 1 else self.name

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of the data that this one reads: one, or the two of a pair."""
        return tuple(c.source for c in self.of) if self.of else (self.name if self.source is None else self.source,)

    def counting(self) -> dict[str, Any]:
        """What decides the numbers that are counted, cells aside: equal for tallies that may be added."""
        return {
            **({} if self.of is None else {"of": [side.to_dict() for side in self.of]}),
            **({} if self.text is None else {"text": asdict(self.text)}),
            **{what: getattr(self, what) for what in ("kind", "levels", "reads", "part", "missing")},
            **({} if self.spelling is None else {"spelling": self.spelling.to_dict()}),
        }

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold, without what is not set; its reason quotes no value."""
        empty = {"name": (), "source": (None,), "values": (None,)}  # else '' and () are what is not set, too
        told = {**asdict(self), "reason": kept(self.reason), "spelling": self.spelling and self.spelling.to_dict()}
        own = {k: v for k, v in told.items() if v not in empty.get(k, (None, "", ()))}
        return own if self.of is None else {**own, "of": tuple(side.to_dict() for side in self.of)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Column:
        """The inverse of `to_dict`."""
        if set(given) - {f.name for f in fields(cls)} or not {"name", "kind"} <= set(given):
            raise SchemaError(
                f"a column of the schema has the fields {excerpt(sorted(given))}",
                hint="a column needs a name and a kind; known further fields are "
                + ", ".join(f.name for f in fields(cls) if f.name not in ("name", "kind")) + ".",
            )  # fmt: skip
        values = dict(given)
        for name, (make, errors, what, hint) in _NESTED.items():
            if name in values:
                try:
                    values[name] = make(values[name])
                except errors as error:
                    message = f"the {what} {given['name']!r} cannot be read: {error}"
                    raise SchemaError(message, hint=hint) from None
        values |= {name: tuple(values[name]) for name in ("values", "missing") if name in values}
        return cls(**values)


# the fields of a column that are records of their own: how one is made of JSON, and what is said where it cannot be
_NESTED: dict[str, tuple[Callable[[Any], Any], type[Exception] | tuple[type[Exception], ...], str, str]] = {
    "cells": (
        lambda given: Cells(**given), (TypeError, ValueError), "cells of column",
        "cells have a centre, an exponent, points and discrete; tb.infer makes them.",
    ),
    "text": (lambda given: Tokeniser(**given), TypeError, "tokeniser of column", "see tb.Tokeniser."),
    "of": (lambda given: tuple(map(PairColumn.from_dict, given)), TypeError, "sides of the pair", "see tb.PairColumn."),
    "spelling": (lambda given: Spelling(**given), TypeError, "spelling of column", "see tb.Spelling."),
}  # fmt: skip


def column_of(side: PairColumn) -> Column:
    """One column of a pair as a column by itself."""
    return Column(side.source, side.kind, part=side.part, missing=side.missing, spelling=side.spelling)


def date_columns(name: str, *, without: Collection[str] = (), source: str | None = None, **more: Any) -> list[Column]:
    """The columns that a date or time is counted as: a number of days, and weekday, month and hour."""
    parts = [p for p in DATE_PARTS if p not in without]
    more["source"] = name if source is None else source
    return [Column(f"{name}.{p}", DATE_PARTS[p], part=p, **more) for p in parts]


def _parts(column: Column) -> list[Column]:
    """The columns that a declared date becomes."""
    return date_columns(column.name, **{w: getattr(column, w) for w in ("source", "missing", "reason", "spelling")})


@dataclass(frozen=True, repr=False)
class Schema(Record, Shown):
    """Which columns are counted and how; a column of kind "date" becomes its parts.

    >>> schema = tb.Schema([tb.Column("Sky", "category"), tb.Column("Temp", "number")], target="Play")
    >>> schema.names
    ('Sky', 'Temp')
    """

    columns: tuple[Column, ...]
    target: str
    label_type: str = field(default="text", compare=False)  # so that predictions come back as labels went in
    weights: str | None = None  # the column that holds sample weights
    missing: tuple[str, ...] = ("",)  # texts that mean "missing" in every column
    receipts: bool = False  # also count a hash per row, so that `forget` knows every row
    fold: bool = False  # labels that differ in letter case and blanks alone are one
    unicode: str | None = field(default=UNICODE, compare=False)  # whose letters texts were cut by; None: not recorded
    _by_name: ClassVar[dict[str, Column]]  # made with the columns; not part of the value

    def __init__(
        self,
        columns: Iterable[Column],
        target: str = "y",
        label_type: str = "text",
        weights: str | None = None,
        missing: Iterable[str] = ("",),
        receipts: bool = False,
        unicode: str | None = UNICODE,
        fold: bool = False,
    ) -> None:
        put, columns = object.__setattr__, list(columns)
        if strange := [c for c in columns if not isinstance(c, Column)]:
            raise SchemaError(f"{strange[0]!r:.60} among the columns", hint="give a list of tb.Column(name, kind).")
        put(self, "columns", tuple(p for c in columns for p in (_parts(c) if c.about.parts else [c])))
        put(self, "missing", tuple(sorted({missing} if isinstance(missing, str) else set(missing))))
        told = {"target": str(target), "label_type": label_type, "weights": weights, "unicode": unicode}
        for what, value in {**told, "receipts": bool(receipts), "fold": bool(fold)}.items():
            put(self, what, value)
        names = [c.name for c in self.columns]
        put(self, "_by_name", dict(zip(names, self.columns, strict=True)))
        if len(self._by_name) < len(names):
            repeated = sorted(name for name, times in Counter(names).items() if times > 1)
            raise SchemaError(
                f"the schema has more than one column called {excerpt(repeated)}",
                hint="give each column a name of its own; source='…' lets two columns read the same data.",
            )
        if any({*c.inputs} & {self.target, self.weights} for c in self.counted):
            raise SchemaError(
                f"the target {self.target!r} or the weights are also a counted column",
                hint="leave the target and the weights out of the columns.",
            )
        if label_type not in canon.LABEL_TYPES:
            raise unknown(SchemaError, f"labels of type {label_type!r}", label_type, canon.LABEL_TYPES)

    @cached_property
    def counted(self) -> tuple[Column, ...]:
        """The columns that are not ignored."""
        return tuple(c for c in self.columns if c.about.encode is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the counted columns."""
        return tuple(c.name for c in self.counted)

    def __getitem__(self, name: str) -> Column:
        if name in self._by_name:
            return self._by_name[name]
        raise unknown(SchemaError, f"the schema has no column {name!r}", name, self._by_name)

    def with_column(self, name: str, **changes: Any) -> Schema:
        """A schema with one column changed, or added if there was none of that name.

        >>> schema = tb.Schema([tb.Column("zip", "number")], target="y")
        >>> schema.with_column("zip", kind="category")["zip"]
        Column('zip', 'category')
        """
        options = [f.name for f in fields(Column)]
        strange = sorted(set(changes) - set(options))
        if strange:
            raise unknown(SchemaError, f"a column has no {excerpt(strange)}", strange[0], options)
        known = {c.name: c for c in self.columns}
        if name in known:
            if changes.get("kind", known[name].kind) != known[name].kind:
                kept: dict[str, Any] = {"name": name, "source": known[name].source, "part": known[name].part}
                if changes["kind"] in KINDS and "cells" in KINDS[changes["kind"]].fields:
                    kept["cells"] = known[name].cells  # an ignored column keeps what the first look found
                if known[name].kind == "ignore":
                    kept |= {"missing": known[name].missing, "spelling": known[name].spelling}
                new = Column(**{**kept, "reason": "chosen by hand", **changes})
            else:
                new = replace(known[name], **{"reason": "chosen by hand", **changes})
        else:
            new = Column(**{"name": name, "reason": "added by hand", **changes})
        known[name] = new
        return self._with(columns=tuple(known.values()))

    def with_weights(self, column: str) -> Schema:
        """The same schema with sample weights from a column, which then is no feature."""
        return self._with(columns=[c for c in self.columns if c.reads != column], weights=column)

    def with_receipts(self) -> Schema:
        """The same schema, also counting a hash per row."""
        return self._with(receipts=True)

    def _with(self, **changes: Any) -> Schema:
        return Schema(**{**{f.name: getattr(self, f.name) for f in fields(self)}, **changes})

    def joined(self, other: Schema) -> Schema:
        """The schema of a sum of two tallies; refuses where the two would count different things."""
        for what in ("target", "weights", "missing", "receipts", "fold"):
            if getattr(self, what) != getattr(other, what):
                raise _apart(f"{what}={getattr(self, what)!r} here and {getattr(other, what)!r} there")
        mine, yours = ({c.name: c for c in s.columns if c.about.encode or c.of} for s in (self, other))
        only = sorted(set(mine) ^ set(yours))
        if only:
            raise _apart(f"only one of them counts {excerpt(only)}", all((mine | yours)[name].of for name in only))
        columns = tuple(_joined(c, yours[c.name]) if c.name in yours else c for c in self.columns)
        unicode = self._unicode_with(other)
        if columns == self.columns and self.label_type == other.label_type and unicode == self.unicode:
            return self
        label_type = self.label_type if self.label_type == other.label_type else "text"
        return self._with(columns=columns, label_type=label_type, unicode=unicode)

    @property
    def cuts_texts(self) -> bool:
        """Whether a column is cut into words, which depends on what Unicode calls a letter."""
        return any(c.text is not None for c in self.columns)

    def cut_by(self, unicode: str | None) -> Schema:
        """The same schema, saying by which version of Unicode texts are cut; None: there were none yet."""
        return self if self.unicode == unicode or not self.cuts_texts else self._with(unicode=unicode)

    def _unicode_with(self, other: Schema) -> str | None:
        """The Unicode versions behind a sum of tallies, with a warning where they differ."""
        if self.unicode == other.unicode or not self.cuts_texts or None in (self.unicode, other.unicode):
            return self.unicode or other.unicode
        mine, yours = (str(s.unicode).split(" and ") for s in (self, other))
        if not {*yours} <= {*mine}:
            warn(
                f"texts were cut by Unicode {self.unicode} here and by Unicode {other.unicode} there: a few rare "
                "characters may be letters in one and not in the other. Hint: count with one version of Python."
            )
        return " and ".join(sorted({*mine, *yours}))

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold."""
        return {
            "tallybayes_schema": VERSION,
            "target": self.target,
            "label_type": self.label_type,
            "weights": self.weights,
            "missing": list(self.missing),
            "receipts": self.receipts,
            **({"fold": True} if self.fold else {}),
            **({"unicode": self.unicode} if self.cuts_texts and self.unicode is not None else {}),
            "columns": [c.to_dict() for c in self.columns],
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Schema:
        """The inverse of `to_dict`."""
        version = given.get("tallybayes_schema") if isinstance(given, Mapping) else None
        if version != VERSION:
            raise SchemaError(
                f"a schema of version {version!r}; this release reads version {VERSION}",
                hint="make the file with schema.save(path) of this release, or update tallybayes.",
            )
        values = {k: v for k, v in given.items() if k not in ("tallybayes_schema", "columns")}
        if set(values) - {f.name for f in fields(cls)} or not isinstance(given.get("columns"), list):
            raise SchemaError(
                f"a schema with the fields {excerpt(sorted(given))}",
                hint="a schema has columns, a list, and may have "
                + ", ".join(f.name for f in fields(cls) if f.name != "columns") + ".",
            )  # fmt: skip
        values.setdefault("unicode", None)
        with in_our_words(SchemaError, "a schema that means nothing", hint="write it with schema.save(path)."):
            out = cls(columns=[Column.from_dict(c) for c in given["columns"]], **values)
            if (wrong := misfit(out)) is not None:
                raise ValueError(wrong)
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the schema as JSON; a file of that name is replaced at once or not at all."""
        given = self.to_dict()
        # half characters are written as JSON escapes them, too
        raw = json.dumps(given, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")
        write_atomically(path, raw, partial(_check, given))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema that `save` wrote."""
        raw = read_whole(path)
        try:
            given = json.loads(raw.decode("utf-8"))
        except (RecursionError, ValueError) as error:
            found = f"{os.fspath(path)} is not JSON: {error}"
            raise SchemaError(found, hint="give a file that schema.save(path) wrote.") from None
        return cls.from_dict(given)

    def _page(self) -> Page:
        title = f"Schema: target {canon.printable(self.target)!r}, {canon.many(len(self.counted), 'column')} counted"
        lines = [[canon.printable(c.name, 40), f"{c.kind:<8}", canon.printable(c.reason, 160)] for c in self.columns]
        return Page(title, lines, left=3, indent=2, head=("column", "kind", "why") if lines else ())


def _check(given: Mapping[str, Any], raw: bytes) -> None:
    """Refuse to leave a file that would be read back as another schema."""
    if json.dumps(Schema.from_dict(json.loads(raw)).to_dict()) != json.dumps(given):
        raise SchemaError("the schema would be read back as another", hint="give columns texts and whole numbers.")


def _apart(difference: str, chosen: bool = False) -> SchemaError:
    hint = "count both with one schema: schema.save('schema.json') on one machine, Schema.load on the other."
    if chosen:  # a fit adds gaps and pairs to the schema it was given
        hint = "fit found that worth counting in its own rows: fit the other with schema=…, gaps=False and pairs=False."
    return SchemaError(f"these tallies do not count the same thing: {difference}", hint=hint)


def _joined(mine: Column, yours: Column) -> Column:
    if mine.counting() != yours.counting():
        a, b = mine.counting(), yours.counting()
        difference = next(k for k in sorted({*a, *b}) if a.get(k) != b.get(k))
        raise _apart(
            f"column {mine.name!r} has {difference}={a.get(difference)!r} here and {b.get(difference)!r} there"
        )
    if mine.width != yours.width:
        raise _apart(f"column {mine.name!r} has {mine.width} positions here and {yours.width} there")
    values = mine.values
    if mine.values != yours.values:
        values = tuple(sorted({*(mine.values or ()), *(yours.values or ())}))
    cells = mine.cells if mine.cells == yours.cells else None
    return replace(mine, values=values, cells=cells)
