"""Which row of a desk's pool to label next, how far the work has come, and when to stop.

    suggester = Suggester(desk)                  one for a desk; threads share it
    suggester.next(limit, who=…, find=…)         rows to label now, the best first: list[Suggested]
    suggester.progress(find=…)                   what has a label, what is left, whether to stop: LabellingProgress

Rows are those that it tells most to label (`tb.next_to_label`), or with `find` those that are most likely of a class;
every third, or with `find` every tenth, is the next of an order that was drawn at random. That order rests on nothing
but the ids of the rows, so it is the same after a restart, and the rows at its head that have a label are an audit from
which follows how many rows of a class are left (`tb.relevant_left`).

The pool is read and scored once, by a thread of its own while a request waits for it a little; until it is there, rows
come in the order of the audit. From then on what the journal has since is taken up with each request: labels that rows
of the pool have got, or lost, are counted in it, and any other change of the counts is taken over from the model. An
erasure throws all of it away. Whatever is suggested waits for a label when it is handed out, by the journal itself.

A row is out with whoever gave a name and was offered it, for two minutes; others are offered other rows while there
are any.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import canon
from ..base.arrays import Ints
from ..base.errors import SettingsError, unknown
from ..model.model import Model
from ..model.prior import class_totals
from ..selection.labelling.left import Left, counted_left
from ..selection.labelling.pool import Pool
from ..selection.labelling.scored import ScoredPool
from .desk import Desk
from .journal import COUNTED, MOST_ID, POOL, KeptRow, label_in
from .served import Served

OUT_SECONDS = 120.0
PATIENCE = 1.0  # seconds that a request waits for the pool to be read
RECALL = 0.95  # of a class, to be found before one may stop
_RANDOM, _RANDOM_FINDING = 3, 10  # every so many rows the next of the audit
_MOST_FOLLOWED = 1000  # operations; after more of them the audit begins anew
_TELLING, _LIKELY, _BY_CHANCE = "telling", "likely", "random"


@dataclass(frozen=True)
class Suggested:
    """A row to label: why this one, and P(class) as the model has it now."""

    row: KeptRow
    why: str  # telling, likely (of the class that is looked for) or random (for the audit)
    probabilities: Mapping[Any, float]


@dataclass(frozen=True)
class LabellingProgress:
    """How far the work has come."""

    waiting: int  # rows of the pool without a label
    labelled: Mapping[Any, int]  # rows that came out of the pool with a label, by class
    counted: Mapping[Any, float]  # rows of each class that the model has counted, wherever from; or their weight
    left: Left  # of the class that is looked for: estimate, low, high, at_most, found, audited, recall, …
    stop: bool
    why: str  # a sentence
    ready: bool  # whether the pool has been read; until then rows are suggested by chance


class Suggester:
    """What to label next in the pool of a desk; see the head of the module. Threads may share it."""

    def __init__(
        self, desk: Desk, *, patience: float = PATIENCE, out: float = OUT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._desk, self._patience, self._out_for, self._clock = desk, patience, out, clock
        self._turn = threading.Lock()
        self._audit: _PoolAudit | None = None
        self._placed: _PlacedPool | None = None
        self._making: Future[_PlacedPool] | None = None
        self._out: dict[int, tuple[str, float]] = {}  # row → who has it, and since when

    def next(self, limit: int = 1, *, who: str = "", find: Any = None, random: bool = False) -> list[Suggested]:
        """Up to so many rows to label now, the best first; none that another has been offered, while there are others.

        `find` names a class whose rows are looked for; `random` asks for rows of the audit alone. Whoever gives no name
        keeps nothing from others.
        """
        self._wait()
        with self._turn:
            served = self._caught_up()
            known = None if find is None else _class_name(served.model, find)
            now = self._clock()
            self._out = {row: (by, at) for row, (by, at) in self._out.items() if now - at < self._out_for}
            elsewhere = [row for row, (by, _) in self._out.items() if by != who]
            out: dict[int, Suggested] = {}
            for barred in [elsewhere, []] if elsewhere else [[]]:  # what others have comes last
                while len(out) < limit:
                    wanted = self._chosen(limit - len(out), known, random, {*barred, *out})
                    there = self._desk.journal.rows_there(row for row, _ in wanted)
                    for row, why in wanted:
                        kept = there.get(row)
                        if kept is not None and kept.standing == POOL:
                            out[row] = Suggested(kept, why, self._probabilities(served, kept))
                        else:
                            self._leave_out(row)  # an operation newer than the model that is served
                    if not wanted:
                        break
            self._out |= dict.fromkeys(out, (who, now)) if who else {}
        return list(out.values())

    def progress(self, find: Any = None, *, recall: float = RECALL, confidence: float = 0.9) -> LabellingProgress:
        """What has a label, how many rows of a class are likely left, and whether one may stop.

        Without a class it is the one that the model has counted least of.
        """
        with self._turn:
            served = self._caught_up()
            model, audit = served.model, self._audit
            assert audit is not None
            ready = self._placed is not None and not self._placed.lacks
            names = {str(canon.text(c)): c for c in model.classes}
            counted = dict(zip(names, class_totals(served.tally, tuple(names)).tolist(), strict=True))
            of = min(counted, key=counted.__getitem__) if find is None else _class_name(model, find)
            labels, waiting = Counter(audit.labels.values()), audit.waiting
            outside = {c: max(n - labels[c], 0.0) for c, n in counted.items()}  # known before anything was drawn
            share = (outside[of] + 0.5) / (sum(outside.values()) + 0.5 * len(outside))
            left = left_of(audit, names[of], share, confidence)
        stop, why = _verdict(left, waiting, recall)
        return LabellingProgress(
            waiting, {c: labels[name] for name, c in names.items()}, {c: counted[name] for name, c in names.items()},
            left, stop, why, ready,
        )  # fmt: skip

    # ---- inside

    def _wait(self) -> None:
        """Begin to read the pool where that has not been done, and wait for it a little."""
        with self._turn:
            self._caught_up()
            making = self._making if self._placed is None else None
        if making is not None:
            wait([making], self._patience)

    def _caught_up(self) -> Served:
        """What is served now, with all that rests on it brought up to that operation."""
        served, journal = self._desk.served, self._desk.journal
        audit = self._audit
        if audit is None or audit.read is not served.read or served.version - audit.version > _MOST_FOLLOWED:
            self._audit = _PoolAudit(self._desk)
        else:  # each by itself: a row that has come and got its label since was in the pool, too
            for operation in range(audit.version + 1, served.version + 1):
                audit.follow(journal.changes(operation), operation)
        if self._making is not None and self._making.done():
            made, self._making = self._making, None
            self._placed = made.result()
        if self._placed is not None and self._placed.read is not served.read:
            self._placed = None
        if self._placed is not None and self._placed.version < served.version:
            changes = journal.net_changes(self._placed.version, served.version, turned_back=True)
            self._placed.follow(changes, served)
        if self._making is None and (self._placed is None or self._placed.lacks):
            self._making = Future()
            threading.Thread(target=_make, args=(self._desk, self._making), daemon=True).start()
        return served

    def _chosen(self, limit: int, find: str | None, random: bool, barred: set[int]) -> list[tuple[int, str]]:
        """Rows and why, the best first."""
        assert self._audit is not None
        every = _RANDOM if find is None else _RANDOM_FINDING
        at = len(self._audit.labels) + len(barred)
        asked = 0 if random else sum(i % every > 0 for i in range(at + 1, at + limit + 1))
        placed, why = self._placed, _TELLING if find is None else _LIKELY
        picked = [] if placed is None or not asked else placed.best(asked, find, barred)
        out = [(row, why) for row in picked]
        for row in self._audit.coming():
            if len(out) >= limit:
                break
            if row not in barred and row not in picked:
                out.append((row, _BY_CHANCE))
        return out

    def _probabilities(self, served: Served, row: KeptRow) -> dict[Any, float]:
        p = None if self._placed is None else self._placed.probabilities(row.id)
        if p is None:
            p = served.model.predict_proba([_inputs(served, row)])[0].tolist()
        return dict(zip(served.model.classes, p, strict=True))

    def _leave_out(self, row: int) -> None:
        assert self._audit is not None
        self._audit.leave_out(row)
        if self._placed is not None:
            self._placed.leave_out(row)


class _PoolAudit:
    """Every row that waits for a label or did once, in an order that is as good as drawn, and the labels they have."""

    def __init__(self, desk: Desk) -> None:
        self.read, self.version = desk.served.read, desk.version
        self._standing = dict(desk.journal.ever_in_pool())
        self.labels = {row: label for row, s in self._standing.items() if (label := label_in(s)) is not None}
        self.waiting = sum(s == POOL for s in self._standing.values())
        self._order: list[int] | None = None

    def follow(self, changes: Iterable[tuple[int, str, str]], version: int) -> None:
        """Take up what operations have made of rows."""
        for row, was, became in changes:
            if row in self._standing or POOL in (was, became):
                self._order = self._order if row in self._standing else None
                self._now(row, became)
        self.version = version

    def leave_out(self, row: int) -> None:
        """A row that is in the pool no longer, by an operation that will be taken up soon."""
        self._now(row, "")

    def _now(self, row: int, standing: str) -> None:
        self.waiting += (standing == POOL) - (self._standing.get(row) == POOL)
        self._standing[row], label = standing, label_in(standing)
        self.labels.pop(row, None)
        if label is not None:
            self.labels[row] = label

    @property
    def order(self) -> list[int]:
        """Every row, in the order of the audit."""
        if self._order is None:
            rows = np.fromiter(self._standing, np.int64, len(self._standing))
            self._order = rows[np.argsort(_mixed(rows), kind="stable")].tolist()
        return self._order

    def coming(self) -> Iterator[int]:
        """The rows that wait, in the order of the audit."""
        return (row for row in self.order if self._standing[row] == POOL)

    def head(self) -> dict[int, str]:
        """The rows that have a label before the first that has none, which are drawn at random, with their labels."""
        out = {}
        for row in self.order:
            if self._standing[row] == POOL:
                break
            if row in self.labels:
                out[row] = self.labels[row]
        return out


def left_of(audit: _PoolAudit, label: Any, share: float, confidence: float) -> Left:
    """How many rows of a class are left, of which such a share was expected before anything was drawn."""
    head, rows = audit.head(), audit.waiting + len(audit.labels)
    rest = (other for row, other in audit.labels.items() if row not in head)
    since = {len(head) + i: other for i, other in enumerate(rest)}
    return counted_left(rows, label, share * rows, dict(enumerate(head.values())), since, 0, confidence)


class _PlacedPool:
    """The rows of a desk's pool as they are scored, and how far they have followed the desk."""

    def __init__(self, desk: Desk) -> None:
        served = desk.served
        self.read, self.version, self.lacks = served.read, served.version, False
        rows = desk.pool(MOST_ID)
        self._ids = np.array([row.id for row in rows], dtype=np.int64)
        self._number = {row.id: i for i, row in enumerate(rows)}
        self._added = set[int]()  # rows that were counted here, one by one
        self._scored: ScoredPool | None = None
        if rows:
            pool = Pool(served.model, [_inputs(served, row) for row in rows])
            self._scored = ScoredPool(pool, np.random.default_rng(0))

    def follow(self, changes: Sequence[tuple[int, str, str]], served: Served) -> None:
        """Take up what operations have made of rows; `lacks` says whether some wait now that are not here."""
        self.version = served.version
        self.lacks = self.lacks or any(became == POOL and row not in self._number for row, _, became in changes)
        if self._scored is None:
            return
        names, moves, strange = self._scored.pool.names, list[tuple[int, str, int]](), False
        for row, was, became in changes:
            at = self._number.get(row)
            if at is not None:
                self._scored.open[at] = became == POOL and self._scored.pool.weights[at] > 0
            if was == became:  # changed and changed back: the pool may have been read in between, the counts were not
                continue
            counted = [(s[len(COUNTED) :], sign) for s, sign in ((was, -1), (became, 1)) if s.startswith(COUNTED)]
            if at is None:
                strange |= bool(counted)
                continue
            strange |= was.startswith(COUNTED) and at not in self._added  # what it alone had is not known any more
            moves += [(at, label, sign) for label, sign in counted]
        now = tuple(str(canon.text(c)) for c in served.model.classes)
        if strange or now != names or not self._scored.pool.separable:
            self._scored.under(served.model, changed=len(changes))
            self._added.clear()
            return
        for at, label, sign in moves:
            self._scored.count(at, names.index(label), sign)
            (self._added.add if sign > 0 else self._added.discard)(at)

    def leave_out(self, row: int) -> None:
        """A row that is in the pool no longer, by an operation that will be taken up soon."""
        if self._scored is not None and row in self._number:
            self._scored.open[self._number[row]] = False

    def best(self, k: int, find: str | None, barred: Iterable[int]) -> list[int]:
        """The rows that it tells most to label, or that are most likely of a class; none while only one is known."""
        scored = self._scored
        if scored is None:
            return []
        shut = np.array([self._number[row] for row in barred if row in self._number], dtype=np.int64)
        before, scored.open[shut] = scored.open[shut], False
        try:
            if find is not None:
                numbers = scored.likeliest(scored.pool.names.index(find), k)
            else:
                numbers = scored.telling(k) if np.count_nonzero(scored.pool.totals) > 1 else []
        finally:
            scored.open[shut] = before
        out: list[int] = self._ids[numbers].tolist() if numbers else []
        return out

    def probabilities(self, row: int) -> list[float] | None:
        """P(class) of a row, if it is here."""
        if self._scored is None or row not in self._number:
            return None
        out: list[float] = self._scored.pool.probabilities(np.array([self._number[row]]))[0].tolist()
        return out


