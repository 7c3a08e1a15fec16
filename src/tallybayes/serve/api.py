"""What the API can be asked: each action with its fields, and the answer as plain values. No HTTP here.

The table `ACTIONS` is all there is: `app` makes addresses of it, and `openapi` their description.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..base.errors import DataError, did_you_mean, excerpt, unknown
from ..base.wording import jsonable
from ..model.model import Model
from .desk import Desk, Done, Receipt
from .guard import ServeLimits
from .journal import KeptRow, Operation
from .judging import Judging
from .lately import Lately
from .lately import told as told_lately
from .metrics import LiveWatch
from .problems import ApiProblem
from .served import OncePerState
from .suggest import Suggester

MOST_LISTED = 1_000  # operations, or rows of the journal, in one answer


@dataclass(frozen=True)
class Field:
    """One field of a request: what it is, and whether it must be there."""

    kind: str  # row, rows, labels, value, text, whole, ids, names or flag
    says: str
    needed: bool = False


@dataclass(frozen=True)
class Action:
    """Something that can be asked: its address, its fields, and the method of `Api` that answers."""

    method: str
    path: str
    name: str
    says: str
    fields: Mapping[str, Field] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Whether it leads to an operation that can be asked for twice by mistake; to erase twice changes nothing."""
        return self.method == "POST" and "who" in self.fields and self.name != "erase"


_WHO = Field("text", "who asks, for the journal")
_NEW = Field("text", '"allow" lets a label that no row has had be a class; otherwise it is refused')
_ID = Field("whole", "the id of a row", needed=True)
_LIMIT = Field("whole", f"how many, up to {MOST_LISTED:,}")
_COLUMN = Field("text", "a column of the rows, counted or not", needed=True)
_VALUE = Field("value", "the value to look for, as it is written", needed=True)
_ROW, _ROWS = Field("row", "one row: an object of column and value"), Field("rows", "several rows")
ACTIONS = (
    Action("POST", "/api/predict", "predict", "The class of one row or of many, with probabilities.",
           {"row": _ROW, "rows": _ROWS}),
    Action("POST", "/api/explain", "explain", "Why a row gets its answer: parts that add up to the score.",
           {"row": Field("row", "one row", needed=True)}),
    Action("POST", "/api/what-if", "what_if", "The fewest changes that give a row another answer.",
           {"row": Field("row", "one row", needed=True), "to": Field("value", "the class that it is to become"),
            "fixed": Field("names", "columns that stay as they are")}),
    Action("POST", "/api/learn", "learn", "Count rows under their labels. All are learnt, or none.",
           {"rows": Field("rows", "rows, with their labels unless these are given apart", needed=True),
            "labels": Field("labels", "one label for each row"), "who": _WHO, "new_classes": _NEW}),
    Action("POST", "/api/forget", "forget", "Take rows out of the counts. All of them, or none.",
           {"ids": Field("ids", "ids of rows"), "rows": Field("rows", "rows as they were learnt, with their labels"),
            "who": _WHO}),
    Action("POST", "/api/relabel", "relabel", "Count a row under another label.",
           {"id": _ID, "label": Field("value", "the new label", needed=True), "who": _WHO, "new_classes": _NEW}),
    Action("POST", "/api/undo", "undo", "Turn an operation round, however old; an undo as well.",
           {"operation": Field("whole", "the number of the operation", needed=True), "who": _WHO}),
    Action("POST", "/api/erase", "erase", "Delete a person: rows are forgotten and wiped, for good.",
           {"column": _COLUMN, "value": _VALUE, "who": _WHO}),
    Action("POST", "/api/found", "found", "Rows of the journal with this value in a column.",
           {"column": _COLUMN, "value": _VALUE, "limit": _LIMIT}),
    Action("POST", "/api/add-to-pool", "add_to_pool", "Let rows wait for a label.",
           {"rows": Field("rows", "rows without labels", needed=True), "who": _WHO}),
    Action("POST", "/api/label", "label", "Give a row of the pool its label: it is learnt.",
           {"id": _ID, "label": Field("value", "its label", needed=True), "who": _WHO, "new_classes": _NEW}),
    Action("POST", "/api/skip", "skip", "Take a row out of the pool without a label.", {"id": _ID, "who": _WHO}),
    Action("GET", "/api/next", "next", "Rows of the pool to label next, and how many of a class are likely left.",
           {"limit": _LIMIT, "who": Field("text", "who asks: rows that others were offered just now come last"),
            "find": Field("text", "a class to look for: its likeliest rows, and how many of them are left"),
            "random": Field("whole", "1 asks for rows drawn at random alone, which what is left is told by")}),
    Action("GET", "/api/pool", "pool", "Rows that wait for a label, by id.",
           {"limit": _LIMIT, "after": Field("whole", "only rows of larger ids")}),
    Action("GET", "/api/operations", "operations", "What was done, the newest first.",
           {"limit": _LIMIT, "before": Field("whole", "only operations of smaller numbers")}),
    Action("GET", "/api/row", "row", "A row of the journal.", {"id": _ID}),
    Action("GET", "/api/model", "model", "What the model is: classes, columns, rows."),
    Action("GET", "/api/digest", "digest", "The digest of the counts, and the number of the last operation."),
    Action("GET", "/api/watch", "watch", "What the model was asked since the server began."),
)  # fmt: skip


