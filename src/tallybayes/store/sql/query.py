"""A model as SQL: a query that gives every row of a table its class and the probability of each class.

    slots     per column: the value's text, the number of its interval, or the number itself
    scores    b + Σ weight · part, a column per class; a part is looked up, or a formula of the number
    bent      where the model has a curve: the log-odds of two classes led through it, or the lead of the best class
    answer    exp(score − largest) / Σ exp(score − largest)

Small tables of weights stand in the query as CASE; large ones are a table that `setup` makes, joined by slot. Texts are
cut by the database where it can, or like bags read from a table of tokens: row, token, count.

A query reads the weights of its own model or none: the table's column of slots has a digest of the weights in its name,
and answers come only if the table has as many rows as were written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Floats, log_sum_exp
from ...base.errors import SettingsError, unknown
from ...data.outputs import PREDICTION, output_names
from ...data.schema import Schema
from ...data.text.tokeniser import Tokeniser
from ...families.base import Belief
from ...families.blend import bounded
from ...families.calibration import LEAST, Isotonic, MarginScaling
from ...families.settings import Settings
from .dialects import COLUMN, Dialect, TableName, dialect
from .parts import IMPOSSIBLE, Formula, SlotWeights, TokenWeights, parts_of, written
from .texts import cut

WEIGHTS = "tallybayes_weights"  # the table of weights, before what tells models apart
_INLINE = 256  # weights of one column up to which they stand in the query itself
_BY_NAME = "weights_table='name' (--weights-table NAME)"
_TINY = -700.0  # exp of less is 0 for every purpose, and an error in PostgreSQL


@dataclass(frozen=True)
class SqlScorer:
    """The statements that replace the table of weights (none if it is not needed), and the query.

    `transaction` is the text of the first that does all or nothing; printed, the scorer is that and the query.
    """

    setup: tuple[str, ...]
    query: str
    weights_table: TableName | None = None  # None: all weights stand in the query
    atomic: bool = True  # whether statements can be a transaction; a single one needs none

    @property
    def transaction(self) -> str:
        """The setup as one text, between BEGIN and COMMIT where the database knows them."""
        around = ("BEGIN", "COMMIT") if self.setup and self.atomic else ()
        return "".join(f"{statement};\n\n" for statement in (*around[:1], *self.setup, *around[1:]))

    def __str__(self) -> str:
        return f"{self.transaction}{self.query};\n"


def sql_scorer(
    schema: Schema,
    classes: Sequence[Any],
    start: Floats,
    beliefs: Mapping[str, Belief],
    settings: Settings,
    table: TableName,
    into: str = "duckdb",
    *,
    keep: Sequence[str] | None = None,
    tokens: Mapping[str, TableName] | None = None,
    row_id: str = "id",
    weights_table: TableName | None = None,
) -> SqlScorer:
    """The scorer of a model; see `Model.to_sql`."""
    tokens = tokens or {}
    d = dialect(into)
    if weights_table is not None:
        _check_name(d, weights_table, [table, *tokens.values()])
    wrong = [n for n in tokens if n not in beliefs or not schema[n].about.words]
    if wrong:
        hint = "tokens={column: table} is for text and bag columns."
        found = f"tokens for {wrong[0]!r}, which is no text or bag of the model"
        raise unknown(SettingsError, found, wrong[0], beliefs, hint)
    query = _Query(d, len(classes), row_id)
    number = 0
    for name, belief in beliefs.items():
        factor = settings.weights.get(name, 1.0)
        marks = {*schema.missing, *schema[name].missing}
        for part, share in parts_of(query.d, schema[name], belief, marks, tokens.get(name)) if factor else ():
            query.add(number, part, factor * share, settings.lengths.get(name, 0.0))
            number += 1
    reads = [read for n in beliefs if n not in tokens for read in schema[n].inputs]
    kept = list(dict.fromkeys([*([row_id] if tokens else []), *reads] if keep is None else keep))
    added = {n.casefold() for n in (PREDICTION, *output_names(classes))}
    clash = [n for n in kept if n.casefold() in added]
    if clash:
        raise SettingsError(
            f"the column {clash[0]!r} of the table is called like one that the query adds",
            hint="leave it out: keep=[…] (--keep COLUMN) names the columns that come along.",
        )
    curve = settings.isotonic if len(classes) == 2 else None
    return query.scorer(table, kept, classes, start, curve, settings.lead, weights_table)


def _check_name(d: Dialect, name: TableName, others: Sequence[TableName]) -> None:
    """Refuse a name under which the weights would take the place of the user's own rows, or that would be cut short."""
    parts = [name] if isinstance(name, str) else list(name)
    long = next((p for p in parts if not p.strip() or len(p.encode()) > d.longest), None)
    if not parts or long is not None:
        found = f"the table of weights would be called {'.'.join(parts)[:80]!r}"
        raise SettingsError(found, hint=f"take a name of 1 to {d.longest} bytes: {_BY_NAME}.")
    for other in others:
        if parts[-1].casefold() == (other if isinstance(other, str) else other[-1]).casefold():
            found = f"the table of weights would take the place of the table {parts[-1]!r}, which the query reads"
            raise SettingsError(found, hint=f"take another name: {_BY_NAME}.")
    d.table(name)  # refuses what cannot be quoted


