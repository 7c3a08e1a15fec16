"""Labels that the other rows contradict: every row is scored by a model that has not counted it.

Folds are subtracted, or each row is taken out of the tally by itself: a row's own label is in none of the counts that
judge it. Nor is it in the weights and corrections: those are fitted without each fifth of the rows in turn, and the
scores that judge them are the ones that are asked for (`choose.by_fold`). Of more than 100,000 rows, which a single one
hardly moves, settings are chosen once, by all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ...base import canon
from ...base.arrays import Floats, Ints
from ...base.arrow import array
from ...base.canon import many
from ...base.errors import DataError, SettingsError
from ...base.show import Page, Shown
from ...data.batch import Batch, Source
from ...data.columns import as_column
from ...data.files.writer import as_array
from ...data.guess import Reading
from ...data.infer import first_look
from ...data.schema import Schema
from ...families.settings import Settings, SettingsLike
from ...families.smoothing import is_number
from ...model.model import Model
from ...model.reasons import strongest_terms
from ...tally.tally import Tally
from ..choose.by_fold import ByFold, scored_by_fold
from ..choose.chosen import check_effort
from ..folds import HeldOut, count_folds
from ..leave_one_out import leave_one_out
from ..measure.cross_validate import LEAVE_ONE_OUT, opened, whole_fit
from ..parts import Plan, one_row, some_rows
from .noise import LabelNoise

if TYPE_CHECKING:
    from ...explain.explanation import Explanation

_FOLDS = 10
_SHOWN, _FEW, _FEWEST = 10, 5, 20  # rows on a screen, and where none is flagged; rows to review where fewer are
TERMS = 3  # that are told of each row
_LOOKED_AT = 3  # times as many, of which some speak for the label
_ROWS = 4096  # whose terms are looked for at once


@dataclass(frozen=True, repr=False)
class Suspicious(Shown):
    """All judged rows, the most suspicious first; `flagged` of them are wrong, as far as `confidence` says.

    `review()` is the table to look through, `explain(row)` the sum that contradicts a label.
    """

    classes: tuple[Any, ...]
    rows: Ints  # numbers in the data, the first is row 0
    labels: Ints  # as class numbers
    likelier: Ints  # the likeliest other class
    probability: Floats  # of the label, by rows that are not this one
    wrong: Floats  # P(label is wrong)
    flagged: int
    contradicted: int  # rows in which another class is as likely as it is in its own rows; hard rows are among them
    noise: LabelNoise
    unjudged: int  # rows of a class that no other row outside of their fold has
    confidence: float
    said_of: str
    _source: Source = field(repr=False)
    _model_of: Callable[[int], tuple[int, Callable[[], Model]]] = field(repr=False)  # place → its fold, and the model
    _target: str = field(repr=False)

    def __len__(self) -> int:
        return self.flagged

    @property
    def flagged_rows(self) -> list[int]:
        """The numbers of the flagged rows, the most suspicious first."""
        return [int(row) for row in self.rows[: self.flagged]]

    @property
    def expected(self) -> float:
        """How many labels are wrong among all judged rows, as it is estimated."""
        return float(self.wrong.sum())

    def by_class(self) -> pa.Table:
        """Class by class: rows with this label, how many of them are expected to be wrong, and how many are flagged."""
        k = len(self.classes)
        return pa.table(
            {
                "class": _classes(self.classes),
                "rows": np.bincount(self.labels, minlength=k),
                "wrong": np.bincount(self.labels, self.wrong, k),
                "flagged": np.bincount(self.labels[: self.flagged], minlength=k),
            }
        )

    @cached_property
    def _place(self) -> dict[int, int]:
        return {row: i for i, row in enumerate(self.rows.tolist())}

    def explain(self, row: int) -> Explanation:
        """Why a row is expected to have another label: the sum of the model that has not counted it."""
        if row not in self._place:
            raise DataError(f"there is no row {row!r} that was judged", hint="take one of `rows`; the first row is 0.")
        return self._model_of(self._place[row])[1]().explain(one_row(self._source, row))

    def review(self, n: int | None = None) -> pa.Table:
        """The n most suspicious rows with all columns of the data; unless said, as many as are flagged or contradicted.

        Before these stand the row's number, the likelier class, P(label) and P(wrong), and the terms that speak
        against the label, with their log-odds. Correct the column of labels and count it again.
        """
        n = max(self.flagged, self.contradicted, _FEWEST) if n is None else n
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise SettingsError(f"review({n!r})", hint="take a whole number of rows.")
        taken = self.rows[:n]
        batch, where = _rows_of(self._source, taken)
        out: dict[str, Any] = {"row": array(taken.astype(np.int64))}
        if where is not None:
            out["where"] = array(where, pa.string())
        names = _classes(self.classes)
        out["flagged"] = pa.array((np.arange(len(taken)) < self.flagged).tolist(), pa.bool_())
        out["label"] = names.take(array(self.labels[:n]))
        out["likelier"] = names.take(array(self.likelier[:n]))
        out["P(label)"] = array(self.probability[:n])
        out["P(wrong)"] = array(self.wrong[:n])
        texts, odds = self._terms(batch, len(taken))
        for rank in range(TERMS):
            out[f"because {rank + 1}"] = array(texts[rank], pa.string())
            out[f"log-odds {rank + 1}"] = pa.array(odds[rank], mask=np.isnan(odds[rank]))
        given = {name: as_array(batch[name]) for name in batch.names()}
        ours = {name if name not in given else f"{name} (audit)": column for name, column in out.items()}
        return pa.table(ours | given)

    def _terms(self, batch: Batch, n: int) -> tuple[list[list[str | None]], Floats]:
        """The strongest terms for the likelier class against the label, rank by rank."""
        texts: list[list[str | None]] = [[None] * n for _ in range(TERMS)]
        odds = np.full((TERMS, n), np.nan)
        groups: dict[int, list[int]] = {}
        for place in range(n):
            groups.setdefault(self._model_of(place)[0], []).append(place)
        for places in groups.values():
            model = self._model_of(places[0])[1]()
            number = {str(canon.text(c)): i for i, c in enumerate(model.classes)}
            known = np.array([number.get(str(canon.text(c)), -1) for c in self.classes])
            for start in range(0, len(places), _ROWS):
                at = np.array(places[start : start + _ROWS])
                blocks = model._read(batch.take(at))
                number_of = (known[self.likelier[at]], known[self.labels[at]])
                found, said = strongest_terms(model, blocks, *number_of, _LOOKED_AT * TERMS)
                for i, place in enumerate(at.tolist()):
                    against = np.flatnonzero(said[:, i] > 0)[:TERMS]  # NaN where there is none
                    for rank, own in enumerate(against.tolist()):
                        texts[rank][place], odds[rank, place] = found[own][i], said[own, i]
        return texts, odds

    def _page(self) -> Page:
        shown = self.review(min(self.flagged or max(self.contradicted, _FEW), _SHOWN))
        named = [f"{n} (audit)" if f"{n} (audit)" in shown.column_names else n for n in _HEAD]
        sure = 1 if self.flagged else 0  # without a sign of wrong labels P(wrong) would say too much
        lines = [["row", "label", "likelier", "P(label)", *["P(wrong)"] * sure, "because (log-odds)"]]
        for row in shown.select(named).to_pylist():
            number, label, likelier, p, wrong, term, said = row.values()
            because = "" if term is None else f"{term} ({said:+.2f})"
            lines.append([str(number), str(label), str(likelier), f"{p:.4f}", *[f"{wrong:.2f}"] * sure, because])
        if (more := (self.flagged or self.contradicted) - _SHOWN) > 0:
            lines.append([f"… {more:,} more", *[""] * (4 + sure)])
        return Page(self.summary, lines, left={1, 2, 4 + sure}, foot=f"Rows are numbered from 0; {self.said_of}.")

    @property
    def summary(self) -> str:
        """What was found, in a sentence or two."""
        judged, unjudged = many(len(self.rows), "label"), many(self.unjudged, "row")
        left = f" {unjudged} of a class that no other rows have were not judged." if self.unjudged else ""
        if not self.flagged and not self.contradicted:
            return f"None of {judged} is contradicted by the other rows.{left} The least likely are"
        if not self.flagged:
            verb = "is" if self.contradicted == 1 else "are"
            p = f" (p = {self.noise.p_value:.2g})" if self.noise.p_value < 0.5 else ""  # beyond, it says nothing more
            return (
                f"{self.contradicted:,} of {judged} {verb} contradicted by the other rows, but whether wrong or only "
                f"hard cannot be told from the counts{p}.{left}"
            )
        verb = "is" if self.flagged == 1 else "are"
        return (
            f"{self.flagged:,} of {judged} {verb} contradicted by the other rows; at most {1 - self.confidence:.0%} of "
            f"these are expected to be right. About {_labels(self.expected)} wrong in all.{left}"
        )


_HEAD = ("row", "label", "likelier", "P(label)", "P(wrong)", "because 1", "log-odds 1")


def _classes(classes: tuple[Any, ...]) -> pa.Array:
    found = as_column(list(classes))
    return found if isinstance(found, pa.Array) else array([canon.text(c) for c in found], pa.string())


def _rows_of(source: Source, rows: Ints) -> tuple[Batch, list[str] | None]:
    """Some rows in the order given, as a batch, and where they stand if the source knows."""
    kept = np.zeros(int(rows.max(initial=-1)) + 1, dtype=bool)
    kept[rows] = True
    pieces: list[Batch] = []
    where: dict[int, str] = {}
    start = 0
    for batch in source.batches():
        here = np.flatnonzero(kept[start : start + batch.rows])
        if len(here) or not pieces:
            pieces.append(batch.take(here))
        if batch.place is not None:
            where |= {start + i: batch.place(batch.start + i) for i in here.tolist()}
        start += batch.rows
    joined = _joined(pieces)
    order = np.argsort(np.argsort(rows))
    return joined.take(order), [where.get(row, "") for row in rows.tolist()] if where else None


def _joined(pieces: list[Batch]) -> Batch:
    """Batches of the same columns as one."""
    if len(pieces) == 1:
        return pieces[0]
    columns = {name: _stacked([p.columns[name] for p in pieces]) for name in pieces[0].columns}
    return replace(pieces[0], columns=columns, rows=sum(p.rows for p in pieces), sampled=True)


def _stacked(columns: list[Any]) -> Any:
    if all(isinstance(c, pa.Array) for c in columns):
        return pa.concat_arrays([c.cast(columns[0].type) for c in columns])
    if all(isinstance(c, np.ndarray) for c in columns):
        return np.concatenate(columns)
    if all(hasattr(c, "tocsr") for c in columns):
        import scipy.sparse

        return scipy.sparse.vstack(columns, format="csr")
    return [v for c in columns for v in (c.to_pylist() if isinstance(c, pa.Array) else c)]


def suspicious(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    confidence: float = 0.9,
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    settings: SettingsLike = None,
    weights: Any = None,
    effort: str = "default",
    folds: int | str = _FOLDS,
    groups: str | None = None,
    by: str | None = None,
    seed: int = 0,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> Suspicious:
    """The rows whose label the others contradict, the most suspicious first, with the terms that do; print it.

    Every row is scored by a model that has not counted it: folds are held out by subtraction (`folds`, `groups` and
    `by` are as for `cross_validate`), under `settings`, or under weights and corrections fitted without the row.
    `effort` says how much is tried for these: "quick" weights alone, "default" corrections of values and words,
    "thorough" pairs of columns and further readings of texts, too. With settings and `folds="leave-one-out"` each row
    is taken out of the tally by itself. How many labels are wrong is estimated from all rows at once (see
    `tallybayes.selection.audit`), and as many are flagged as leave at most the share 1 − `confidence` of right ones
    among them, none where a test at that level finds no sign of wrong labels.

    >>> import tallybayes as tb
    >>> rows = {"sky": ["sunny", "rainy"] * 90, "play": ["yes", "no"] * 90, "wind": ["weak", "strong"] * 90}
    >>> rows["play"][6], rows["play"][9] = "no", "yes"
    >>> sorted(tb.suspicious(rows, "play", settings=tb.Settings()).rows[:2].tolist())
    [6, 9]
    """
    if not is_number(confidence) or not 0 < confidence < 1:
        raise SettingsError(f"confidence={confidence!r}", hint="take a share between 0 and 1, e.g. 0.9.")
    alone = folds == LEAVE_ONE_OUT
    if not alone and (isinstance(folds, bool) or not isinstance(folds, (int, np.integer))):
        raise SettingsError(f"folds={folds!r}", hint=f"take a whole number of at least 2, or {LEAVE_ONE_OUT!r}.")
    if alone and settings is None:
        raise SettingsError(
            "leaving out each row by itself needs settings", hint="give settings=tb.Settings(…), or folds=10."
        )
    if alone and (groups is not None or by is not None):
        raise SettingsError("leaving out each row by itself and folds by a column", hint="choose one of the two.")
    plan = Plan(_FOLDS if isinstance(folds, str) else int(folds), groups is None and by is None, groups, by, None, seed)
    reading = Reading.of(missing, strict, date_format, fold, kinds)
    source, schema, given = opened(data, target, y, weights, plan, schema, reading)
    check_effort(effort)
    if settings is None and (found := _by_fold(source, schema, plan, effort)) is not None:
        return _ranked(found.held, source, schema, confidence, *_scored_by(found, source))
    if settings is None:
        model = whole_fit(schema if given else None, schema.target, schema.weights, plan, None, reading, effort)(source)
        assert model.tally is not None
        schema, chosen = model.tally.schema, model.settings
    else:
        chosen = Settings.of(settings, schema)
    if alone:
        return _left_out(source, schema, chosen, confidence)
    assign, _ = plan.assign(source, schema.target, schema)
    folded = count_folds(source, schema, assign)
    held = folded.held_out(chosen, parts=False)
    models: dict[int, Model] = {}

    def model_of(k: int) -> Model:
        if k not in models:
            models[k] = folded.training(k).model(chosen)
        return models[k]

    said = f"each was scored by the other {len(folded.scored()) - 1} of {len(folded.scored())} folds"
    return _ranked(held, source, schema, confidence, said, lambda at: (k := int(held.folds[at]), lambda: model_of(k)))


def _by_fold(source: Source, schema: Schema, plan: Plan, effort: str) -> ByFold | None:
    """Rows scored by settings that have not seen them; None where there are too many rows, or cells to be mended."""
    if source.engine is not None:
        return None
    try:
        return scored_by_fold(first_look(source), schema, plan.numbers(source, schema.target, schema)[0], effort)
    except DataError as error:
        if not error.unreadable:
            raise
        return None


def _scored_by(found: ByFold, source: Source) -> tuple[str, Callable[[int], tuple[int, Callable[[], Model]]]]:
    """How rows were scored, in words, and the model that has scored each."""
    held, models = found.held, dict[int, Model]()

    def model_of(k: int) -> Model:
        if k not in models:
            schema, chosen = found.settings(k)
            models[k] = Tally.of(schema, some_rows(source, (found.fold >= 0) & (found.fold != k))).model(chosen)
        return models[k]

    folds = len(np.unique(held.folds))
    said = f"each was scored by the other {folds - 1} of {folds} folds, weights fitted without it"
    return said, lambda at: (k := int(held.folds[at]), lambda: model_of(k))


def _contradicted(log_p: Floats, labels: Ints) -> int:
    """How many rows have another class that is likelier, and as likely as it is on average in the rows that have it.

    The count of confident learning (Northcutt, Jiang and Chuang, 2021).
    """
    p, k = np.exp(log_p), log_p.shape[1]
    own = p[np.arange(len(labels)), labels]
    order = np.argsort(own)  # the same sums whatever the order of the rows
    usual = np.bincount(labels[order], own[order], k) / np.maximum(np.bincount(labels, minlength=k), 1)
    return int(np.count_nonzero(((p >= usual) & (p > own[:, None])).any(axis=1)))


def _left_out(source: Source, schema: Schema, settings: Settings, confidence: float) -> Suspicious:
    tally = Tally.of(schema, source)
    held = leave_one_out(tally, source, settings=settings)

    def model_of(at: int) -> tuple[int, Callable[[], Model]]:
        row = int(held.rows[at])
        return row, lambda: tally.forget(one_row(source, row)).model(settings)

    return _ranked(held, source, schema, confidence, "each was scored by all other rows", model_of)


def _ranked(
    held: HeldOut, source: Source, schema: Schema, confidence: float, said: str,
    model_of: Callable[[int], tuple[int, Callable[[], Model]]],
) -> Suspicious:  # fmt: skip
    log_p, at = held.log_proba(), np.arange(len(held.labels))
    judged = np.flatnonzero(np.isfinite(held.log_prior[held.folds][at, held.labels]))
    if len(held.classes) < 2 or not len(judged):
        raise DataError(
            "there are no two classes with several rows each, so that no label can be contradicted",
            hint="give rows of at least two classes.",
        )
    log_p, labels = log_p[judged], held.labels[judged]
    noise = LabelNoise.of(log_p, labels, None if held.weights is None else held.weights[judged])
    wrong = noise.wrong(log_p, labels)
    own = log_p[np.arange(len(judged)), labels]
    others = log_p.copy()
    others[np.arange(len(judged)), labels] = -np.inf
    order = np.lexsort((judged, -wrong, own))
    right = np.cumsum(1.0 - wrong[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(right <= 1 - confidence)
    flagged = int(enough[-1]) + 1 if len(enough) and noise.p_value <= 1 - confidence else 0
    return Suspicious(
        held.classes, held.rows[judged][order], labels[order], np.argmax(others, axis=1)[order], np.exp(own[order]),
        wrong[order], flagged, _contradicted(log_p, labels), noise, len(held.labels) - len(judged), float(confidence),
        said, source,
        lambda place: model_of(int(judged[order[place]])), schema.target,
    )  # fmt: skip


def _labels(expected: float) -> str:
    n = round(expected)
    return f"{many(n, 'label')} {'is' if n == 1 else 'are'}"
