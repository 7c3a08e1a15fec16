"""Whether a joint table of some columns is feasible: `check_joint_table` counts it on one part of the rows.

Its cells are held against the rows that are to fill them, its likelihood of the other part against naive Bayes'.
`hopeless` is the name that the function had first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ...base import canon
from ...base.arrays import Floats
from ...base.errors import DataError, SettingsError
from ...data.schema import Column, Schema
from ...data.sources import open_source
from ...families.settings import Settings
from ...families.smoothing import Dirichlet, Laplace, Smoothing
from ...tally.tally import Tally
from .cells import categories, distinct, short_count
from .table import JointDistribution


class Density(Protocol):
    """Anything that finds rows likely or unlikely, such as a `Model`."""

    def log_density(self, rows: Any) -> Floats:
        """log P of each row."""
        ...


@dataclass(frozen=True)
class JointCheck:
    """Whether a joint table is feasible: cells against rows, and held-out likelihood against naive Bayes."""

    columns: tuple[str, ...]
    cells: int
    rows: int  # counted
    skipped: int  # rows that a joint table cannot count, since a value is missing; naive Bayes counts what is there
    unseen: int  # cells that no counted row fell into
    held_out: int  # rows
    strangers: int  # held-out rows in cells that no counted row fell into: P = 0 without smoothing
    joint_log_likelihood: float
    naive_log_likelihood: float | None
    smoothing: Smoothing

    @property
    def feasible(self) -> bool:
        """Whether held-out rows are as likely as to naive Bayes, or more; without it, whether rows outnumber cells."""
        if self.naive_log_likelihood is None:
            return self.cells <= self.rows
        return not self.naive_log_likelihood > self.joint_log_likelihood

    @property
    def hopeless(self) -> bool:
        """The opposite of `feasible`."""
        return not self.feasible

    def __repr__(self) -> str:
        rows = max(self.held_out, 1)
        lost = f" ({self.skipped:,} more have a missing value)" if self.skipped else ""
        lines = [
            f"The joint table of {len(self.columns)} columns: " + ("feasible" if self.feasible else "hopeless"),
            f"  cells           {short_count(self.cells)}, against {canon.many(self.rows, 'row')} to fill them{lost}",
            f"  never seen      {short_count(self.unseen)} cells ({_share(self.unseen, self.cells)})",
            f"  held out        {canon.many(self.held_out, 'row')}, {self.strangers:,} "
            f"({_share(self.strangers, self.held_out)}) in a cell never seen",
            f"  joint table     {self.joint_log_likelihood:.6g} nats, {self.joint_log_likelihood / rows:.4f} a row"
            f"  ({self.smoothing})",
        ]
        if self.naive_log_likelihood is not None:
            nats = self.naive_log_likelihood
            lines.append(f"  naive Bayes     {nats:.6g} nats, {nats / rows:.4f} a row")
        return "\n".join(lines)


def check_joint_table(
    data: Any,
    columns: Sequence[str],
    target: str | None = None,
    *,
    smoothing: Any = None,
    naive: Density | None = None,
    held_out: float = 0.3,
    seed: int = 0,
) -> JointCheck:
    """Whether a joint table of these columns can work: counted on one part of the rows, asked about the other.

    With `target` the rival is naive Bayes on the same rows, both giving P(columns, target); with `naive`, whatever
    its `log_density` says of the columns alone. The values of all rows are known to both, as a schema would have it.

    >>> rows = {name: [(i * k) % 5 for i in range(1, 121)] for name, k in (("a", 1), ("b", 7), ("c", 11))}
    >>> rows["y"] = ["yes" if a < 2 else "no" for a in rows["a"]]
    >>> tb.check_joint_table(rows, ["a", "b", "c"], "y")
    The joint table of 4 columns: feasible
      cells           250, against 84 rows to fill them
      never seen      245 cells (98.0 %)
      held out        36 rows, 0 (0.0 %) in a cell never seen
      joint table     -105.883 nats, -2.9412 a row  (Laplace(alpha=1.0))
      naive Bayes     -132.482 nats, -3.6801 a row
    """
    if not 0 < held_out < 1:
        raise SettingsError(f"held_out={held_out!r}", hint="a share of the rows: take a number between 0 and 1.")
    if target is not None and naive is not None:
        raise SettingsError("both target and naive are given", hint="give the target, or a model with log_density.")
    names = distinct((*columns, *(() if target is None else (target,))))
    frame, values = _coded(data, names, target)
    n = len(frame[names[0]])
    order = np.random.default_rng(seed).permutation(n)
    test = order[: min(max(round(n * held_out), 1), n - 1)] if n > 1 else order[:0]
    train = np.setdiff1d(order, test)
    seen, asked = ({c: a.take(pa.array(part)) for c, a in frame.items()} for part in (train, test))
    counted = JointDistribution.of(seen, names, values=values)
    joint = counted.with_smoothing(Laplace() if smoothing is None else smoothing)
    strangers = int(np.count_nonzero(np.isneginf(counted.log_probability(asked))))
    nats = None
    if target is not None:
        schema = Schema([Column(c, "category", values=tuple(values[c])) for c in names if c != target], target=target)
        settings = Settings(prior=Dirichlet(dict.fromkeys(values[target], 1.0)))  # a class may have no row to count
        model = Tally.of(schema, seen).model(settings)
        scores = model.log_joint(asked)
        label = {str(canon.text(c)): i for i, c in enumerate(model.classes)}
        nats = math.fsum(scores[i, label[c]] for i, c in enumerate(asked[target].to_pylist()))
    elif naive is not None:
        nats = math.fsum(np.asarray(naive.log_density(asked)).tolist())
    return JointCheck(
        names, joint.cells, joint.rows, joint.skipped, joint.unseen, len(test), strangers,
        joint.log_likelihood(asked), nats, joint.smoothing,
    )  # fmt: skip


hopeless = check_joint_table  # the name it had first, kept for who uses it


def _coded(data: Any, names: Sequence[str], target: str | None) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The columns in memory as dictionary arrays, rows without a label left out, and the values of each."""
    pieces: dict[str, list[Any]] = {c: [] for c in names}
    for batch in open_source(data).batches():
        for c, block in zip(names, categories(names, batch), strict=True):
            codes = pa.array(block.codes, mask=block.codes < 0)
            pieces[c].append(
                pa.DictionaryArray.from_arrays(codes, pa.array(block.slots, pa.string())).dictionary_decode()
            )
    frame = {c: pa.chunked_array(p, pa.string()).combine_chunks() for c, p in pieces.items()}
    if target is not None:
        labelled = frame[target].is_valid()
        frame = {c: a.filter(labelled) for c, a in frame.items()}
    if len(frame[names[0]]) < 2:
        raise DataError("fewer than two rows (with a label) to divide", hint="give more rows.")
    values = {c: [v for v in a.unique().to_pylist() if v is not None] for c, a in frame.items()}
    return {c: a.dictionary_encode() for c, a in frame.items()}, values


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"
