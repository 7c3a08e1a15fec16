"""What was frozen before the code moved into rooms: tables, models and commands made of public names alone.

`python tests/golden/make_frozen.py` once wrote what the package of that day made of them into tests/golden/frozen;
tests/test_frozen.py asks the present package the same. Only `random.Random.random` is drawn from: Python promises that
its sequence never changes.
"""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
import random
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse

import tallybayes as tb

F = tb.families
WORDS = (
    "offer", "free", "meeting", "noon", "price", "agenda", "cheap", "lunch", "minutes", "winner", "project", "deadline",
    "holiday", "train", "invoice",
)  # fmt: skip
FOREIGN = (
    "Straße",
    "Köln",
    "naïve",
    "Ελλάδα",
    "Москва",
    "東京",
    "日本語",
    "🦆🦆",
    "e\u0301te\u0301",
    "ＡＢＣ",
    "ﬁn",
    "İstanbul",
)


class Draw:
    """Made values, the same on every machine."""

    def __init__(self, seed: int) -> None:
        self._next = random.Random(seed).random

    def whole(self, below: int) -> int:
        return int(self._next() * below)

    def one(self, of: Any) -> Any:
        return of[self.whole(len(of))]

    def bell(self) -> float:
        """About normal, of dyadic fractions that add exactly."""
        return sum(self.whole(4096) for _ in range(6)) / 4096 - 3.0

    def seldom(self, value: Any, share: float = 0.1) -> Any:
        """None in some rows."""
        return None if self._next() < share else value

    def text(self, words: Any, label: int, most: int = 9) -> str:
        """Words of which some are likelier in one class."""
        return " ".join(
            self.one(words[label % 2 :: 2] if self._next() < 0.6 else words) for _ in range(self.whole(most))
        )


def _labels(n: int, classes: int = 2) -> list[int]:
    return [i * 7 % 11 % classes for i in range(n)]


def _day(number: int) -> dt.datetime:
    return dt.datetime(2023, 1, 1, 6) + dt.timedelta(hours=37 * number)


# ---- tables and their tallies


def _categories() -> tb.Tally:
    d, y = Draw(1), _labels(60, 3)
    rows = {
        "colour": [d.one(["red", "blue", "grey"][c:]) for c in y],
        "size": [d.one("SML") for _ in y],
        "y": list(map(str, y)),
    }
    return tb.count(rows, tb.infer(rows, target="y"))


def _declared_values() -> tb.Tally:
    schema = tb.Schema(
        [tb.Column("c", "category", values=["a", "b", "never"]), tb.Column("flag", "category")], target="y"
    )
    d = Draw(2)
    return tb.count(
        {
            "c": [d.one("ab") for _ in range(40)],
            "flag": [d.one([True, False]) for _ in range(40)],
            "y": [d.one("pq") for _ in range(40)],
        },
        schema,
    )


def _numbers_alone() -> tb.Tally:
    d, y = Draw(3), _labels(80)
    return tb.count({"x": [d.bell() + c for c in y], "y": y}, tb.Schema([tb.Column("x", "number")], target="y"))


def _numbers_and_cells() -> tb.Tally:
    d, y = Draw(4), _labels(200, 3)
    rows = {"x": [d.bell() * (1 + c) for c in y], "price": [d.whole(5000) / 100 for _ in y], "y": [f"k{c}" for c in y]}
    return tb.count(rows, tb.infer(rows, target="y"))


def _whole_numbers() -> tb.Tally:
    d, y = Draw(5), _labels(150)
    rows = {"visits": [min(d.whole(9), d.whole(9)) + c for c in y], "year": [1950 + d.whole(70) for _ in y], "y": y}
    return tb.count(rows, tb.infer(rows, target="y"))


def _extreme_numbers() -> tb.Tally:
    ends = [
        1e300,
        -1e300,
        5e-324,
        1e8 + 0.1,
        1e8 + 0.2,
        0.1,
        -0.0,
        1.7e308,
        2.0**-1022,
        1 / 3,
        -7.5,
        123456789.123456789,
    ]
    return tb.count({"x": ends * 3, "y": ["a", "b", "c"] * 12}, tb.Schema([tb.Column("x", "number")], target="y"))


