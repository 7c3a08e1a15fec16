"""The guard in front of `update`, `forget` and every estimate: labels never seen, what no rows can have, receipts.

Counts alone notice a count below zero, moments that no numbers have, more values than rows. A receipt is a 128-bit hash
of a row, counted like any slot, by which `forget` knows every row that it is asked to forget.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import Floats
from ..base.canon import number_text
from ..base.errors import CannotForget, DataError, SettingsError, excerpt, unknown, warn
from ..data import encode
from ..data.blocks import Block, Groups, N
from ..data.kinds import EACH
from ..data.schema import Schema
from ..data.sources import Batch, Source
from ..exact.counts import Counts
from ..exact.limbs import Limbs
from ..exact.moments import moment_sums
from ..exact.sheet import Sheet

if TYPE_CHECKING:
    from .tally import Tally

ROWS = ("n", "rows")  # amounts per class: the sum of weights, and how many rows


NEW_CLASSES = ("allow", "refuse")


def check_new_classes(known: Sequence[str], added: Iterable[str], target: str, wish: str | None) -> None:
    """Refuse labels that were never counted, or warn of them where nobody has said what to do with such."""
    if wish not in (None, *NEW_CLASSES):
        raise unknown(SettingsError, f"new_classes={wish!r}", wish, NEW_CLASSES)
    new = [label for label in added if label not in known] if known and wish != "allow" else []
    if not new:
        return
    several = len(new) > 1
    found = f"{excerpt(new)} {'are labels' if several else 'is a label'} of {target!r} that no row has had before"
    if wish == "refuse":
        hint = f"the classes are {excerpt(known)}; mend the label, or let it be a class: new_classes='allow'."
        raise unknown(DataError, f"{found}; nothing has been counted", new[0], known, hint)
    warn(
        f"{found}, and {'classes' if several else 'a class'} from now on. Hint: new_classes='allow' says that this is "
        "meant, new_classes='refuse' stops there."
    )


def refuse_empty(tally: Tally, source: Source) -> None:
    """Refuse a source without a single row that has a label."""
    if tally.rows:
        return
    target = tally.schema.target
    if tally.skipped:
        raise DataError(
            f"the target {target!r} is missing in all {tally.skipped} rows",
            hint="give the column that holds the labels with target='…', or fill it in.",
        )
    raise source.no_rows()


def cannot_forget(tally: Tally, problem: str, source: Source | None) -> CannotForget:
    """The refusal of rows without which a tally would be what no rows can have; with receipts it names the row."""
    hint = "these rows were never counted as they are now: check their labels, weights and values."
    if tally.least_rows:
        hint = (
            f"this is a copy without what fewer than {tally.least_rows} rows had, which may be theirs: forget them "
            "in the model that it was made of, and share that again."
        )
    if tally.schema.receipts and source is not None:
        row = first_unknown(tally.schema, tally.classes, tally.labels, source.batches())
        if row is not None:
            found = f"row {row} (the first is row 0) is not counted, or not so often; nothing has been forgotten"
            return CannotForget(found, hint=hint)
    return CannotForget(f"forgetting would leave {problem}; nothing has been forgotten", hint=hint)


def how_often(sheet: str) -> str:
    """The amount of a sheet that says how many rows have a slot."""
    return "documents" if sheet == "words" else "n"


def class_weights(labels: Counts, n_classes: int) -> Floats:
    """The sum of weights of each class."""
    table = labels.sheet("rows", ROWS).table("n", n_classes)
    return table[0] if len(table) else np.zeros(n_classes)


def why_impossible(classes: Sequence[str], labels: Counts, columns: Mapping[str, Counts], skipped: int) -> str | None:
    """What no rows can have: a negative count, impossible moments, more values than rows. None if nothing is wrong."""
    if skipped < 0:
        return f"{skipped} rows without a label"
    for column, counts in [(None, labels), *columns.items()]:
        for sheet in counts.sheets.values():
            wrong = _negative(column, sheet, classes)
            if wrong is not None:
                return wrong
    totals = class_weights(labels, len(classes))
    rows = labels.sheet("rows", ROWS).table("rows", len(classes)).sum(axis=0)
    apart = np.flatnonzero((totals > 0) != (rows > 0))
    if len(apart):
        label = int(apart[0])
        return f"the rows, class {classes[label]!r} with {rows[label]:g} rows that weigh {totals[label]:g}"
    for column, counts in columns.items():
        wrong = _impossible_moments(column, counts, classes) or _too_many(column, counts, classes, totals)
        if wrong is not None:
            return wrong
    return None


def _negative(column: str | None, sheet: Sheet, classes: Sequence[str]) -> str | None:
    found = sheet.negative([a for a in sheet.amounts if a != "x"])
    if found is None:
        return None
    slot, label, amount = found
    value = sheet.table(amount, len(classes))[sheet.slot_names.index(slot), label]
    place = "the rows, " if column is None else f"column {column!r}, "
    return f"{place}class {classes[label]!r}, slot {slot!r} at {amount} = {value:g}"


def _impossible_moments(column: str, counts: Counts, classes: Sequence[str]) -> str | None:
    """The first moments that no numbers have, if there are any."""
    sheet = counts.sheets.get("moments")
    if sheet is None:
        return None
    bad = np.argwhere(moment_sums(counts, len(classes)).impossible())
    if len(bad) == 0:
        return None
    slot, label = (int(i) for i in bad[0])
    position = f", position {sheet.slot_names[slot]}" if sheet.slot_names[slot] else ""
    return f"moments that no numbers have in column {column!r}{position}, class {classes[label]!r}"


def _too_many(column: str, counts: Counts, classes: Sequence[str], totals: Floats) -> str | None:
    """A column cannot have more values in a class than the class has rows."""
    most = totals * (1 + 1e-12)
    for name, sheet in counts.sheets.items():
        amount, alone = how_often(name), name in EACH
        if alone and sheet.within(amount, most):
            continue  # the table is not needed
        table = sheet.table(amount, len(classes))
        over = np.flatnonzero((table.max(axis=0) if alone else table.sum(axis=0)) > most)
        if len(over):
            return f"column {column!r}, class {classes[int(over[0])]!r} with more values than the class has rows"
    return None


def hashes(blocks: Mapping[str, Block], weights: Floats | None, rows: int) -> list[str]:
    """A hash of each row's values and weight; equal rows have equal ones on every machine."""
    values = [blocks[name].receipts() for name in sorted(blocks)]
    weight = [b"1"] * rows if weights is None else [number_text(w).encode() for w in weights.tolist()]
    out = []
    for row in zip(weight, *values, strict=True):
        digest = hashlib.blake2b(digest_size=16)
        for piece in row:
            digest.update(len(piece).to_bytes(8, "little"))
            digest.update(piece)
        out.append(digest.hexdigest())
    return out


