"""The campaign: random tables through everything that the library can do, and what must hold on every road.

    python tests/campaign.py --tables 10000 --seed 1        a campaign, with a summary of what was found
    python tests/campaign.py --seed 1 --table 17 --shrink   one table of it, made as small as still shows the fault

Refusals are errors of the library with a hint; anything else that is raised is a fault, and so is a refusal on a road
that must be open once there is a model. Probabilities are finite and sum to one, and all roads to them agree.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import duckdb
import numpy as np
import onnxruntime
import pyarrow as pa
from by_hand import inputs_of, plain_rows, proba_by_hand
from random_tables import MARKUP, Table, random_table

import tallybayes as tb
from tallybayes.store import model_file, sealed
from tallybayes.store.sql.texts import why_not_cut

MOST_SECONDS = 60  # of processor time for one table, and a hang is cut after twice that
MOST_BYTES = 1 << 30  # by which one table may raise the memory of the process
FEW = 3  # rows that are asked one by one
CLOSE = 1e-9


# ---- one table on its way


@dataclass
class Walk:
    """A table, its model, and the answers by which all roads are judged."""

    table: Table
    folder: pathlib.Path
    rng: random.Random
    data: Any = None
    model: Any = None
    proba: Any = None
    found: list[Finding] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)

    @property
    def how(self) -> dict[str, Any]:
        """Labels and weights beside the data."""
        return {"y": self.table.labels, "weights": self.table.beside}

    def some(self, rows: list[int]) -> tuple[Any, dict[str, Any]]:
        """Some of the rows in the form of the whole, and what stands beside them."""
        part = self.table.take(rows)
        return self.table.part(self.data, rows, self.folder), {"y": part.labels, "weights": part.beside}

    def count(self, rows: list[int], schema: tb.Schema) -> tb.Tally:
        data, how = self.some(rows)
        return tb.count(data, schema, **how)

    @property
    def asked(self) -> list[int]:
        """The numbers of a few rows."""
        return sorted(self.rng.sample(range(self.table.rows), min(FEW, self.table.rows)))


@dataclass(frozen=True)
class Finding:
    """A fault: the road it was met on, what it is, and where."""

    road: str
    what: str
    where: str
    trace: str = ""

    @property
    def kind(self) -> tuple[str, str]:
        """What is the same for all tables that show one fault."""
        return self.road, self.where


ROADS: dict[str, tuple[float, bool, Callable[[Walk], None]]] = {}


def road(share: float, must: bool = True) -> Callable[[Callable[[Walk], None]], Callable[[Walk], None]]:
    """Let so many tables go this road; `must` says that it may not be refused once there is a model."""

    def known(walk: Callable[[Walk], None]) -> Callable[[Walk], None]:
        ROADS[walk.__name__] = (share, must, walk)
        return walk

    return known


def near(one: Any, other: Any, close: float = CLOSE) -> bool:
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    return one.shape == other.shape and bool(np.all((one == other) | (np.abs(one - other) <= close)))


def check_proba(p: Any, rows: int, classes: int) -> None:
    assert p.shape == (rows, classes), f"probabilities of shape {p.shape} for {rows} rows and {classes} classes"
    assert np.isfinite(p).all(), f"probabilities that are no numbers: {p[~np.isfinite(p).all(axis=1)][:2]}"
    assert p.min(initial=0.0) >= 0 and near(p.sum(axis=1), np.ones(rows)), f"probabilities sum to {p.sum(axis=1)[:5]}"


def check_answers(answers: Any, classes: Any, p: Any) -> None:
    """The answers are labels whose probability nobody's exceeds."""
    at = {repr(c): i for i, c in enumerate(classes)}
    for answer, row in zip(answers.tolist(), p, strict=True):
        assert repr(answer) in at, f"the answer {answer!r} is no class of {classes[:5]}"
        assert row[at[repr(answer)]] >= row.max() - CLOSE, f"the answer {answer!r} has {row[at[repr(answer)]]}"


# ---- the roads


@road(1.0, must=False)
def schema(walk: Walk) -> None:
    how = {k: v for k, v in walk.table.fit.items() if k in ("weights", "receipts")}
    found = tb.infer(walk.data, walk.table.target, walk.table.labels, **how)
    path = walk.folder / "schema.json"
    repr(found)
    found.save(path)
    assert tb.Schema.load(path) == found, "a schema that is not what was saved"