def _dates() -> tb.Tally:
    d, y = Draw(6), _labels(70)
    rows = {
        "when": [d.seldom(_day(i * 13 % 70)) for i in range(70)],
        "day": [(_day(i).date() + dt.timedelta(days=c)) for i, c in enumerate(y)],
        "text": [_day(i * 3).isoformat(sep=" ") for i in range(70)],
        "y": y,
    }
    return tb.count(rows, tb.Schema([tb.Column(n, "date") for n in ("when", "day", "text")], target="y"))


def _texts() -> tb.Tally:
    d, y = Draw(7), _labels(90)
    schema = tb.Schema([tb.Column("note", "text")], target="y")
    return tb.count({"note": [d.seldom(d.text(WORDS, c).title() + "!") for c in y], "y": y}, schema)


def _tokens_of_all_sorts() -> tb.Tally:
    d, y = Draw(8), _labels(40)
    notes = [d.text(WORDS, c) for c in y]
    columns = [
        tb.Column("pairs", "text", source="note", text=tb.Tokeniser(ngrams=(1, 2), stop=("noon",))),
        tb.Column("letters", "text", source="note", text=tb.Tokeniser(chars=(2, 3), across=True, accents=False)),
        tb.Column("hashed", "text", source="note", text=tb.Tokeniser(hash_bits=8)),
        tb.Column("levels", "text", source="note", levels=2),
    ]
    return tb.count({"note": notes, "y": y}, tb.Schema(columns, target="y"))


def _all_scripts() -> tb.Tally:
    d, y = Draw(9), _labels(60)
    rows = {"note": [d.text(FOREIGN, c) for c in y], "place": [d.one(FOREIGN) for _ in y], "y": [FOREIGN[c] for c in y]}
    return tb.count(rows, tb.Schema([tb.Column("note", "text"), tb.Column("place", "category")], target="y"))


def _vectors() -> tb.Tally:
    d, y = Draw(10), _labels(50)
    x = np.array([[d.bell() + c * j for j in range(4)] for c in y])
    x[::7, 2] = np.nan
    return tb.count(x, tb.Schema([tb.Column("x", "vector", width=4)], target="y", label_type="int"), y)


def _sparse() -> tb.Tally:
    d, y = Draw(11), _labels(50)
    x = np.array([[max(d.whole(6) - 3, 0) for _ in range(20)] for _ in y], dtype=float)
    schema = tb.Schema([tb.Column("x", "bag", width=20)], target="y", label_type="int")
    return tb.count(scipy.sparse.csr_array(x), schema, y)


def _bags() -> tb.Tally:
    d, y = Draw(12), _labels(60)
    bags = [d.seldom([d.one(WORDS[c::2]) for _ in range(d.whole(6))]) for c in y]
    return tb.count({"words": bags, "y": y}, tb.Schema([tb.Column("words", "bag", levels=3)], target="y"))


def _pairs() -> tb.Tally:
    return tb.count(_mixed_rows(), _mixed_schema())


def _weights() -> tb.Tally:
    d, y = Draw(13), _labels(60)
    rows = {
        "c": [d.one("abc") for _ in y],
        "x": [d.bell() for _ in y],
        "w": [d.one([1, 0.5, 0.1, 0, 3, 2.0**-30, 1 / 3]) for _ in y],
        "y": y,
    }
    return tb.count(rows, tb.Schema([tb.Column("c", "category"), tb.Column("x", "number")], target="y", weights="w"))


def _receipts() -> tb.Tally:
    d, y = Draw(14), _labels(40)
    rows = {"c": [d.one("abc") for _ in y], "x": [d.bell() for _ in y], "note": [d.text(WORDS, c) for c in y], "y": y}
    columns = [tb.Column("c", "category"), tb.Column("x", "number"), tb.Column("note", "text")]
    return tb.count(rows, tb.Schema(columns, target="y", receipts=True))