def sheet(blocks: Mapping[str, Block], groups: Groups) -> Sheet:
    """How often each row was counted, by class."""
    found, code = np.unique(hashes(blocks, groups.weights, len(groups.labels)), return_inverse=True)
    n = np.bincount(code * groups.n_labels + groups.labels, minlength=len(found) * groups.n_labels)
    return Sheet.dense([str(h) for h in found], groups.n_labels, {"n": Limbs(0, n.astype(np.int64)[:, None])})


def first_unknown(schema: Schema, classes: Sequence[str], labels: Counts, batches: Iterable[Batch]) -> int | None:
    """The number of the first row that was not counted, or not so often; None if all were."""
    counted = labels.sheet("receipts", N)
    table = counted.table("n", len(classes))
    left = {(counted.slot_names[s], classes[c]): float(table[s, c]) for s, c in np.argwhere(table)}
    for batch in batches:
        label = encode.labels(schema, batch)
        weights = encode.weights(schema, batch)
        for row, digest in enumerate(hashes(encode.blocks(schema, batch), weights, batch.rows)):
            name = label.text(row)
            if name is None or (weights is not None and weights[row] == 0):
                continue
            left[digest, name] = left.get((digest, name), 0.0) - 1
            if left[digest, name] < 0:
                return batch.start + row
    return None