@road(1.0, must=False)
def fit(walk: Walk) -> None:
    walk.model = tb.fit(walk.data, walk.table.target, walk.table.labels, weights=walk.table.beside, **walk.table.fit) \
        if "weights" not in walk.table.fit else tb.fit(walk.data, walk.table.target, **walk.table.fit)  # fmt: skip
    shown = repr(walk.model) + repr(walk.model.tally)
    assert all(c.isprintable() or c == "\n" for c in shown), f"control characters on the screen: {shown!r}"
    assert MARKUP not in walk.model._repr_html_(), "markup of the data in the HTML of the model"


@road(1.0)
def predict(walk: Walk) -> None:
    model, n = walk.model, walk.table.rows
    walk.proba = model.predict_proba(walk.data)
    check_proba(walk.proba, n, len(model.classes))
    check_answers(model.predict(walk.data), model.classes, walk.proba)
    for i in walk.asked:
        one, _ = walk.some([i])
        got = model.predict_proba(one)
        assert near(got, walk.proba[[i]]), f"row {i} alone is {got}, among others {walk.proba[i]}"


def lone(walk: Walk, i: int) -> dict[str, Any] | None:
    """A row as a dict of what the data themselves hold; None where they are in a file or a matrix."""
    data, form = walk.data, walk.table.form
    if form == "rows":
        return dict(data[i])
    if form == "pandas":
        return {name: data[name].iloc[i] for name in data.columns}
    with contextlib.suppress(OverflowError, ValueError):  # of times that Python has none for
        if form == "polars":
            return data.row(i, named=True)
        if form == "arrow":
            return {name: data[name][i].as_py() for name in data.column_names}
    return walk.table.row(i) if form == "dict" else None


@road(0.7)
def one_row(walk: Walk) -> None:
    for i in walk.asked:
        row = lone(walk, i)
        if row is None:
            return
        got = walk.model.predict_proba(row)
        assert near(got, walk.proba[[i]]), f"row {i} as a dict is {got}, in the table {walk.proba[i]}"
        check_answers(walk.model.predict(row), walk.model.classes, walk.proba[[i]])
        logs = np.exp(walk.model.predict_log_proba(row))
        assert near(logs, walk.proba[[i]]), f"row {i}: exp of log probabilities {logs}, not {walk.proba[i]}"


@road(0.6)
def explain(walk: Walk) -> None:
    i = walk.asked[0]
    told = walk.model.explain(walk.data, i, log=walk.rng.choice(("natural", "2", "decibans")))
    assert near(told.probabilities, walk.proba[i]), f"explained {told.probabilities}, predicted {walk.proba[i]}"
    plain = walk.model.explain(walk.data, i)
    joint = walk.model.log_joint(walk.some([i])[0])[0]
    there = np.isfinite(joint)
    off = np.abs(plain.total - joint)[there] / np.maximum(1.0, np.abs(joint[there]))
    assert (off <= CLOSE).all(), f"lines add up to {plain.total}, the score is {joint}"
    odds = told.odds()
    for shown in (repr(told), repr(odds)):
        assert all(c.isprintable() or c == "\n" for c in shown), f"control characters on the screen: {shown!r}"
    json.dumps(told.to_dict(), default=str)


@road(0.5, must=False)
def evaluate(walk: Walk) -> None:
    own = {} if walk.table.beside is None else {"weights": walk.table.beside}
    found = tb.evaluate(walk.model, walk.data, walk.table.labels, **own)
    repr(found)
    assert 0 <= found["accuracy"] <= 1 and found["log_loss"] >= 0, "figures out of range"


@road(0.3)
def what_if(walk: Walk) -> None:
    i = walk.asked[0]
    to = walk.rng.choice((None, walk.rng.choice(walk.model.classes)))
    found = walk.model.what_if(walk.data, to, i)
    repr(found)
    if found and found.row is not None:
        p = walk.model.predict_proba([found.row])[0]
        at = walk.model.class_number(found.becomes)
        assert p[at] >= p.max() - 1e-6, f"{found} but the changed row gives {p}"


@road(0.5)
def halves(walk: Walk) -> None:
    """Counting in pieces, in another order, or all at once is the same."""
    whole, schema, rows = walk.model.tally, walk.model.schema, list(range(walk.table.rows))
    cut = walk.rng.randint(0, len(rows))
    parts = [walk.count(part, schema) for part in (rows[:cut], rows[cut:]) if part]
    assert sum(parts) == whole, "the sum of two parts is not the whole"
    assert sum(parts).digest == whole.digest, "the sum of two parts has another digest"
    walk.rng.shuffle(rows)
    assert walk.count(rows, schema).digest == whole.digest, "shuffled rows have another digest"