class Api:
    """The answers, from a desk."""

    def __init__(self, desk: Desk, limits: ServeLimits | None = None) -> None:
        self.desk, self.limits = desk, limits or ServeLimits()
        self.live, self.judging, self.once = LiveWatch(desk), Judging(desk), OncePerState()
        self.suggester = Suggester(desk)
        self.lately = Lately(desk)

    def answer(self, action: Action, given: Mapping[str, Any], key: str = "") -> dict[str, Any]:
        """The answer to a request, after every field was looked at.

        With a `key` a request that comes a second time, with the same fields, is answered and changes nothing.
        """
        for name in given:
            if name not in action.fields:
                known = excerpt(action.fields) or "none"
                hint = did_you_mean(name, action.fields) + f"{action.path} has the fields {known}."
                raise ApiProblem("not-json", f"there is no field {name[:100]!r}", hint)
        for name, about in action.fields.items():
            if name in given:
                self._check(name, about.kind, given[name])
            elif about.needed:
                raise ApiProblem("not-json", f"the field {name!r} is not there", f"it is {about.says}.")
        ask: Callable[..., Any] = getattr(self, f"_{action.name}")
        if key and action.changes:
            request = json.dumps([key, action.name, given])
            done = self.desk.once(request, lambda: ask(**given))
        else:
            done = ask(**given)
        out = jsonable(done if isinstance(done, dict) else asdict(done))
        assert isinstance(out, dict)
        return out

    # ---- asking

    def _predict(self, row: Any = None, rows: Any = None) -> dict[str, Any]:
        if (row is None) == (rows is None):
            raise ApiProblem("not-json", "give one of row and rows", 'such as {"row": {"sky": "sunny"}}.')
        served = self.desk.served
        asked = [row] if rows is None else rows
        read, absent = self._filled(asked)
        chances = self.live.over(served.model).predict_proba(read) if read else np.zeros((0, 0))
        self.lately.asked(served, read, chances)
        classes = served.model.classes
        told = []
        for each in chances:
            best = int(np.argmax(each))
            by_class = _by_class(zip(classes, each.tolist(), strict=True))
            told.append({"class": classes[best], "probability": float(each[best]), "probabilities": by_class})
        state = {"operation": served.version, "digest": served.tally.digest, "absent": absent}
        return {**told[0], **state} if rows is None else {"answers": told, **state}

    def _explain(self, row: Any) -> dict[str, Any]:
        (read,), absent = self._filled([row])
        return {**self.desk.model.explain([read]).to_dict(), "absent": absent}

    def _what_if(self, row: Any, to: Any = None, fixed: Sequence[str] = ()) -> dict[str, Any]:
        (read,), absent = self._filled([row])
        return {**self.desk.model.what_if([read], to, fixed=fixed).to_dict(), "absent": absent}

    def _model(self) -> dict[str, Any]:
        served = self.desk.served
        model: Model = served.model
        columns = [
            {"name": c.name, "kind": c.kind, "reads": list(c.inputs)} for c in model.schema.counted
        ]  # fmt: skip
        prior = _by_class(model.prior().items())
        return {
            "target": model.schema.target, "classes": list(model.classes), "prior": prior, "columns": columns,
            "inputs": list(served.read.inputs), "rows": served.tally.rows, "operation": served.version,
            "digest": served.tally.digest, "pool": self.desk.pool_size(),
        }  # fmt: skip

    def _digest(self) -> dict[str, Any]:
        served = self.desk.served
        return {"digest": served.tally.digest, "operation": served.version, "rows": served.tally.rows}

    def _watch(self) -> dict[str, Any]:
        report = self.live.report()
        counted = report.counted
        told = {"rows": counted.rows, "failed": counted.failed, "judged": counted.judged, "unsure": counted.unsure}
        more = {"unsure_below": report.unsure_below, "answers": counted.answers, "columns": report.table}
        return {**told, **more, **told_lately(self.lately, self.desk.served)}

    # ---- changing

    def _learn(self, rows: Any, labels: Any = None, **how: Any) -> Done:
        return self.desk.learn(rows, labels, **how)

    def _forget(self, ids: Sequence[int] = (), rows: Any = (), who: str = "") -> Done:
        return self.desk.forget(ids, rows, who=who)

    def _relabel(self, id: int, label: Any, **how: Any) -> Done:
        return self.desk.relabel(id, label, **how)

    def _undo(self, operation: int, who: str = "") -> Done:
        return self.desk.undo(operation, who=who)

    def _erase(self, column: str, value: Any, who: str = "") -> Receipt:
        return self.desk.erase(column, value, who=who)

    def _add_to_pool(self, rows: Any, who: str = "") -> Done:
        return self.desk.add_to_pool(rows, who=who)

    def _label(self, id: int, label: Any, **how: Any) -> Done:
        return self.desk.label(id, label, **how)

    def _skip(self, id: int, who: str = "") -> Done:
        return self.desk.skip(id, who=who)

    # ---- the journal

    def _found(self, column: str, value: Any, limit: int = 100) -> dict[str, Any]:
        return {"rows": [_told(row) for row in self.desk.found(column, value, _few(limit))]}

    def _row(self, id: int) -> dict[str, Any]:
        return _told(self.desk.row(id))

    def _pool(self, limit: int = 100, after: int = 0) -> dict[str, Any]:
        rows = self.desk.pool(_few(limit), after)
        return {"rows": [_told(row) for row in rows], "waiting": self.desk.pool_size()}

    def _next(self, limit: int = 1, who: str = "", find: str | None = None, random: int = 0) -> dict[str, Any]:
        picked = self.suggester.next(_few(limit), who=who, find=find, random=random > 0)
        come = self.suggester.progress(find)
        left = come.left
        return {
            "rows": [
                {**_told(each.row), "why": each.why, "probabilities": _by_class(each.probabilities.items())}
                for each in picked
            ],
            "waiting": come.waiting, "labelled": [{"class": c, "rows": n} for c, n in come.labelled.items()],
            "left": {
                "class": left.label, "estimate": left.estimate, "low": left.low, "high": left.high,
                "confidence": left.confidence, "at_most": left.at_most, "found": left.found, "audited": left.audited,
            },
            "stop": {"now": come.stop, "why": come.why}, "ready": come.ready,
        }  # fmt: skip

    def _operations(self, limit: int = 100, before: int | None = None) -> dict[str, Any]:
        return {"operations": [_line(each) for each in self.desk.operations(before, _few(limit))]}

    # ---- inside

    def _filled(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
        """Rows with all the fields that are read, and the names of those that no row has."""
        inputs = self.desk.served.read.inputs
        here = {name for row in rows for name in row}
        absent = [name for name in inputs if name not in here]
        if rows and inputs and len(absent) == len(inputs):
            found = f"none of the fields {excerpt(inputs)} is in the data, which have {excerpt(here) or 'none'}"
            raise unknown(DataError, found, next(iter(here), ""), inputs)
        return [{**dict.fromkeys(inputs), **row} for row in rows], absent

    def _check(self, name: str, kind: str, value: Any) -> None:
        """Refuse a field that is not what it must be, or that is more than a request may take."""
        right = {
            "row": isinstance(value, dict),
            "rows": isinstance(value, list) and all(isinstance(each, dict) for each in value),
            "labels": isinstance(value, list),
            "value": True,
            "text": isinstance(value, str),
            "whole": isinstance(value, int) and not isinstance(value, bool),
            "ids": isinstance(value, list) and all(isinstance(v, int) and not isinstance(v, bool) for v in value),
            "names": isinstance(value, list) and all(isinstance(each, str) for each in value),
        }[kind]
        if not right:
            raise ApiProblem("not-json", f"the field {name!r} is not {WORDS[kind]}", "see /openapi.json.")
        if kind in ("rows", "labels", "ids") and len(value) > self.limits.rows:
            found = f"{len(value):,} in {name!r}; this server takes {self.limits.rows:,} at once"
            raise ApiProblem("too-many-rows", found, "send them in parts.")
        for row in value if kind == "rows" else [value] if kind == "row" else []:
            if len(row) > self.limits.fields:
                found = f"a row has {len(row):,} fields; this server takes {self.limits.fields:,}"
                raise ApiProblem("too-many-fields", found, "send the fields that GET /api/model names as inputs.")


WORDS = {
    "row": "an object", "rows": "a list of objects", "labels": "a list", "value": "a value", "text": "a text",
    "whole": "a whole number", "ids": "a list of whole numbers", "names": "a list of texts",
}  # fmt: skip


def _told(row: KeptRow) -> dict[str, Any]:
    standing = "counted" if row.counted else row.standing
    return {"id": row.id, "standing": standing, "label": row.label, "values": dict(row.values)}


def _by_class(chances: Iterable[tuple[Any, float]]) -> list[dict[str, Any]]:
    return [{"class": c, "probability": p} for c, p in chances]


def _line(operation: Operation) -> dict[str, Any]:
    return {name: value for name, value in asdict(operation).items() if name != "request"}


def _few(limit: int) -> int:
    return max(0, min(limit, MOST_LISTED))
