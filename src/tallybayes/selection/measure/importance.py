"""What each column is worth to a model: how much it says alone, and what is lost without it.

bits    mean over rows of Σ P(class given value) · log₂ P(class given value) / P(class): how far the column alone moves
        the prior
loss    mean over rows of −log P(right class) without the column, less the same with it

A score is a sum, so a column is left out by subtracting what it said: no model is made without it, and nothing is
permuted. A pair goes with either of its columns. Rows that the model was counted from are scored by models of the other
folds, since a column of noise fits them, too; where settings were fitted to them, those models are fitted anew.
Differences are taken row by row, and their mean has Student's interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...base import canon
from ...base.arrays import Floats
from ...base.errors import SettingsError, unknown
from ...base.show import Page, Shown, first_that_fits, signed
from ...data import encode
from ...data.blocks import Block, Codes, Numbers
from ...data.sources import Source, open_source
from ...model.model import Model
from ...model.odds import class_counts, counted_cells
from ...tally.overlap import ALL, NO_SIGN, NONE, SOME, overlap
from ...tally.tally import Tally
from .fit_again import held_whole
from .left_out import Figure, LeftOut, bits_of, by_folds, fitted_to_rows, folds_for, pieces

CHANCE, WITHOUT, UNUSED = "not beyond chance", "better without", "not used"


@dataclass(frozen=True)
class ColumnImportance:
    """One column or pair. Losses are positive where the model does worse without it; None without labelled rows."""

    column: str
    kind: str
    bits: float | None  # None for words and vectors where there are no rows
    log_loss: Figure | None
    accuracy: Figure | None
    copies: tuple[str, ...] = ()  # columns with the same values, under other names perhaps
    used: bool = True

    @property
    def remark(self) -> str:
        """What the figures alone may hide."""
        said = "" if self.used else UNUSED
        if self.used and self.log_loss is not None:
            _, low, high = self.log_loss
            said = WITHOUT if high < 0 else CHANCE if low <= 0 else ""
        same = f"same values as {', '.join(canon.printable(c, 30) for c in self.copies)}, which remains"
        return "; ".join(filter(None, [said, same if self.copies else ""]))

    def to_dict(self) -> dict[str, Any]:
        """The same as plain Python values."""
        out: dict[str, Any] = {"column": self.column, "kind": self.kind, "bits": self.bits}
        for name, found in (("log_loss", self.log_loss), ("accuracy", self.accuracy)):
            for end, at in (("", 0), ("_low", 1), ("_high", 2)):
                out[name + end] = None if found is None or np.isnan(found[at]) else found[at]
        return out | {"copies": list(self.copies), "remark": self.remark}


@dataclass(frozen=True, repr=False)
class Importance(Shown):
    """What the columns of a model are worth, the most first; print it, or take `.table`, an Arrow table."""

    each: tuple[ColumnImportance, ...]
    said_of: str  # which rows the figures are of
    rows: int  # labelled ones behind the losses
    log_loss: float | None  # of the whole model on them
    accuracy: float | None
    trained_on: str  # whether the model was counted from these rows: "yes", "partly", "no", "no sign" or "unknown"

    def __iter__(self) -> Iterator[ColumnImportance]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def __getitem__(self, column: str) -> ColumnImportance:
        """The line of one column."""
        found = next((c for c in self.each if c.column == column), None)
        if found is None:
            raise unknown(SettingsError, f"the model has no column {column!r}", column, [c.column for c in self.each])
        return found

    @property
    def table(self) -> pa.Table:
        """A row per column."""
        return pa.Table.from_pylist([c.to_dict() for c in self.each])

    def to_dict(self) -> dict[str, Any]:
        """The same as plain Python values."""
        whole = {"log_loss": self.log_loss, "accuracy": self.accuracy, "rows": self.rows, "trained_on": self.trained_on}
        return {"said_of": self.said_of, **whole, "columns": [c.to_dict() for c in self.each]}

    def _page(self, without: Sequence[int] = ()) -> Page:
        rows = [["column", "bits", "log loss", "95 % interval", "accuracy", "95 % interval", ""]]
        for c in self.each:
            bits = "" if c.bits is None else f"{c.bits:.3f}"
            rows.append([canon.printable(c.column, 40), bits, *_cells(c.log_loss), *_cells(c.accuracy), c.remark])
        empty = {i for i in range(1, 7) if not any(row[i] for row in rows[1:])}
        shown = [i for i in range(7) if i not in empty and i not in without]
        lines = [[row[i] for i in shown] for row in rows]
        foot = "bits: what a column says alone"
        if self.log_loss is not None:
            foot += (
                f"; log loss and accuracy: what is lost without it, of {self.log_loss:.4f} and {self.accuracy:.4f} "
                "with all"
            )
        left = [at for at, i in enumerate(shown) if i in (0, 6)]
        return Page(f"What each column is worth, by {self.said_of}", lines, left=left, foot=foot)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """All columns for which there is room."""
        pages = (self._page(without) for without in ((), (5,), (4, 5), (3, 4, 5), (1, 3, 4, 5)))
        yield first_that_fits(pages, options.max_width, remarks=True).rich()


def _cells(found: Figure | None) -> list[str]:
    if found is None:
        return ["", ""]
    value, low, high = (signed(round(v, 4) + 0.0, 4) for v in found)
    return [value, "" if np.isnan(found[1]) else f"{low} to {high}"]


def importance(model: Model, data: Any = None, y: Any = None, *, weights: Any = None) -> Importance:
    """What each column of a model is worth: bits that it says alone, and what is lost without it on labelled rows.

    Rows should be those that the model has not seen. If they are exactly the rows that it was counted from, each is
    scored by counts without its tenth of them, or, of a model whose settings were fitted to rows, by a fit without its
    tenth (from 500 rows on fifth, from 2,000 third). Without rows there are only bits, by what was counted.

    >>> import tallybayes as tb
    >>> rows = {"Sky": ["sunny", "rainy"] * 20, "Wind": ["no", "no", "yes", "yes"] * 10, "Play": ["yes", "no"] * 20}
    >>> found = importance(tb.fit(rows, "Play"), rows)
    >>> found["Sky"].log_loss[0] > 0.3, found["Wind"].log_loss[0] < 0.01
    (True, True)
    """
    if data is None:
        return _of_tally(model)
    schema = model.schema if not isinstance(weights, str) else model.schema.with_weights(weights)
    beside = None if isinstance(weights, str) else weights
    source = open_source(data, y, weights=beside, target=schema.target).repeatable()
    own = LeftOut(model, schema.weights)
    sums = own.over(source)
    if sums.rows == 0:
        raise source.no_rows("give at least one row, or no data to ask what was counted.")
    trained = counted_from(model, source) if sums.labelled else "unknown"
    # Folds part the rows of the tally, so that there must be neither more nor fewer
    whole = trained == "yes" and Tally.of(model.schema, source).digest == (model.tally and model.tally.digest)
    if not sums.labelled:
        said = f"{canon.many(sums.rows, 'row')} without a label that the model knows: bits alone"
    elif whole:
        part = {3: "third", 5: "fifth"}.get(folds_for(model, sums.labelled), "tenth")
        by = "by a model fitted " if fitted_to_rows(model) else ""
        said = f"the {canon.many(sums.labelled, 'row')} that the model was counted from, each scored {by}without its "
        said += f"{part} of them{held_whole(model)}"
    elif trained in ("yes", "partly"):
        some = "from which" if trained == "yes" else "from some of which"
        said = f"{canon.many(sums.labelled, 'given row')}, {some} the model has learnt, which flatters"
    else:
        said = f"{canon.many(sums.labelled, 'given row')}, taken as rows that the model has not seen"
    losses = by_folds(own, source, sums.labelled) if whole else sums
    same = _copies(model, source)
    each = [
        ColumnImportance(
            name,
            model.schema[name].kind,
            float(sums.bits[i] / sums.rows),
            losses.figure(i, 0),
            losses.figure(i, 1),
            same.get(name, ()),
            _is_used(model, name),
        )
        for i, name in enumerate(model.beliefs)
    ]
    order = sorted(each, key=lambda c: (-(c.log_loss or (0.0,))[0], -(c.bits or 0.0)))
    loss, hit = losses.whole
    return Importance(tuple(order), said, sums.labelled, loss, hit, trained)


def counted_from(model: Model, source: Source) -> str:
    """Whether these rows were counted, by all signs: "yes" if all, "partly", "no" if none can, "no sign", "unknown"."""
    if model.tally is None:
        return "no"
    return {ALL: "yes", SOME: "partly", NONE: "no", NO_SIGN: "no sign"}.get(
        overlap(model.tally, source).verdict, "unknown"
    )


def _is_used(model: Model, name: str) -> bool:
    return model.settings.weights.get(name, 1.0) != 0 and (
        model.settings.weight_of(name) != 0 or name in model.settings.corrections
    )


# ---- without rows


def _of_tally(model: Model) -> Importance:
    """Bits by the values and cells that were counted; the same as over the counted rows, numbers by their cells."""
    if model.tally is None:
        raise SettingsError(
            "a model without counts says nothing of how often a value occurs", hint="give rows: model.importance(rows)."
        )
    counted = float(model.tally.class_weights().sum())
    each = []
    for name, belief in model.beliefs.items():
        bits, found = None, _values(model, name)
        if found is not None:
            block, n = found
            by = model.settings.weights.get(name, 1.0)
            moved = by * belief.parts(block) if by else np.zeros((len(n), len(model.classes)))
            bits = float(n @ bits_of(model.log_prior, moved) / counted)
        each.append(ColumnImportance(name, model.schema[name].kind, bits, None, None, used=_is_used(model, name)))
    said = f"the {canon.many(model.tally.rows, 'row')} counted: no rows were given, so bits alone"
    return Importance(tuple(sorted(each, key=lambda c: -(c.bits or 0.0))), said, 0, None, None, "no")


def _values(model: Model, name: str) -> tuple[Block, Floats] | None:
    """Every counted value or cell of a column once, and how often it was counted; None for words and vectors."""
    assert model.tally is not None
    cells = counted_cells(model, name)
    if cells is not None:
        return Numbers(cells.middle, cells.cells), cells.n.sum(axis=1)
    column = model.schema[name]
    if column.about.words or "values" not in model.tally.columns[name].sheets:
        return None
    slots, n = class_counts(model, name, "values")
    return Codes(list(slots), np.arange(len(slots))), n.sum(axis=1)


# ---- copies


def _copies(model: Model, source: Source) -> dict[str, tuple[str, ...]]:
    """The columns that part the rows exactly as others do, under whatever names; columns that never vary do not."""
    groups: list[list[str]] = [[c.name for c in model.schema.counted if c.of is None]]
    varies: set[str] = set()
    for batch in pieces(source):
        names = [n for g in groups for n in g]
        if not names or not batch.rows:
            break
        blocks = encode.blocks(model.schema._with(columns=[model.schema[n] for n in names]), batch)
        signs = {n: _sign(b) for n, b in blocks.items() if isinstance(b, (Codes, Numbers))}
        varies |= {n for n, (several, _) in signs.items() if several}
        found: dict[tuple[int, bytes], list[str]] = {}
        for i, group in enumerate(groups):
            for name in group:
                if name in signs:
                    found.setdefault((i, signs[name][1]), []).append(name)
        groups = [g for g in found.values() if len(g) > 1]
    return {n: tuple(o for o in g if o != n) for g in groups for n in g if varies >= {*g}}


def _sign(block: Codes | Numbers) -> tuple[bool, bytes]:
    """Whether a column has several values, and its values as numbers in the order in which they come first.

    Where most rows have a value of their own, any two columns part the rows alike: there it is the values themselves.
    """
    values = block.codes if isinstance(block, Codes) else block.values
    _, first, same = np.unique(values, return_index=True, return_inverse=True)
    if 2 * len(first) > len(values) > 1:
        own = values if isinstance(block, Numbers) else np.array([*block.slots, ""])[values]
        return True, own.tobytes()
    return len(first) > 1, np.argsort(np.argsort(first))[same.ravel()].astype(np.int32).tobytes()