@road(0.5)
def forget(walk: Walk) -> None:
    """Updated and made to forget, a model has its counts back; less some rows it is what the others give."""
    rows, model = list(range(walk.table.rows)), walk.model
    part = sorted(walk.rng.sample(rows, walk.rng.randint(1, len(rows))))
    data, how = walk.some(part)
    more = model.update(data, new_classes="allow", **how)
    assert more.forget(data, **how).tally.digest == model.tally.digest, "forgetting what was added changes the counts"
    rest = [i for i in rows if i not in set(part)]
    if not rest or len(part) == len(rows):
        return
    less = model.tally.forget(data, **how)
    assert less == walk.count(rest, less.schema), "forgetting some rows is not counting the others"
    if less.rows:
        left = model.forget(data, **how)
        p = left.predict_proba(walk.data)
        check_proba(p, walk.table.rows, len(left.classes))
        if left.schema == model.schema:  # else the rest knows no more by which values rows were grouped
            assert left.update(data, new_classes="allow", **how).tally == model.tally, (
                "rows that come back are not what they were"
            )


@road(0.3)
def row_by_row(walk: Walk) -> None:
    """One row as a dict, which may wait, is the same as a table of one."""
    if walk.table.beside is not None or walk.model.schema.weights is not None:
        return
    row = lone(walk, walk.asked[0])
    if row is None or row.get(walk.model.schema.target) is None:
        return
    one = walk.model.update(row, new_classes="allow")
    assert one.tally == walk.model.tally.update([row], new_classes="allow"), "a row that waits is counted otherwise"
    assert one.forget(row).tally.digest == walk.model.tally.digest, "forgetting a lone row changes the counts"


@road(0.4)
def saved(walk: Walk) -> None:
    path = walk.folder / "m.tb.parquet"
    walk.model.save(path)
    back = tb.load(path)
    assert back.tally.digest == walk.model.tally.digest, "the counts of a saved model have another digest"
    assert back.predict_proba(walk.data).tobytes() == walk.proba.tobytes(), "a loaded model answers otherwise"
    assert [*map(repr, back.classes)] == [*map(repr, walk.model.classes)], "a loaded model has other classes"
    assert model_file.to_bytes(back) == path.read_bytes(), "a loaded model is saved otherwise"


@road(0.3)
def sample(walk: Walk) -> None:
    beneath = walk.model.generative
    drawn = beneath.sample(4, walk.rng.randint(0, 99))
    assert drawn.num_rows == 4, f"{drawn.num_rows} rows of 4"
    for model in (walk.model, beneath):
        check_proba(model.predict_proba(drawn), 4, len(walk.model.classes))
    assert tb.count(drawn, beneath.schema).rows == 4, "what was drawn cannot be counted"


@road(0.02, must=False)
def report(walk: Walk) -> None:
    page = tb.report(walk.model, walk.data, y=walk.table.labels)
    assert MARKUP not in page and "<img src=x" not in page, "markup of the data in the page"


@road(0.3, must=False)
def card(walk: Walk) -> None:
    text = walk.model.export(format="card").decode()
    assert MARKUP not in text and "\0" not in text, "markup of the data in the card"


@road(0.15, must=False)
def seal(walk: Walk) -> None:
    scorer = sealed.sealed_from_bytes(walk.model.export(format="sealed"))
    p = scorer.predict_proba(walk.data)
    assert near(p, walk.proba), f"sealed {p[:2]}, the model {walk.proba[:2]}"


@road(0.1, must=False)
def written_json(walk: Walk) -> None:
    scorer = json.loads(walk.model.export(format="json"))
    i = walk.asked[0]
    row = plain_rows(walk.some([i])[0], walk.model.schema)[0]
    p = proba_by_hand({**scorer, **_nulls(scorer)}, row)
    assert near(p, walk.proba[i]), f"JSON by hand {p}, the model {walk.proba[i]}"


def _nulls(value: Any) -> Any:
    """Minus infinity where JSON has null among numbers."""
    if isinstance(value, dict):
        return {k: -np.inf if v is None else _nulls(v) for k, v in value.items()}
    return [-np.inf if v is None else _nulls(v) for v in value] if isinstance(value, list) else value