@dataclass
class _Query:
    """The pieces of the query, collected column by column."""

    d: Dialect
    n_classes: int
    row_id: str
    reads: list[str] = field(default_factory=list)  # of the first SELECT: columns as they are counted
    slots: list[str] = field(default_factory=list)  # of the second
    parts: list[list[str]] = field(default_factory=list)  # by column, then class
    joins: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)  # further WITH clauses
    ids: dict[str, str] = field(default_factory=dict)  # what rows are joined by, as the first SELECT has it
    rows: list[tuple[int, str, Sequence[float]]] = field(default_factory=list)  # of the table of weights

    def add(self, number: int, part: SlotWeights | Formula | TokenWeights, factor: float, exponent: float) -> None:
        """One column's part, times its weight, and for words times tokens^exponent."""
        if isinstance(part, TokenWeights):
            self._add_tokens(number, part, factor, exponent)
            return
        self.reads.append(f"{part.read} AS tb_x{number}")
        if isinstance(part, Formula):
            self._add_formula(number, part, factor)
            return
        self.slots.append(f"{part.slot.format(x=f'x.tb_x{number}')} AS tb_{number}")
        weights = _scaled(part.weights if part.most is None else bounded(part.weights, part.most), factor)
        unseen = _scaled(part.unseen, factor)
        if weights.size <= _INLINE or len(self.joins) >= self.d.most_joins:
            self.parts.append(self._cases(number, part.names, weights, unseen))
        else:
            alias = self._weights(number, part.names, weights)
            self.joins.append(
                f"LEFT JOIN tb_weights AS {alias} ON {alias}.col = {number} AND {alias}.slot = r.tb_{number}"
            )
            self.parts.append([
                f"CASE WHEN r.tb_{number} IS NULL THEN {self.d.number(0.0)} "
                f"ELSE COALESCE({alias}.c{c}, {self.d.number(unseen[c])}) END"
                for c in range(self.n_classes)
            ])  # fmt: skip

    def _add_formula(self, number: int, part: Formula, factor: float) -> None:
        """A formula of the number; in a blend against that of the best class, within bounds."""
        d, x = self.d, f"x.tb_x{number}"
        never = d.number(IMPOSSIBLE if part.most is not None else IMPOSSIBLE / factor)  # impossible under any weight
        says = [f.format(x=x, never=never) for f in part.formulas]
        self.slots.append(f"{x} AS tb_{number}")
        self.slots += [f"{f} AS tb_{number}_{c}" for c, f in enumerate(says)]
        each = [f"r.tb_{number}_{c}" for c in range(self.n_classes)]
        if part.most is not None:
            top = f"{d.greatest}({', '.join(each)})" if len(each) > 1 else each[0]
            each = [f"{d.greatest}({e} - {top}, {d.number(-part.most)})" for e in each]
        times = "" if factor == 1.0 else f"{d.number(factor)} * "
        nothing = f"r.tb_{number} IS NULL{part.unless.format(x=f'r.tb_{number}')}"
        self.parts.append([f"CASE WHEN {nothing} THEN {d.number(0.0)} ELSE {times}{e} END" for e in each])

    def _cases(self, number: int, names: Sequence[str], weights: Floats, unseen: Floats) -> list[str]:
        d = self.d
        out = []
        for c in range(self.n_classes):
            known = " ".join(f"WHEN {d.text(n)} THEN {d.number(w[c])}" for n, w in zip(names, weights, strict=True))
            other = f"CASE r.tb_{number} {known} ELSE {d.number(unseen[c])} END" if names else d.number(unseen[c])
            out.append(f"CASE WHEN r.tb_{number} IS NULL THEN {d.number(0.0)} ELSE {other} END")
        return out

    def _weights(self, number: int, names: Sequence[str], weights: Floats) -> str:
        self.rows += [(number, n, w) for n, w in zip(names, weights.tolist(), strict=True)]
        return f"w{number}"

    def _add_tokens(self, number: int, part: TokenWeights, factor: float, exponent: float) -> None:
        """The words of each row, summed in a table of their own; an impossible word counts once, however often."""
        d, alias = self.d, self._weights(number, part.names, _scaled(part.weights, factor))
        unseen = _scaled(part.unseen, factor)
        if isinstance(part.words, Tokeniser):
            of, own = "tb_row", "ROW_NUMBER() OVER ()"
            self.tables += cut(d, number, part.words)
            listed = f"SELECT id, token, COUNT(*) AS tokens FROM tb_words{number} GROUP BY id, token"
        else:
            of, own = "tb_id", f"t.{d.name(self.row_id)}"
            row, token, count = (d.name(n) for n in ("row", "token", "count"))
            listed = f"SELECT {row} AS id, {token} AS token, SUM({count}) AS tokens FROM {d.table(part.words)}"
            listed += f" WHERE {count} > 0 GROUP BY {row}, {token}"
        self.ids[of] = own
        n = "1" if part.once else "t.tokens"
        sums = []
        for c in range(self.n_classes):
            one = f"COALESCE({alias}.c{c}, {d.number(unseen[c])})"
            possible = f"CASE WHEN {one} > {d.number(IMPOSSIBLE / 2)} THEN {n} * {one} ELSE {d.number(0.0)} END"
            never = f"CASE WHEN MIN({one}) > {d.number(IMPOSSIBLE / 2)} THEN {d.number(0.0)}"
            sums.append(f"SUM({possible}) + {never} ELSE {d.number(IMPOSSIBLE)} END AS c{c}")
        self.tables.append(
            f"tb_tokens{number} AS (\n  SELECT t.id, SUM(t.tokens) AS tokens, {', '.join(sums)}\n"
            f"  FROM ({listed}) AS t\n"
            f"  LEFT JOIN tb_weights AS {alias}\n"
            f"    ON {alias}.col = {number} AND {alias}.slot = t.token\n"
            f"  GROUP BY t.id\n)"
        )
        self.joins.append(f"LEFT JOIN tb_tokens{number} ON tb_tokens{number}.id = r.{of}")
        base = _scaled(part.base, factor)
        self.reads.append(f"{part.read} AS tb_x{number}")
        self.slots.append(f"x.tb_x{number} IS NOT NULL AS tb_{number}")
        words, none = f"tb_tokens{number}", d.number(0.0)
        length = f"CASE WHEN {words}.tokens > 1 THEN {words}.tokens ELSE 1 END"
        for_length = f" * POWER({length}, {d.number(exponent)})" if exponent else ""
        able = [f"COALESCE({words}.c{c}, {none}) > {d.number(IMPOSSIBLE / 2)}" for c in range(self.n_classes)]
        says = [f"({d.number(base[c])} + COALESCE({words}.c{c}, {none})){for_length}" for c in range(self.n_classes)]
        self.parts.append([
            f"CASE WHEN NOT r.tb_{number} THEN {none} WHEN {p} THEN {s} ELSE {d.number(IMPOSSIBLE)} END"
            for p, s in zip(able, says, strict=True)
        ])  # fmt: skip

    def scorer(
        self, table: TableName, keep: Sequence[str], classes: Sequence[Any], start: Floats, curve: Isotonic | None,
        lead: MarginScaling | None, weights_table: TableName | None,
    ) -> SqlScorer:  # fmt: skip
        """The whole query, from the inside out."""
        d, n = self.d, self.n_classes
        kept = [f"t.{d.name(name)} AS tb_kept{i}" for i, name in enumerate(keep)]
        ids = [f"{own} AS {of}" for of, own in self.ids.items()]
        once = f"AS {d.materialized}(\n  SELECT"  # each step is worked out once, not again for every use of it
        read = f"tb_read {once} {_list([*kept, *ids, *self.reads, '1 AS tb_one'])}\n  FROM {d.table(table)} AS t\n)"
        passed = [f"tb_kept{i}" for i in range(len(keep))]
        through = [*passed, *self.ids]
        rows = f"tb_rows {once} {_list([*through, *self.slots, 'tb_one'])}\n  FROM tb_read AS x\n)"
        first = written(start)
        sums = [f"{' + '.join([d.number(first[c]), *(p[c] for p in self.parts)])} AS tb_s{c}" for c in range(n)]
        joined = "".join(f"\n  {j}" for j in self.joins)
        scores = f"tb_scores {once} {_list([*passed, *sums])}\n  FROM tb_rows AS r{joined}\n)"
        each = ", ".join(f"tb_s{c}" for c in range(n))
        top = f"{d.greatest}({each})" if n > 1 else each
        bent = self._bent(curve, passed) if curve is not None else []
        if lead is not None and not bent and n > 1:
            bent = self._led(lead, passed)
        source = "tb_bent" if bent else "tb_scores"
        tops = f"tb_tops {once} {_list([*passed, each])}, {top} AS tb_top\n  FROM {source}\n)"
        exps = [
            f"CASE WHEN tb_s{c} - tb_top > {d.number(_TINY)} THEN EXP(tb_s{c} - tb_top) "
            f"ELSE {d.number(0.0)} END AS tb_e{c}"
            for c in range(n)
        ]
        shares = f"tb_shares {once} {_list([*passed, each, 'tb_top', *exps])}\n  FROM tb_tops\n)"
        possible = f"tb_top > {d.number(IMPOSSIBLE / 2)}"
        answer = np.exp(start - log_sum_exp(start))
        best = " ".join(f"WHEN tb_s{c} = tb_top THEN {d.literal(label)}" for c, label in enumerate(_labels(classes)))
        prediction = f"CASE WHEN NOT {possible} THEN {d.literal(_labels(classes)[int(np.argmax(answer))])} {best} END"
        total = " + ".join(f"tb_e{c}" for c in range(n))
        shown = [
            *(f"tb_kept{i} AS {d.name(name)}" for i, name in enumerate(keep)),
            f"{prediction} AS {d.name(PREDICTION)}",
            *(
                f"CASE WHEN {possible} THEN tb_e{c} / ({total}) ELSE {d.number(answer[c])} END AS {d.name(name)}"
                for c, name in enumerate(output_names(classes))
            ),
        ]
        weights, setup, whole = self._weights_table(weights_table)
        parts = ",\n".join([*weights, read, rows, *self.tables, scores, *bent, tops, shares])
        query = f"WITH {parts}\nSELECT {_list(shown)}\nFROM tb_shares{whole}"
        return SqlScorer(tuple(setup), query, self._named(weights_table) if self.rows else None, d.transactions)

    def _weights_table(self, table: TableName | None) -> tuple[list[str], list[str], str]:
        """The WITH clause that reads the table of weights, the statements that make it, and what must hold of it."""
        if not self.rows:
            return [], [], ""
        d, named, stamp = self.d, self._named(table), f"slot_{self._digest}"
        columns = ", ".join(f"c{c}" for c in range(self.n_classes))
        again = f"NOT {d.materialized}" if d.materialized else ""
        read = (
            f"tb_weights AS {again}(\n  SELECT {COLUMN} AS col, {stamp} AS slot, {columns}\n  FROM {d.table(named)}\n)"
        )
        whole = f"\nWHERE (SELECT COUNT(*) FROM tb_weights) = {len(self.rows)}"
        return [read], d.weights(named, stamp, self.rows), whole

    def _named(self, table: TableName | None) -> TableName:
        return f"{WEIGHTS}_{self._digest}" if table is None else table

    @cached_property
    def _digest(self) -> str:
        """What tells these weights from those of any other model; asked for when all columns were added."""
        out = hashlib.sha256(self.d.label.encode())
        for row in self.rows:
            out.update(f"{row!r}\n".encode())
        return out.hexdigest()[:12]

    def _led(self, lead: MarginScaling, passed: Sequence[str]) -> list[str]:
        """Distances to the best class times scale · lead^exponent, where a second class is possible."""
        d, once, n = self.d, f"AS {self.d.materialized}(\n  SELECT", self.n_classes
        each = [f"tb_s{c}" for c in range(n)]
        top = f"{d.greatest}({', '.join(each)}) AS tb_best"
        best = f"tb_best {once} {_list([*passed, *each, top])}\n  FROM tb_scores\n)"
        ties = " + ".join(f"CASE WHEN {s} = tb_best THEN 1 ELSE 0 END" for s in each)
        others = ", ".join(f"CASE WHEN {s} = tb_best THEN {d.number(2 * IMPOSSIBLE)} ELSE {s} END" for s in each)
        second = f"CASE WHEN {ties} > 1 THEN tb_best ELSE {d.greatest}({others}) END AS tb_second"
        seconds = f"tb_seconds {once} {_list([*passed, *each, 'tb_best', second])}\n  FROM tb_best\n)"
        ahead = f"CASE WHEN tb_best - tb_second > {d.number(LEAST)} THEN tb_best - tb_second ELSE {d.number(LEAST)} END"
        times = f"CASE WHEN tb_second > {d.number(IMPOSSIBLE / 2)} THEN {d.number(lead.scale)} * POWER({ahead}, "
        times += f"{d.number(lead.exponent)}) ELSE {d.number(1.0)} END AS tb_times"
        factors = f"tb_factors {once} {_list([*passed, *each, 'tb_best', times])}\n  FROM tb_seconds\n)"
        led = [
            f"CASE WHEN {s} > {d.number(IMPOSSIBLE / 2)} THEN tb_best + tb_times * ({s} - tb_best) ELSE {s} END AS {s}"
            for s in each
        ]
        return [best, seconds, factors, f"tb_bent {once} {_list([*passed, *led])}\n  FROM tb_factors\n)"]

    def _bent(self, curve: Isotonic, passed: Sequence[str]) -> list[str]:
        """The log-odds of two possible classes led through a curve: then the scores are 0 and these log-odds."""
        d, once = self.d, f"AS {self.d.materialized}(\n  SELECT"
        odds = f"tb_odds {once} {_list([*passed, 'tb_s0', 'tb_s1', 'tb_s1 - tb_s0 AS tb_o'])}\n  FROM tb_scores\n)"
        points = list(zip(curve.scores, curve.odds, strict=True))
        line = [f"WHEN tb_o <= {d.number(points[0][0])} THEN {d.number(points[0][1])}"]
        for (x, y), (next_x, next_y) in pairwise(points):
            slope = (next_y - y) / (next_x - x)
            line.append(
                f"WHEN tb_o <= {d.number(next_x)} THEN {d.number(y)} + {d.number(slope)} * (tb_o - {d.number(x)})"
            )
        either = f"tb_s0 <= {d.number(IMPOSSIBLE / 2)} OR tb_s1 <= {d.number(IMPOSSIBLE / 2)}"
        led = f"CASE {' '.join(line)} ELSE {d.number(points[-1][1])} END"
        first = f"CASE WHEN {either} THEN tb_s0 ELSE {d.number(0.0)} END AS tb_s0"
        second = f"CASE WHEN {either} THEN tb_s1 ELSE {led} END AS tb_s1"
        return [odds, f"tb_bent {once} {_list([*passed, first, second])}\n  FROM tb_odds\n)"]


def _list(items: Sequence[str]) -> str:
    return ",\n    ".join(items)


def _scaled(weights: Floats, factor: float) -> Floats:
    """Weights times a column's factor; IMPOSSIBLE is that under any factor."""
    known = written(weights)
    return np.where(known == IMPOSSIBLE, IMPOSSIBLE, known * factor)


def _labels(classes: Sequence[Any]) -> Sequence[Any]:
    """The classes as they went in; as texts where they are of several types, which no column can hold."""
    return classes if len({type(c) for c in classes}) == 1 else [str(canon.text(c)) for c in classes]
