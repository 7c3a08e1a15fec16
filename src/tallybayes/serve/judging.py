"""How good a served model is on rows that it has not seen, worked out on demand and in the background.

Every row of the journal is answered by a model of all other folds:

    counts of a fold's model = counts of the served model − counts of the fold's rows

which is exact, and holds whether or not the journal has all rows of the model. The weights of columns stay as they are.
Corrections and pairs of columns are another matter: they are as many as counts, and the groups of a pair's values are
made by the labels of all rows. Where there are any, the whole fit is done anew without each fold.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.canon import many
from ..base.canon import text as canonical
from ..base.errors import DataError, TallybayesError, TallybayesWarning
from ..model.estimate import estimate
from ..model.model import Model
from ..selection.choose.fit import fit
from ..selection.measure.evaluation import Evaluation
from ..selection.measure.left_out import FOLDS, REFITTED
from ..selection.measure.metrics import baseline
from .desk import Desk
from .journal import KeptRow
from .served import Served

MOST_ROWS = 50_000  # that are answered; of more, evenly spaced ones
FIGURES = ("accuracy", "log_loss", "brier", "calibration_error", "roc_auc")  # that are told
_FEWEST = 20  # rows, of at least two classes
_log = logging.getLogger("tallybayes.serve")


@dataclass(frozen=True)
class Judgement:
    """What was found, and of which state of the counts it holds."""

    version: int
    evaluation: Evaluation
    said: str  # how, in a sentence


class Judging:
    """At most one judgement at a time, in a thread of its own; the last one is kept. Threads may share it."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._turn = desk, threading.Lock()
        self._thread: threading.Thread | None = None
        self.last: Judgement | None = None
        self.problem: TallybayesError | None = None  # why the last attempt has found nothing

    @property
    def running(self) -> bool:
        """Whether one is being worked out."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self) -> None:
        """Work one out of the state as it is now, unless that is being done."""
        with self._turn:
            if not self.running:
                self.problem = None
                self._thread = threading.Thread(target=self._work, name="judging", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Return when nothing is being worked out."""
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            found = judged_by_folds(*self._desk.counted_rows())
            for metric in FIGURES:
                found.evaluation.figure(metric)  # known now, so that no page waits for it
            found.evaluation.by_class()
            self.last = found
        except TallybayesError as error:
            self.problem = error
        except Exception as error:  # a thread has nobody to tell but the page
            _log.exception("judging the model failed")
            self.problem = DataError(f"this failed: {type(error).__name__}", hint="the server's log has more.")


def judged_by_folds(served: Served, rows: Sequence[KeptRow]) -> Judgement:
    """Every row answered by the model without its fold. `rows` are counted in the model, some of its rows or all."""
    labels = [row.label or "" for row in rows]
    if len(rows) < _FEWEST or len(set(labels)) < 2:
        raise DataError(
            f"the journal holds {many(len(rows), 'row')} of {many(len(set(labels)), 'class', 'classes')} with a label",
            hint=f"learn at least {_FEWEST} rows, of two classes: figures of fewer would say nothing.",
        )
    every = len(rows) == served.tally.rows
    fitted = bool(served.model.settings.corrections) or any(len(c.of or ()) == 2 for c in served.tally.schema.counted)
    anew = every and fitted
    folds = _folds(rows, REFITTED if anew else FOLDS)
    asked = _spaced(rows)
    names = sorted({*map(str, map(canonical, served.model.classes)), *labels})
    at = {name: i for i, name in enumerate(names)}
    p = np.zeros((len(asked), len(names)))
    for fold in sorted(set(folds)):
        inside = [row for row, k in zip(rows, folds, strict=True) if k == fold]
        model = _without(served, inside, [row for row, k in zip(rows, folds, strict=True) if k != fold], anew=anew)
        place = [at[str(canonical(c))] for c in model.classes]
        scored = [i for i, number in enumerate(asked) if folds[number] == fold]
        if scored:
            given = [{n: rows[asked[i]].values.get(n) for n in served.read.inputs} for i in scored]
            p[np.ix_(scored, place)] = model.predict_proba(given)
    y = np.array([at[labels[i]] for i in asked], dtype=np.int64)
    found = Evaluation(tuple(names), ("model",), np.array(asked), y, None, {"model": [p]}, baseline(y, len(names)))
    return Judgement(served.version, found, _said(served, len(rows), len(asked), len(set(folds)), anew, every))


def _without(served: Served, inside: Sequence[KeptRow], outside: Sequence[KeptRow], *, anew: bool) -> Model:
    """The model of all rows but those inside a fold."""
    schema = served.tally.schema
    if not anew:
        return estimate(served.tally - served.counted(inside), served.model.settings)
    schema = schema._with(columns=[c for c in schema.columns if not c.of])  # pairs are found anew
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TallybayesWarning)  # was said of all rows, when the model was made
        return fit([{**row.values, schema.target: row.label} for row in outside], schema=schema)


def _folds(rows: Sequence[KeptRow], folds: int) -> list[int]:
    """A fold for each row: equal rows stay together, unless most rows repeat another."""
    if 2 * len({row.key for row in rows}) < len(rows):
        return [i % folds for i in range(len(rows))]
    return [int.from_bytes(row.key[:8], "big") % folds for row in rows]


def _spaced(rows: Sequence[KeptRow]) -> list[int]:
    """The numbers of the rows that are answered."""
    step = max(-(-len(rows) // MOST_ROWS), 1)
    return list(range(0, len(rows), step))


def _said(served: Served, rows: int, asked: int, folds: int, anew: bool, every: bool) -> str:
    share = {REFITTED: "third", FOLDS: "tenth"}.get(folds, "part")
    how = f"{many(asked, 'row')} of the journal, each answered by a model that was counted without its {share} of them"
    unseen = served.tally.rows - rows
    how += "" if every else f"; {many(unseen, 'row')} of the model are not in the journal, and always stay in"
    if anew:
        return f"{how}. Weights, corrections and pairs were fitted anew without it."
    if served.model.settings.calibrated is not None:
        what = "Weights" if not served.model.settings.corrections else "Weights, corrections and pairs"
        return f"{how}. {what} stay as they are: they have seen these rows, which flatters a little."
    return f"{how}."