@road(0.06, must=False)
def onnx(walk: Walk) -> None:
    session = onnxruntime.InferenceSession(walk.model.export(format="onnx"))
    given = inputs_of(walk.data, walk.model.schema)
    if not session.get_inputs():  # a model without columns, which cannot see how many rows there are
        return
    label, p = session.run(None, {i.name: given[i.name] for i in session.get_inputs()})
    assert near(p, walk.proba), f"ONNX {p[:2]}, the model {walk.proba[:2]}"
    assert len(label) == walk.table.rows, "ONNX has another number of labels"


@road(0.12, must=False)
def sql(walk: Walk) -> None:
    """The query in the database, for tables that it can hold."""
    names, number = list(walk.table.columns), "row number"
    if walk.table.form in ("csv", "jsonl", "matrix") or len({n.casefold() for n in names}) < len(names) or "" in names:
        return
    dialect = walk.rng.choice(("duckdb", "sqlite"))
    rows = walk.table.arrow().append_column(number, pa.array(range(walk.table.rows)))
    every = walk.model.schema.counted
    times = {c.reads for c in every if c.part is not None and dialect == "duckdb"}
    times = {name for name in times if pa.types.is_date(rows[name].type) or pa.types.is_timestamp(rows[name].type)}
    read = {name for column in every for name in column.inputs} - times
    if not all(_has_one_text(rows[name].type) for name in read):  # a span, say, which every database writes otherwise
        return
    words = [c for c in every if c.kind == "text" and c.name in walk.model.beliefs]
    if dialect == "duckdb" and walk.rng.random() < 0.5:  # which cuts most texts by itself
        words = [c for c in words if why_not_cut(c.text)]
    tokens = {c.name: f"tokens {i}" for i, c in enumerate(words)}
    wanted = walk.model.predict_proba(rows)
    query = walk.model.to_sql("rows", dialect, keep=[number], tokens=tokens, row_id=number)
    if dialect == "sqlite" and not all(_in_sqlite(v) for c in rows.columns for v in c.to_pylist()):
        return
    with contextlib.closing(duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")) as db:
        if dialect == "duckdb":
            try:
                db.register("arrow", rows)
                db.execute("CREATE TABLE rows AS SELECT * FROM arrow")
            except duckdb.Error:
                return
        else:
            listed = ", ".join('"' + n.replace('"', '""') + '"' for n in rows.column_names)
            if "\0" in listed:
                return
            db.execute(f"CREATE TABLE rows ({listed})")
            marks = ", ".join("?" * rows.num_columns)
            db.executemany(
                f"INSERT INTO rows VALUES ({marks})", zip(*(c.to_pylist() for c in rows.columns), strict=True)
            )
        for column in words:
            db.execute(f'CREATE TABLE "{tokens[column.name]}" ("row" BIGINT, token VARCHAR, "count" INTEGER)')
            each = [
                (i, token, 1)
                for i, text in enumerate(rows[column.reads].cast(pa.string()).to_pylist())
                for token in column.text.tokens(text or "")
            ]
            if each:
                db.executemany(f'INSERT INTO "{tokens[column.name]}" VALUES (?, ?, ?)', each)
        for statement in query.setup:
            db.execute(statement)
        found = sorted(db.execute(query.query).fetchall())
    p = np.array([row[2:] for row in found], dtype=float)
    assert near(p, wanted), f"{dialect} says {p[:2]}, the model {wanted[:2]}"


def _has_one_text(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)
    return text or pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _in_sqlite(value: Any) -> bool:
    whole = isinstance(value, int) and -(1 << 63) <= value < 1 << 63
    return value is None or whole or isinstance(value, float) or (isinstance(value, str) and "\0" not in value)


@road(0.06, must=False)
def sklearn(walk: Walk) -> None:
    """The estimator takes the frame or refuses it, by an error of ours or of scikit-learn's."""
    from tallybayes.sklearn import NaiveBayes

    with np.errstate(all="ignore"):
        frame = replace(walk.table, form="pandas").data(walk.folder)
    x, y = frame.drop(columns=[walk.table.target]), frame[walk.table.target]
    calibration = walk.rng.choice((None, None, "auto"))
    try:
        model = NaiveBayes(calibration=calibration).fit(x, y)
    except tb.TallybayesError:
        raise
    except (TypeError, ValueError) as refusal:
        if not _of_sklearn(refusal):
            raise
        return
    check_proba(model.predict_proba(x), len(x), len(model.classes_))
    assert len(model.predict(x)) == len(x), "as many answers as rows"


@road(0.1, must=False)
def folds(walk: Walk) -> None:
    """Every row forecast by the others: in folds, and each by itself."""
    own = {} if walk.table.beside is None else {"weights": walk.table.beside}
    how = walk.rng.choice(({}, {"stratify": True}, {"folds": "leave-one-out"}))
    found = tb.cross_validate(
        walk.data, walk.model.schema, walk.table.labels, settings=tb.Settings(), **{"folds": 3, **how}, **own
    )
    repr(found)
    assert np.isfinite(found["log_loss"]) or found["log_loss"] == np.inf, "a log loss that is no number"


@road(0.05, must=False)
def assumptions(walk: Walk) -> None:
    repr(tb.assumptions(walk.data, walk.model.schema, walk.table.labels))


@road(0.1, must=False)
def views(walk: Walk) -> None:
    model = walk.model
    raw, free = model.parameters()
    assert 0 <= free <= raw, f"{free} of {raw} numbers are free"
    for name in model.beliefs:
        repr(model.table(name))
    repr(model.graph())
    check_proba(model.counted.predict_proba(walk.data), walk.table.rows, len(model.classes))


# ---- the walk


class TooLong(BaseException):
    """A road that does not end."""


def _stop(signal_number: int, frame: Any) -> None:
    raise TooLong


def walked(table: Table, roads: tuple[str, ...] | None = None, seed: int = 0) -> Walk:
    """The table taken along the roads named, or along those that the seed draws; what was found is in the walk."""
    rng = random.Random(seed)
    drawn = [name for name, (share, _, _) in ROADS.items() if rng.random() < share]
    chosen = [n for n in ROADS if n in ("fit", "predict", *roads)] if roads is not None else drawn
    kernels = {"TALLYBAYES_KERNELS": rng.choice(("on", "off"))}  # or it would depend on the tables before
    with mock.patch.dict(os.environ, kernels), tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning)  # NumPy's: something became no number
        walk = Walk(table, pathlib.Path(folder), rng)
        try:
            with np.errstate(all="ignore"):
                walk.data = table.data(walk.folder)
        except Exception as fault:
            walk.found.append(_finding("drawing", fault))
            return walk
        for name in chosen:
            if walk.model is None and name not in ("schema", "fit"):
                break
            if walk.proba is None and name not in ("schema", "fit", "predict"):
                break
            walk.rng = random.Random(f"{seed} {name}")
            _go(walk, name)
    return walk


