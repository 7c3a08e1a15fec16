"""What `tb.fit` chooses when nobody else does, all of it judged by rows that had no part in it.

One look at the data (all rows of a small table, 100,000 of a large one) is dealt into folds, whatever the order of the
rows. Then one rung after the other is tried, each starting from the last:

    one temperature for all columns  →  a weight for each reader of a column  →  a correction for every cell
    →  pairs of columns, chosen by what the columns leave over

A rung is judged split by split, each with several strengths of the pull towards simplicity (`joint`). The rows that fit
are scored by counts that have seen neither themselves nor the split that judges, `total − fold − split`; the rows that
judge by counts without their fold. What is taken is a mean of the rungs (`forms`), if its gain over one temperature is
beyond chance: three nats over all rows that judge, more where these are few, at least 0.0005 nats a row, and in all
splits but one. Tables of pure noise have said how much that has to be: at most one in ten may take a richer form. So
noise is refused, and a large table takes what helps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...base.arrays import Bools, Floats, Ints
from .forms import effective_rows, listed, mean_of, merged, shares, wider
from .joint import Joint, Solution
from .losses import error_of_mean, posterior
from .pairs import ColumnPair, best_pairs
from .penalised import Pull, fitted, tempered
from .problem import Problem

GAIN = 0.0005  # nats: less is not worth a richer form
NATS = 3.0  # of all rows that judge: less may be chance
_SCARCE = 25  # rows: of so few twice as much may be
ERRORS = 1.2  # standard errors that a gain of texts must exceed
FEW = 75  # rows: of so few a standard error is believed half
TEMPERATURE, WEIGHTS, CORRECTIONS, PAIRS = "one temperature", "column weights", "corrections", "pairs"
OF_WEIGHTS = (30.0, 3.0, 0.3)  # λ_w
OF_COLUMNS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)  # λ; every second one where the work is much
OF_PAIRS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
SHARED = 1.5  # √(1 + splits/(splits − 1)): rows of other splits share what they are scored by (Nadeau and Bengio 2003)
_VERY_MUCH = 0.9  # of the loss of the columns
_WORSE = 1.03  # of the least loss so far: a weaker pull is not tried any more
_PATIENCE = 2  # pulls after the best
_TRIED = 3e-4  # of the loss: how precise a fit is that is only judged,
_TRIED_OF_TEXT = 1e-4  # and with texts, whose exponents change the loss slowly
_MERGED_FROM = 2_000  # rows
_TOGETHER = 3.0  # λ of the columns from which pairs may grow along with them


@dataclass
class Rung:
    """A form with one strength of the pull: its nested losses, and the solution of each split."""

    name: str
    path: tuple[Pull, ...]  # from the first fit to this one
    losses: Floats  # of the rows that judged; NaN for the others
    fitted: dict[int, Solution]
    joints: dict[int, Joint]
    parts: tuple[tuple[float, tuple[Pull, ...]], ...] = ()  # share and path of each form that this is a mean of

    @property
    def pull(self) -> Pull:
        """The last."""
        return self.path[-1]


class AllRows(NamedTuple):
    """A fit of all rows, and its pairs."""

    joint: Joint
    solution: Solution
    pairs: list[ColumnPair]


@dataclass
class Choice:
    """What was chosen: the fit of all rows, and what judged it."""

    form: tuple[str, ...]
    solution: Solution
    joint: Joint
    pairs: list[ColumnPair]
    losses: dict[str, float]  # nested, by form
    errors: dict[str, float]  # their standard errors
    scores: Floats  # nested, of the form that was taken
    judged: Bools  # the rows that have them
    row_losses: Floats  # of these, NaN for the others
    judged_by: Mapping[int, tuple[Joint, Solution]]  # the fit of each split that judged


class Ladder:
    """The rungs over one problem."""

    def __init__(self, problem: Problem, watch: Callable[[str], None] = lambda what: None) -> None:
        self.problem, self.watch = problem, watch
        self.judges = problem.judges()
        self.every = 2 if problem.much else 1  # of the strengths
        self.weights = problem.rows.weights

    def climb(self, *, weights: bool | None = None, corrections: bool = True, pairs: bool | None = None) -> Choice:
        """One rung after the other; False leaves a rung out, True takes it whatever it gains, None asks the rows."""
        terms = self.problem.terms()
        joints = {s: self.problem.joint(s, terms) for s in self.judges}
        best = self._rung(TEMPERATURE, (Pull(np.inf),), joints, {s: tempered(j) for s, j in joints.items()})
        self.first = best
        tried = {TEMPERATURE: best}
        offered: list[tuple[str, list[Rung], bool]] = []
        if weights is not False:
            pulls = [Pull(w) for w in OF_WEIGHTS]
            alone = not self.problem.coded and len(self.problem.dense) == 1  # nothing to be pulled together
            path = list(self._path(WEIGHTS, pulls[:1] if alone else pulls, best))
            offered.append((WEIGHTS, path, weights is True))
            best_weights = self._least(path)
            if corrections and self.problem.coded:
                pulls = [Pull(best_weights.pull.weights, c) for c in OF_COLUMNS[:: self.every]]
                path = list(self._path(CORRECTIONS, pulls, self._merged(best_weights)))
                offered.append((CORRECTIONS, path, False))
                if pairs is not False and self.problem.pairs:
                    offered.append((PAIRS, self._pair_paths(path), pairs is True))
        forms = [best]
        for name, path, anyway in offered:
            if path:
                tried[name] = self._least(path)
                forms = [tried[name]] if anyway else [*forms, tried[name]]
        return self._final(self._mixed(forms), tried)

    # ---- rungs

    def _rung(self, name: str, path: tuple[Pull, ...], joints: dict[int, Joint], fitted: dict[int, Solution]) -> Rung:
        rows = self.problem.rows
        losses = np.full(len(rows.labels), np.nan)
        for s, x in fitted.items():
            own = slice(*joints[s].held)
            found, _ = posterior(joints[s].scores(x, [own])[own], rows.labels[own])
            losses[own] = np.where(joints[s].known[own] & (rows.weights[own] > 0), found, np.nan)
        return Rung(name, path, losses, fitted, joints)

    def _scores(self, rung: Rung) -> Floats:
        """Nested scores of the rows that judge; NaN for the others."""
        width = next(iter(rung.joints.values())).width
        out = np.full((len(self.weights), width), np.nan)
        for s, x in rung.fitted.items():
            own = slice(*rung.joints[s].held)
            out[own] = rung.joints[s].scores(x, [own])[own]
        return out

    def _path(self, name: str, pulls: Iterable[Pull], start: Rung) -> Iterable[Rung]:
        """From the strongest pull to the weakest, each from the one before, until it gets worse."""
        last, least, since = start, np.inf, 0
        precise = _TRIED_OF_TEXT if self.problem.dense else _TRIED
        for pull in pulls:
            found = {s: fitted(joint, last.fitted[s], pull, precise) for s, joint in last.joints.items()}
            self.watch(name)
            last = self._rung(name, (*last.path, pull), last.joints, found)
            yield last
            loss = self.mean(last.losses)
            since = 0 if loss < least else since + 1
            least = min(least, loss)
            if loss > _WORSE * least or since == _PATIENCE:
                return

    def _merged(self, rung: Rung) -> Rung:
        """The same with one reader for each column, the blend that its weights make: less to do where rows are many."""
        if len(self.weights) < _MERGED_FROM:
            return rung
        each = {s: merged(joint, rung.fitted[s]) for s, joint in rung.joints.items()}
        joints, fitted = ({s: pair[i] for s, pair in each.items()} for i in (0, 1))
        return replace(rung, joints=joints, fitted=fitted)  # type: ignore[arg-type]

    def _pair_paths(self, columns: Sequence[Rung]) -> list[Rung]:
        """Pairs that grow with the columns from a strong pull on; and, unless those tell very much, pairs under a pull
        of their own beside the columns as they are best: all that are proposed, and the few that chance does not.
        """
        best = self._least(columns)
        early = next((r for r in columns if r.pull.columns == _TOGETHER), best)
        together: list[Rung] = []
        if early is not best and (best.pull.columns or 0.0) < _TOGETHER:
            weaker = [early.pull._replace(columns=c, pairs=3 * c) for c in OF_COLUMNS[:: self.every] if c <= _TOGETHER]
            together = list(self._pair_path(early, weaker, self._proposed(early)))
            if self.mean(self._least(together).losses) < _VERY_MUCH * self.mean(best.losses):
                return together
        apart, proposed = [best.pull._replace(pairs=p) for p in OF_PAIRS[:: self.every]], self._proposed(best)
        paths = [*self._pair_path(best, apart, proposed), *together]
        few = {} if self.problem.much else self._proposed(best, few=True)
        if any(few.values()) and any({p.name for p in few[s]} != {p.name for p in proposed[s]} for s in few):
            paths += self._pair_path(best, [pull._replace(few=True) for pull in apart], few)
        return paths

    def _proposed(self, start: Rung, few: bool = False) -> dict[int, list[ColumnPair]]:
        """By each split, asking only the rows that fit, so that those that judge had no say."""
        return {s: best_pairs(self.problem.pairs, j, start.fitted[s], few=few) for s, j in start.joints.items()}

    def _pair_path(
        self, start: Rung, pulls: Sequence[Pull], proposed: Mapping[int, Sequence[ColumnPair]]
    ) -> Iterable[Rung]:
        each = {s: wider(joint, start.fitted[s], proposed[s]) for s, joint in start.joints.items()}
        joints, fitted = ({s: found[i] for s, found in each.items()} for i in (0, 1))
        return self._path(PAIRS, pulls, Rung(PAIRS, start.path, start.losses, fitted, joints))  # type: ignore[arg-type]

    # ---- judging

    def mean(self, losses: Floats) -> float:
        """The weighted mean of the rows that judged."""
        there = ~np.isnan(losses)
        return float(np.average(losses[there], weights=self.weights[there]))

    def error(self, losses: Floats) -> float:
        """Its standard error, as if rows, or those that were held out together, were scored independently."""
        there, units = ~np.isnan(losses), self.problem.rows.units
        return error_of_mean(losses[there], self.weights[there], None if units is None else units[there])

    def _says(self, some: Bools | Ints) -> float:
        """How many rows some of them are worth: copies are one, and heavy rows among light ones are few."""
        rows, weights = self.problem.rows, self.weights[some]
        if rows.copied and rows.units is not None:
            unit = np.unique(rows.units[some], return_inverse=True)[1]
            return effective_rows(np.bincount(unit, weights).astype(np.float64))
        return effective_rows(weights)

    def _of_shares(self) -> float:
        """What not knowing the shares of the classes costs: every fold has the shares of the rows that count for it.

        That hides (classes − 1)/n nats where the columns say nothing, and less where they say much, or where classes
        have fewer rows than there are folds.
        """
        rows = self.problem.rows
        shares = rows.class_counts.sum(axis=1)
        dealt = float(np.minimum(np.bincount(rows.labels, minlength=rows.n_classes) / rows.n_folds, 1.0).mean())
        shares = shares[shares > 0] / shares.sum()
        entropy = -float(shares @ np.log(shares))
        n = len(self.weights) * float(self.weights.mean() ** 2 / np.mean(self.weights**2))
        return dealt * (len(shares) - 1) / n * min(1.0, self.mean(self.first.losses) / max(entropy, 1e-9))

    def _least(self, path: Sequence[Rung]) -> Rung:
        return min(path, key=lambda r: self.mean(r.losses))

    def _mixed(self, forms: Sequence[Rung]) -> Rung:
        """So much of each form as rows that had no part in them gain by, if that is beyond chance; else the first."""
        judged = np.flatnonzero(~np.isnan(np.sum([r.losses for r in forms], axis=0)))
        scores, weights = [self._scores(r)[judged] for r in forms], self.weights[judged]
        joint = next(iter(forms[0].joints.values()))
        whole = len(self.weights) >= _MERGED_FROM or bool(joint.lengths)  # exponents have no mean
        n = self._says(judged)
        found = shares(scores, self.problem.rows.labels[judged], weights * (n / weights.sum()), whole=whole)
        used = np.flatnonzero(found).tolist()
        mixed = forms[used[0]] if len(used) == 1 else self._mean([forms[k] for k in used], found[used])
        gains = forms[0].losses - mixed.losses
        least = max(NATS * (1 + _SCARCE / n) / n, GAIN)
        return mixed if self.mean(gains) > least and self._in_splits(gains) else forms[0]

    def _mean(self, forms: Sequence[Rung], share: Floats) -> Rung:
        """The rung of a mean, split by split."""
        widest = forms[-1]
        each = {s: mean_of([f.fitted[s] for f in forms], share) for s in widest.fitted}
        paths = tuple((by, f.path) for f, by in zip(forms, share.tolist(), strict=True))
        return replace(self._rung(widest.name, widest.path, widest.joints, each), parts=paths)

    def _chance(self, gains: Floats) -> float:
        """What a gain must exceed: so many standard errors, more where rows are few, and GAIN."""
        n = self._says(~np.isnan(gains))
        return max(ERRORS * (1 + FEW / n) * self.error(gains), GAIN)

    def _beyond_chance(self, gains: Floats) -> bool:
        """Whether a gain is beyond chance, and there in all splits but one at most."""
        return self.mean(gains) > self._chance(gains) and self._in_splits(gains)

    def _in_splits(self, gains: Floats) -> bool:
        """Whether there is a gain in all splits but one at most."""
        splits = self.problem.splits
        each = [np.where(splits == s, gains, np.nan) for s in self.judges]
        in_splits = [self.mean(g) > 0 for g in each if not np.isnan(g).all()]
        return sum(in_splits) >= len(in_splits) - 1

    # ---- the fit of all rows

    def _final(self, last: Rung, tried: Mapping[str, Rung]) -> Choice:
        """Once more along the same paths with all rows, each scored by the counts of the other folds."""
        tried = {**tried, last.name: last}
        joint = self.problem.joint(None, self.problem.terms())
        known: dict[tuple[Pull, ...], AllRows] = {last.path[:1]: AllRows(joint, tempered(joint), [])}
        often = _often(last)
        fits = [self._of_all(path, known, often) for _, path in last.parts or [(1.0, last.path)]]
        joint, x, pairs = fits[-1]
        if last.parts:
            x = mean_of([fit.solution for fit in fits], np.array([by for by, _ in last.parts]))
        names = {WEIGHTS: (WEIGHTS,), CORRECTIONS: (CORRECTIONS,), PAIRS: (CORRECTIONS, PAIRS)}
        form = names.get(last.name, (TEMPERATURE,))
        unknown = self._of_shares()
        losses = {listed(names.get(n, (n,))): self.mean(r.losses) + unknown for n, r in tried.items()}
        errors = {
            listed(names.get(n, (n,))): float(np.hypot(SHARED * self.error(r.losses), unknown))
            for n, r in tried.items()
        }
        judged_by = {s: (last.joints[s], fit) for s, fit in last.fitted.items()}
        judged = ~np.isnan(last.losses)
        return Choice(form, x, joint, pairs, losses, errors, self._scores(last), judged, last.losses, judged_by)

    def _of_all(
        self, path: tuple[Pull, ...], known: dict[tuple[Pull, ...], AllRows], often: Collection[str]
    ) -> AllRows:
        """The fit at the end of a path; what paths have in common is fitted once."""
        for i, pull in enumerate(path[1:], 1):
            if path[: i + 1] in known:
                continue
            self.watch("all rows")
            joint, x, pairs = known[path[:i]]
            if pull.columns is not None and not joint.blended and len(self.weights) >= _MERGED_FROM:
                joint, x = merged(joint, x)
            if pull.pairs < np.inf and not pairs:
                pairs = best_pairs(self.problem.pairs, joint, x, anyway=often, few=pull.few)
                joint, x = wider(joint, x, pairs)
            known[path[: i + 1]] = AllRows(joint, fitted(joint, x, pull), pairs)
        return known[path]


def _often(rung: Rung) -> frozenset[str]:
    """The pairs of most fits that judged a rung: what was judged with them is not fitted without them."""
    times = Counter(t.name for joint in rung.joints.values() for t in joint.terms if t.pair)
    return frozenset(name for name, count in times.items() if 2 * count > len(rung.joints))