def _missing() -> tb.Tally:
    d = Draw(15)
    marks = [None, "", "?", "NA", "7", "8.5", "-3"]
    rows = {
        "x": [d.one(marks) for _ in range(60)],
        "c": [d.one([None, "", "-", "a", "b"]) for _ in range(60)],
        "y": [d.one([None, "p", "q", "r"]) for _ in range(60)],
    }
    columns = [tb.Column("x", "number", missing=("?", "NA")), tb.Column("c", "category", missing="-")]
    return tb.count(rows, tb.Schema(columns, target="y"))


def _decimals() -> tb.Tally:
    d, y = Draw(16), _labels(40)
    rows = {
        "price": [decimal.Decimal(d.whole(100000)) / 100 for _ in y],
        "code": [decimal.Decimal(d.whole(4)) / 2 for _ in y],
        "y": y,
    }
    return tb.count(rows, tb.Schema([tb.Column("price", "number"), tb.Column("code", "category")], target="y"))


def _arrow() -> tb.Tally:
    d, y = Draw(17), _labels(80)
    table = pa.table({
        "c": pa.array([d.seldom(d.one(WORDS[:5])) for _ in y]).dictionary_encode(),
        "n": pa.array([d.seldom(d.whole(1000)) for _ in y], pa.int32()),
        "f": pa.array([d.bell() for _ in y], pa.float32()),
        "b": pa.array([d.seldom(d.whole(2) == 1) for _ in y]),
        "t": pa.array([_day(i) for i in range(80)], pa.timestamp("ms")),
        "y": pa.array([f"k{c}" for c in y]),
    })  # fmt: skip
    return tb.count(table, tb.infer(table, target="y"))


def _written_rows() -> tb.Tally:
    """A list of dicts, as JSON lines give them, with a class that comes late."""
    d = Draw(18)
    rows: list[dict[str, Any]] = [{"a": d.one("xy"), "b": d.whole(5), "y": d.one("pq")} for _ in range(30)]
    return tb.count(
        [*rows, {"a": "z", "b": 9, "y": "new"}],
        tb.Schema([tb.Column("a", "category"), tb.Column("b", "number")], target="y"),
    )


def _cut_and_put_together() -> tb.Tally:
    """Parts that are added, one of them taken away again, and one counted three times."""
    d, schema = Draw(19), _mixed_schema()
    rows = _mixed_rows()
    cut = d.whole(40) + 20
    first, second = ({k: v[:cut] for k, v in rows.items()}, {k: v[cut:] for k, v in rows.items()})
    return (tb.count(first, schema) + tb.count(second, schema) * 3).forget(first).update(first, new_classes="allow")


TALLIES: dict[str, Callable[[], tb.Tally]] = {
    "categories": _categories,
    "declared values": _declared_values,
    "numbers alone": _numbers_alone,
    "numbers and cells": _numbers_and_cells,
    "whole numbers": _whole_numbers,
    "extreme numbers": _extreme_numbers,
    "dates": _dates,
    "texts": _texts,
    "tokens of all sorts": _tokens_of_all_sorts,
    "all scripts": _all_scripts,
    "vectors": _vectors,
    "sparse matrix": _sparse,
    "bags": _bags,
    "pairs": _pairs,
    "weights": _weights,
    "receipts": _receipts,
    "missing": _missing,
    "decimals": _decimals,
    "arrow": _arrow,
    "rows as dicts": _written_rows,
    "cut and put together": _cut_and_put_together,
}


# ---- models


def _mixed_rows(n: int = 120, seed: int = 30) -> dict[str, list[Any]]:
    """All kinds of columns, two classes."""
    d, y = Draw(seed), _labels(n)
    return {
        "colour": [d.seldom(d.one(["red", "blue", "grün"][: 2 + c])) for c in y],
        "size": [d.seldom(d.bell() + c) for c in y],
        "visits": [min(d.whole(7), d.whole(7)) + 2 * c for c in y],
        "note": [d.seldom(d.text(WORDS, c)) for c in y],
        "words": [[d.one(WORDS[c::2]) for _ in range(d.whole(5))] for c in y],
        "point": [[d.bell(), d.bell() + c, d.bell()] for c in y],
        "when": [d.seldom(_day(i % 50 + 40 * c)) for i, c in enumerate(y)],
        "label": [("ham", "spam")[c] for c in y],
    }