def _go(walk: Walk, name: str) -> None:
    _, must, way = ROADS[name]
    try:
        way(walk)
    except tb.TallybayesError as refusal:
        if must or not refusal.hint:
            walk.found.append(_finding(name, refusal))
        else:
            walk.refused.append((name, refusal.found))
    except (Exception, TooLong) as fault:
        walk.found.append(_finding(name, fault))


def _finding(name: str, fault: BaseException) -> Finding:
    frames = traceback.extract_tb(fault.__traceback__)
    own = [f for f in frames if "tallybayes" in f.filename.split(os.sep)] or frames
    last = frames[-1] if isinstance(fault, AssertionError) else own[-1]
    where = f"{type(fault).__name__} in {pathlib.Path(last.filename).name}: {last.line}"
    return Finding(
        name, f"{type(fault).__name__}: {str(fault)[:300]}", where, "".join(traceback.format_exception(fault))
    )


def _of_sklearn(fault: BaseException) -> bool:
    """Whether it was raised in what scikit-learn was asked by us: its checks of labels and tables."""
    files = [frame.filename for frame in traceback.extract_tb(fault.__traceback__)]
    ours = max(i for i, name in enumerate(files) if "tallybayes" in name.split(os.sep) or name == __file__)
    return "sklearn" in "".join(files[ours + 1 : ours + 2])


