"""Writes the files of the version of the day, once, before it is released:

    python tests/golden/write_version.py

They go into tests/golden/VERSION with the rows that they hold, rows to ask about and what was answered. A folder that
is there is never written again: every later release reads it, which tests/store/test_versions.py checks.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import tallybayes as tb
from tallybayes.mail import Filter
from tallybayes.serve.desk import Desk

HERE = Path(__file__).parent
F = tb.families
WORDS = ["offer", "free", "meeting", "noon", "price", "agenda", "cheap", "lunch", "minutes", "winner", "Straße", "東京"]
START = dt.datetime(2024, 2, 27, 6)
ALL, FIRST = 160, 100  # rows, and those that files hold; the others are added to them


def rows(n: int, seed: int) -> list[dict[str, Any]]:
    """Rows with every kind of column, as JSON can say them. Python promises that `random` goes on so."""
    draw = random.Random(seed).random

    def one(of: Any) -> Any:
        return of[int(draw() * len(of))]

    def bell() -> float:
        return sum(int(draw() * 64) for _ in range(6)) / 64 - 3

    def seldom(value: Any, share: float) -> Any:
        return None if draw() < share else value

    out = []
    for i in range(n):
        late = i * 7 % 11 % 2
        size = round(bell() + late, 3)
        left = one("ab")
        out.append({
            "colour": seldom(one(["red", "blue", "grün"][: 2 + late]), 0.1),
            "size": seldom(size, 0.05 + 0.3 * late),  # that it is missing says something, too
            "again": round(2 * size + 1, 3),
            "price": f"{int(draw() * 4000) / 100 + 20 * late:.2f} €".replace(".", ","),
            "visits": min(int(draw() * 7), int(draw() * 7)) + late,
            "left": left,
            "right": left if (draw() < 0.8) == bool(late) else one("ab"),
            "place": one("klmnopqrst"[late : 9 + late]),
            "note": seldom(
                " ".join(one(WORDS[late::2] if draw() < 0.6 else WORDS) for _ in range(int(draw() * 8))), 0.1
            ),
            "words": [one(WORDS[late::2]) for _ in range(int(draw() * 5))],
            "point": [bell(), bell() + late, bell()],
            "when": (START + dt.timedelta(hours=5 * (i % 40) + late)).isoformat(),
            "weight": one([1, 0.5, 2, 0.1]),
            "late": ("no", "yes")[late],
        })  # fmt: skip
    return out


FITTED = ("colour", "size", "again", "price", "visits", "left", "right", "place", "note", "late")
PLAIN = ("colour", "size", "visits", "late")


def only(data: list[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in names if name in row} for row in data]


def schema_of_all_kinds() -> tb.Schema:
    whole = tb.Cells(1.0, -7, (0.0, 1.0, 2.0, 3.0), discrete=True)
    size = tb.Cells(0.0, -2, (0.0, 0.5))
    pair = (tb.PairColumn("colour"), tb.PairColumn("size", "number", cuts=(0.0, 1.0)))
    groups = (tb.PairColumn("left"), tb.PairColumn("place", groups=(("k", "l"), ("m", "n", "o"))))
    return tb.Schema(
        [
            tb.Column("colour", "category", values=["red", "blue", "grün", "schwarz"]),
            tb.Column("size", "number", cells=size),
            tb.Column("visits", "number", cells=whole),
            tb.Column("note", "text", levels=2, text=tb.Tokeniser(ngrams=(1, 2), stop=("noon",))),
            tb.Column("letters", "text", source="note", text=tb.Tokeniser(chars=(2, 2), accents=False)),
            tb.Column("words", "bag", levels=2),
            tb.Column("point", "vector", width=3),
            tb.Column("when", "date"),
            tb.Column("colour × size", "pair", of=pair),
            tb.Column("left × place", "pair", of=groups),
            tb.Column("size missing", "gap", of=(tb.PairColumn("size", "number"),)),
            tb.Column("right", "ignore"),
        ],
        target="late",
        weights="weight",
        receipts=True,
    )


def models(first: list[dict[str, Any]]) -> dict[str, tb.Model]:
    """What a file can hold, in as few models as show it."""
    kinds = tb.count(first, schema_of_all_kinds())
    by_hand = tb.Settings(
        families={"size": F.Blend(shares=(0.5, 0.25, 0.125, 0.125, 0.0)), "note": "complement", "words": "bernoulli"},
        weights={"size": 0.75, "note": 0.5}, lengths={"note": -0.5}, offsets={"no": 0.5, "yes": -0.5},
        lead=tb.Lead(1.3, -0.4), unseen="reserve", prior={"no": 0.75, "yes": 0.25},
        smoothing={"colour": tb.Dirichlet({"red": 2.0}), "left × place": tb.BackOff(),
                   "letters": tb.JelinekMercer(0.3)},
    )  # fmt: skip
    others = tb.Settings(
        families={"size": "kernel", "visits": "poisson", "note": F.Multinomial(select=F.Selection(top=5)),
                  "words": "levels", "point": "student"},
        smoothing={"colour": tb.AbsoluteDiscount(0.5)}, floor=tb.Floor("guarded", 1e-6), predictive=True,
    )  # fmt: skip
    plain = tb.infer(only(first, PLAIN), target="late")
    known = only(first, FITTED)
    return {
        "kinds": kinds.model(),
        "by-hand": kinds.model(by_hand),
        "others": kinds.model(others),
        "fitted": tb.fit(known, target="late"),
        "isotonic": tb.fit(known, target="late", calibrate="isotonic"),
        "counted": tb.fit(known, target="late", calibrate="counted"),
        "sets": tb.textbook(only(first, PLAIN), "late").with_sets(only(first, PLAIN)),
        "plain": tb.count(only(first, PLAIN), plain).model(tb.Settings(families={"size": "bins"})),
    }


def letters() -> list[tuple[bytes, str]]:
    draw = random.Random(9).random
    out = []
    for i in range(40):
        label = ("ham", "spam")[i % 2]
        text = " ".join(WORDS[int(draw() * 5) * 2 + i % 2] for _ in range(15))
        head = f"From: a{i}@{label}.example\nSubject: {text[:20]}\nMessage-ID: <{i}@{label}>\n\n"
        out.append(((head + text + "\n").encode(), label))
    return out


def main() -> None:
    folder = HERE / tb.__version__
    if folder.exists():
        sys.exit(f"{folder} is there, and what a release wrote is never written again")
    os.environ["SOURCE_DATE_EPOCH"] = "1763424000"
    warnings.simplefilter("ignore")
    beside = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    write(beside)
    beside.rename(folder)
    print(sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()), "bytes in", folder)


def write(folder: Path) -> None:
    data, asked = rows(ALL, 1), [{k: v for k, v in row.items() if k != "late"} for row in rows(12, 2)]
    asked += [{"colour": "mauve", "size": 1e6, "visits": 40, "place": "zz"}, {}]
    asked = [{name: row.get(name) for name in data[0] if name != "late"} for row in asked]
    told: dict[str, Any] = {}
    for name, model in models(data[:FIRST]).items():
        model.save(folder / f"{name}.tb.parquet")
        told[name] = answers(model, asked)
        if name in ("by-hand", "fitted", "isotonic", "plain"):
            model.export(folder / f"{name}.sealed.parquet")
        if name in ("fitted", "plain"):
            model.export(folder / f"{name}.scorer.json", "json")
        if name == "plain":
            model.export(folder / f"{name}.onnx", "onnx")
        if name in ("kinds", "fitted", "counted"):
            model.tally.save(folder / f"{name}.tally.parquet")
            told[name]["all rows"] = tb.count(data, schema=model.schema).digest
            model.schema.save(folder / f"{name}.schema.json")
    plain = tb.load(folder / "plain.tb.parquet")
    plain.share(at_least=3).model.save(folder / "shared.tb.parquet")
    told["shared"] = answers(tb.load(folder / "shared.tb.parquet"), asked)
    watch = plain.watch()
    watch.predict(only(asked, PLAIN))
    watch.save(folder / "plain.watch.parquet")
    told["watch"] = str(watch.report())
    told["windows"] = windows(folder, data)
    told["mail"] = mail(folder)
    told["served"] = served(folder, data)
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in told.items())
    (folder / "told.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    text = json.dumps({"first": data[:FIRST], "more": data[FIRST:], "asked": asked}, ensure_ascii=False)
    (folder / "rows.json").write_text(text.replace("}, {", "},\n{") + "\n", encoding="utf-8")


def answers(model: tb.Model, asked: list[dict[str, Any]]) -> dict[str, Any]:
    out = {
        "digest": model.tally.digest if model.tally is not None else None,
        "log_proba": model.predict_log_proba(asked).tolist(),
        "predicted": [str(label) for label in model.predict(asked)],
        "provenance": str(model.provenance),
    }
    if "prediction sets" in model.notes:
        out["sets"] = [list(map(str, one)) for one in model.predict_set(asked, coverage=0.8)]
    return out


def windows(folder: Path, data: list[dict[str, Any]]) -> dict[str, Any]:
    schema = tb.infer(only(data, (*PLAIN, "when")), target="late", kinds={"when": "ignore"})
    out = tb.Windows(schema, by="month", time="when")
    out.add(only(data[:FIRST], (*PLAIN, "when")))
    out.save(folder / "windows")
    return {"periods": list(out.periods), "digest": out.window().digest, "last": out.last(1).digest}


def mail(folder: Path) -> dict[str, Any]:
    known = letters()
    with Filter(folder / "mail.state") as box:
        box.train([(label, raw) for raw, label in known[:30]])
        found = [box.score(raw) for raw, _ in known[30:]]
        return {"answers": [v.answer for v in found], "spam": [v.probability for v in found], "digest": box.digest}


def served(folder: Path, data: list[dict[str, Any]]) -> dict[str, Any]:
    """A model file, and a journal that knows more than it: one change of each kind."""
    shutil.copy(folder / "plain.tb.parquet", folder / "served.tb.parquet")
    with Desk.open(folder / "served.tb.parquet") as desk:
        more = only(data[FIRST:], PLAIN)
        before = (folder / "served.tb.parquet").read_bytes()
        desk.learn(more[:5], who="Ann")
        desk.add_to_pool([{k: v for k, v in row.items() if k != "late"} for row in more[5:8]])
        desk.label(desk.pool(1)[0].id, "yes", who="Bob")
        desk.forget(ids=[1])
        out = {"digest": desk.digest, "version": desk.version, "pool": desk.pool_size()}
        desk.journal.copy_to(str(folder / "copy"))
    for left in folder.glob("served.tb.parquet*"):
        left.unlink()
    (folder / "served.tb.parquet").write_bytes(before)
    (folder / "copy").rename(folder / "served.tb.parquet.journal")
    return out


if __name__ == "__main__":
    main()