def _mixed_schema() -> tb.Schema:
    cells = tb.Cells(0.0, -3, (0.0, 0.5))
    whole = tb.Cells(1.0, -7, (0.0, 1.0, 2.0, 3.0, 4.0), discrete=True)
    return tb.Schema(
        [
            tb.Column("colour", "category", values=["red", "blue", "grün", "schwarz"]),
            tb.Column("size", "number", cells=cells),
            tb.Column("visits", "number", cells=whole),
            tb.Column("note", "text", levels=2),
            tb.Column("words", "bag", levels=2),
            tb.Column("point", "vector", width=3),
            tb.Column("when", "date"),
            tb.Column("colour × size", "pair", of=(tb.Side("colour"), tb.Side("size", "number", cuts=(0.0, 1.0)))),
        ],
        target="label",
    )


def _tabular_schema() -> tb.Schema:
    """Categories and numbers and a pair of them: what ONNX and SQL take as it is."""
    return tb.Schema(
        [c for c in _mixed_schema().columns if c.kind not in ("text", "bag", "vector") and c.part is None],
        target="label",
    )


def probes() -> dict[str, list[Any]]:
    """Rows to answer about: others than those counted, values never seen, and rows of nothing."""
    odd: dict[str, list[Any]] = {
        "colour": ["mauve", None, "schwarz"],
        "size": [1e6, None, -0.0],
        "visits": [40, None, 0],
        "note": ["nothing of this", None, "offer offer offer offer"],
        "words": [["zzz"], None, []],
        "point": [[100.0, 0.0, 0.0], None, [None, 0.5, None]],
        "when": [dt.datetime(2031, 5, 5), None, dt.datetime(1999, 12, 31, 23)],
    }
    rows = _mixed_rows(25, 31)
    return {name: rows[name] + more for name, more in odd.items()}


def _of_families(**families: Any) -> tb.Model:
    return tb.count(_mixed_rows(), _mixed_schema()).model(tb.Settings(families=families))