def peak() -> int:
    """The most memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def watched(table: Table, roads: tuple[str, ...] | None = None, seed: int = 0) -> Walk:
    """The same under a guard of time and memory."""
    before, began = peak(), time.process_time()
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, 2 * MOST_SECONDS)
    try:
        walk = walked(table, roads, seed)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if (took := time.process_time() - began) > MOST_SECONDS:
        walk.found.append(Finding("time", f"{took:.0f} seconds", "time"))
    if (grown := peak() - before) > MOST_BYTES:
        walk.found.append(Finding("memory", f"{grown >> 20} MB", "memory"))
    return walk


def numbered(seed: int, number: int) -> Table:
    """Table `number` of the campaign of a seed."""
    return random_table(random.Random(f"table {number} of seed {seed}"))


# ---- a table made small


def shrunk(table: Table, finding: Finding, seed: int, seconds: float = 30) -> Table:
    """The smallest table found that shows the same fault on the same road."""
    end = time.monotonic() + seconds

    def same(smaller: Table) -> bool:
        if time.monotonic() > end or smaller.rows == 0:
            return False
        return any(f.kind == finding.kind for f in watched(smaller, (finding.road,), seed).found)

    if not same(table):
        return table
    again = True
    while again:
        again = False
        for smaller in _smaller(table):
            if same(smaller):
                table, again = smaller, True
                break
    return table


def _smaller(table: Table) -> Iterator[Table]:
    for name in table.columns:
        if name not in (table.target, table.fit.get("weights")):
            yield table.without(name)
    size = table.rows // 2
    while size:
        for start in range(0, table.rows, size):
            yield table.take([i for i in range(table.rows) if not start <= i < start + size])
        size //= 2
    if table.form not in ("dict", "matrix"):
        yield replace(table, form="dict")
    for name in table.fit.keys() - {"calibrate"}:  # without which there is more, not less
        yield replace(table, fit={k: v for k, v in table.fit.items() if k != name})
    if "calibrate" not in table.fit:
        yield replace(table, fit={**table.fit, "calibrate": False})
    if table.beside is not None:
        yield replace(table, beside=None)


# ---- the campaign


def _general(message: str) -> str:
    """A refusal without what is of one table only."""
    return re.sub(r"\d[\d,.e+-]*", "#", re.sub(r"'(\\.|[^'\\])*'|\"[^\"]*\"", "'…'", message))[:110]


def run(tables: int, seed: int, first: int = 0, most_minutes: float = 1e9) -> bool:
    """A campaign; prints what was found and says whether that is nothing."""
    found: dict[tuple[str, str], list[tuple[int, Finding]]] = collections.defaultdict(list)
    refused: collections.Counter[tuple[str, str]] = collections.Counter()
    fitted, done, began, times = 0, 0, time.monotonic(), []
    for number in range(first, first + tables):
        start = time.process_time()
        walk = watched(numbered(seed, number), None, number)
        times.append(time.process_time() - start)
        done, fitted = done + 1, fitted + (walk.model is not None)
        refused.update((name, _general(message)) for name, message in walk.refused)
        for finding in walk.found:
            if finding.kind not in found:
                print(f"table {number} of seed {seed}: {finding.road}: {finding.where}\n    {finding.what}", flush=True)
            found[finding.kind].append((number, finding))
        if done % 100 == 0:
            print(f"… {done} tables, {len(found)} faults, {time.monotonic() - began:.0f} s", flush=True)
        if time.monotonic() - began > 60 * most_minutes:
            break
    print(f"\nseed {seed}: {done} tables from {first}, {fitted} of them fitted; {np.mean(times):.2f} s of processor "
          f"time each, {max(times):.1f} s at most; {peak() >> 20} MB at most")  # fmt: skip
    print("\nrefused:" + "".join(f"\n{n:6}  {name}: {message}" for (name, message), n in refused.most_common(60)))
    print(f"\n{len(found)} faults" + ("" if not found else ":"))
    for (name, where), each in sorted(found.items(), key=lambda item: -len(item[1])):
        number, finding = each[0]
        print(f"{len(each):6}  {name}: {where}\n        {finding.what}\n"
              f"        python tests/campaign.py --seed {seed} --table {number} --shrink")  # fmt: skip
    return not found


def one(seed: int, number: int, shrink: bool) -> bool:
    """One table of a campaign: what it is, and what is found on its way."""
    table = numbered(seed, number)
    walk = watched(table, None, number)
    for finding in walk.found:
        print(finding.trace or finding.what)
        print(shown(shrunk(table, finding, number) if shrink else table), "\n")
    if not walk.found:
        print(shown(table), f"\nnothing found; refused: {walk.refused}")
    return not walk.found


def shown(table: Table) -> str:
    columns = "".join(f"\n    {name!r}: {c.values!r} ({c.type or 'as it comes'})" for name, c in table.columns.items())
    return f"target {table.target!r} as {table.form}, {table.fit}, weights {table.beside}:{columns}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--seed", type=int, default=0, help="of the campaign")
    parser.add_argument("--table", type=int, help="only this one, with its traceback")
    parser.add_argument("--shrink", action="store_true", help="made small")
    parser.add_argument("--minutes", type=float, default=1e9, help="no longer than this")
    a = parser.parse_args()
    clean = one(a.seed, a.table, a.shrink) if a.table is not None else run(a.tables, a.seed, a.first, a.minutes)
    sys.exit(not clean)