def _make(desk: Desk, future: Future[_PlacedPool]) -> None:
    try:
        future.set_result(_PlacedPool(desk))
    except BaseException as error:
        future.set_exception(error)  # told to whoever asks next


def _inputs(served: Served, row: KeptRow) -> dict[str, Any]:
    return {name: row.values.get(name) for name in served.read.inputs}


def _class_name(model: Model, label: Any) -> str:
    name, names = str(canon.text(label)), [str(canon.text(c)) for c in model.classes]
    if name not in names:
        raise unknown(SettingsError, f"there is no class {label!r}", name, names)
    return name


def _mixed(ids: Ints) -> Any:
    """Numbers that are as good as drawn, the same for an id whenever asked (splitmix64)."""
    x = (ids.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _verdict(left: Left, waiting: int, recall: float) -> tuple[bool, str]:
    """Whether one may stop, and why."""
    if not waiting:
        return True, "No row of the pool waits for a label."
    name, sure = canon.printable(left.label, 30), f"{left.confidence:.0%} sure"
    found = f"at least {left.recall_at_least:.0%} of {name} have been found ({sure}, whenever looked at)"
    if left.enough(recall):
        return True, f"Enough: {found}; {recall:.0%} were asked for."
    if not left.audited:
        return False, "Not yet: no row that was drawn at random has a label, and nothing else says what is left."
    audited = canon.many(left.audited, "row")
    return False, f"Not yet: {found}, by {audited} drawn at random; {recall:.0%} are asked for."