def _fitted_rows() -> dict[str, list[Any]]:
    rows = _mixed_rows(400, 32)
    rows["again"] = [None if v is None else v * 2 + 1 for v in rows["size"]]  # says what `size` says
    d = Draw(33)
    both = [d.whole(4) for _ in rows["label"]]
    rows["left"] = [str(b // 2) for b in both]
    rows["right"] = [
        str((b // 2 + (label == "spam") + (d.whole(8) == 0)) % 2) for b, label in zip(both, rows["label"], strict=True)
    ]
    return {name: rows[name] for name in ("colour", "size", "again", "visits", "left", "right", "note", "label")}


def _settled() -> tb.Settings:
    """Everything that a calibrated fit can set, by hand."""
    return tb.Settings(
        families={"size": F.Blend(shares=(0.5, 0.25, 0.125, 0.125, 0.0)), "visits": F.Blend((F.Poisson(), F.Levels()))},
        weights={"size": 0.75, "colour × size": 0.5, "note": 0.8, "words": 1.25},
        lengths={"note": -0.5, "words": -0.75},
        offsets={"ham": 0.5, "spam": -0.5},
        lead=tb.Lead(1.3, -0.4),
        unseen="reserve",
        smoothing={"colour": tb.Dirichlet({"red": 2.0}), "note": tb.Laplace(0.25), "words": tb.JelinekMercer(0.3)},
        prior={"ham": 0.75, "spam": 0.25},
    )


MODELS: dict[str, Callable[[], tb.Model]] = {
    "plain": _of_families,
    "kernel": lambda: _of_families(size="kernel", visits="levels", note="bernoulli", words="levels", point="student"),
    "bins": lambda: _of_families(
        size=F.Bins("width", 4), visits="poisson", note="complement", words=F.Complement(norm=True)
    ),
    "selected": lambda: _of_families(
        size="student",
        visits=F.Levels(top=2),
        note=F.Multinomial(select=F.Selection(top=5)),
        words=F.Multinomial(presence=True, idf=True),
        point="gaussian-shared",
    ),
    "predictive": lambda: tb.count(_mixed_rows(), _mixed_schema()).model(
        tb.Settings(predictive=True, families={"visits": "poisson"}, floor=tb.Floor("guarded", 1e-6))
    ),
    "settled": lambda: tb.count(_mixed_rows(), _mixed_schema()).model(_settled()),
    "tabular": lambda: tb.count(_mixed_rows(), _tabular_schema()).model(
        tb.Settings(families={"size": "bins", "visits": "kernel"}, weights={"size": 0.5}, lead=tb.Lead(1.2, -0.2))
    ),
    "smoothed": lambda: tb.count(_mixed_rows(), _tabular_schema()).model(
        tb.Settings(
            smoothing={"colour": tb.JelinekMercer(0.2), "size": tb.AbsoluteDiscount(0.5)},
            families={"size": "bins"},
            prior="uniform",
        )
    ),
    "fitted": lambda: tb.fit(_fitted_rows(), target="label"),
    "isotonic": lambda: tb.fit(_fitted_rows(), target="label", calibrate="isotonic"),
}
CHOSEN = ("fitted", "isotonic")  # by held-out rows: what is chosen again may differ in the last digits that were fitted
UNSAID = ("predictive", "isotonic")  # no JSON can say them; a sealed file says the second
FLAT = ("tabular", "smoothed")  # ONNX and SQL take them without anything beside


def probes_of(name: str) -> dict[str, list[Any]]:
    rows = probes()
    if name in CHOSEN:
        size = rows["size"]
        rows["again"] = [None if v is None else v * 2 + 1 for v in size]
        rows["left"], rows["right"] = (
            [str(i % 2) for i in range(len(size))],
            [str(i // 2 % 2) for i in range(len(size))],
        )
        return {n: rows[n] for n in _fitted_rows() if n != "label"}
    return {n: rows[n] for n in ("colour", "size", "visits")} if name in FLAT else rows


def screens(model: tb.Model, rows: dict[str, list[Any]]) -> dict[str, str]:
    """What a person sees of a model."""
    return {
        "model": repr(model),
        "schema": repr(model.schema),
        "tally": repr(model.tally),
        "explanation": str(model.explain(rows, 3)),
        "odds": str(model.explain(rows, 4).odds()),
        "what if": str(model.what_if(rows, number=5)),
    }


# ---- the commands


def files_for_commands(folder: Path) -> None:
    """A table, a half of it, a broken one and some mail."""
    d, y = Draw(40), _labels(60)
    lines = [f"{d.one(['red', 'blue'])},{d.whole(90)},{('no', 'yes')[c]}" for c in y]
    (folder / "rows.csv").write_text("\n".join(["colour,size,left", *lines, ""]))
    (folder / "half.csv").write_text("\n".join(["colour,size,left", *lines[:30], ""]))
    (folder / "empty.csv").write_text("")
    (folder / "other.csv").write_text("a,b\n1,2\n")
    for name, words in (("spam", WORDS[::2]), ("ham", WORDS[1::2])):
        (folder / "mail" / name).mkdir(parents=True)
        for i in range(30):
            text = " ".join(d.one(words) for _ in range(20))
            head = f"From: a{i}@{name}.example\nTo: me@here.example\nSubject: {d.one(words)}\nMessage-ID: <{i}@{name}>"
            (folder / "mail" / name / f"{i}.eml").write_text(f"{head}\n\n{text}\n")
        (folder / f"{name}.eml").write_text(f"From: b@{name}.example\nSubject: {words[0]}\n\n{' '.join(words * 3)}\n")
    (folder / "odd.eml").write_text("Subject: x\n\nnothing known\n")


# commands in order, in one folder: each sees what those before it wrote; "<file" is standard input
COMMANDS = """
--version
--help
fit --help
nonsense
--nonsense
fit rows.csv
fit rows.csv --target left -o model.tb.parquet
fit half.csv --target left -o half.tb.parquet
fit nothing.csv --target left
fit empty.csv --target left
fit rows.csv --target lost
fit rows.csv --target left --set size=colonel
fit rows.csv --target left --folds many
fit rows.csv --target left -o /no/such/folder/model.tb.parquet
predict model.tb.parquet rows.csv
predict model.tb.parquet - <rows.csv
predict rows.csv rows.csv
predict model.tb.parquet nothing.csv
evaluate model.tb.parquet rows.csv
explain model.tb.parquet rows.csv --row 3
explain model.tb.parquet rows.csv --row 900
show model.tb.parquet
show rows.csv
export model.tb.parquet -o model.json
export model.tb.parquet -o model.nonsense
update model.tb.parquet half.csv -o more.tb.parquet
forget more.tb.parquet half.csv -o less.tb.parquet
forget half.tb.parquet other.csv -o wrong.tb.parquet
merge model.tb.parquet model.tb.parquet -o both.tb.parquet
merge model.tb.parquet
mail
mail train state mail
mail score state spam.eml
mail score state ham.eml
mail score state - <spam.eml
mail score nowhere spam.eml
mail score state nothing.eml
mail score state --nonsense
mail filter state <ham.eml
mail filter nowhere <ham.eml
mail filter state --nonsense <ham.eml
mail learn state spam.eml --spam
mail learn state spam.eml --ham --spam
mail unlearn state spam.eml
mail unlearn state odd.eml
mail train empty
mail learn young odd.eml --ham
mail score young ham.eml
""".strip().splitlines()


def exit_codes(run: Callable[[list[str], bytes], int], folder: Path) -> dict[str, int]:
    """The exit code of every command; `run` takes its words and standard input, in this folder."""
    files_for_commands(folder)
    out = {}
    for command in COMMANDS:
        words, _, given = command.partition(" <")
        out[command] = run(words.split(), (folder / given).read_bytes() if given else b"")
    return out


# ---- public names


def public() -> dict[str, dict[str, Any]]:
    """Every public name: {"tb.fit": {"takes": parameters}, "tb.Model": {"takes": …, "has": {attribute: parameters}}}.

    The parameters of an attribute are None where it is a value.
    """
    import tallybayes.mail
    import tallybayes.sklearn
    from tallybayes import plots

    out: dict[str, dict[str, Any]] = {}
    places = {"tb": tb, "mail": tallybayes.mail, "plots": plots, "sklearn": tallybayes.sklearn}
    for place, module in places.items():
        for name in module.__all__:
            found = getattr(module, name)
            if isinstance(found, types.ModuleType):
                out |= {f"{place}.{name}.{inner}": _described(value) for inner, value in _offered(found)}
            else:
                out[f"{place}.{name}"] = _described(found)
    return dict(sorted(out.items()))


def _offered(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module offers: its `__all__`, or what was made in it."""
    for name in getattr(module, "__all__", None) or sorted(vars(module)):
        value = getattr(module, name)
        if hasattr(module, "__all__") or (name[0] != "_" and getattr(value, "__module__", "") == module.__name__):
            yield name, value


def _described(value: Any) -> dict[str, Any]:
    if inspect.isclass(value):
        return {"takes": _takes(value), "has": dict(sorted(_members(value)))}
    return {"takes": _takes(value)} if callable(value) else {"is": type(value).__name__}


def _members(cls: type) -> Iterator[tuple[str, list[str] | None]]:
    """The public attributes with their parameters, those of our base classes included; others' are theirs."""
    seen = set()
    for owner in cls.__mro__:
        if not owner.__module__.startswith("tallybayes"):
            continue
        for name, found in [*vars(owner).items(), *((n, None) for n in vars(owner).get("__annotations__", {}))]:
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            if isinstance(found, (classmethod, staticmethod)):
                yield name, _takes(getattr(cls, name))
            elif inspect.isfunction(found):
                yield name, _takes(found)
            else:
                yield name, None


# how a parameter is given, as a mark before its name
_MARKS = {"positional_only": "/ ", "positional_or_keyword": "", "keyword_only": "* "}
_MARKS |= {"var_positional": "*", "var_keyword": "**"}


def _takes(value: Any) -> list[str]:
    """The parameters, as "path", "settings = None" or "* create = True" where it is given by name only."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # exceptions take what Python's take
        return []
    return [
        _MARKS[p.kind.name.lower()] + p.name + ("" if p.default is p.empty else f" = {_default(p.default)}")
        for p in signature.parameters.values()
        if p.name != "self"
    ]


def _default(value: Any) -> str:
    return re.sub(" at 0x\\w+", "", repr(value))
