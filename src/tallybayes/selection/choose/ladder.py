"""What `tb.fit` chooses when nobody else does, all of it judged by rows that had no part in it.

One look at the data (all rows of a small table, 100,000 of a large one) is dealt into folds, whatever the order of the
rows. Then one rung after the other is tried, each starting from the last:

    one temperature for all columns  →  a weight for each reader of a column  →  a correction for every cell
    →  pairs of columns, chosen by what the columns leave over

A rung is judged split by split, each with several strengths of the pull towards simplicity (`joint`). The rows that fit
are scored by counts that have seen neither themselves nor the split that judges, `total − fold − split`; the rows that
judge by counts without their fold. A rung is taken if its gain is beyond chance: by the standard error of the paired
difference (two of them where rows are few), at least 0.0005 nats, and in all splits but one. Tables of pure noise have
said how much that has to be: at most one in ten may take a richer form. So noise is refused, and a large table takes
what helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...base.arrays import Bools, Floats, Ints
from .columns import Category, Coded, DealtRows, Number, all_entries
from .joint import Dense, Joint, Solution, against_first, posterior
from .pairs import ColumnPair, best_pairs, halves, possible
from .penalised import Pull, fitted, tempered
from .placed import Placed, Summand

GAIN = 0.0005  # nats: less is not worth a richer form
ERRORS = 1.2  # standard errors that a gain must exceed
FEW = 75  # rows: of so few a standard error is believed half
TEMPERATURE, WEIGHTS, CORRECTIONS, PAIRS = "one temperature", "column weights", "corrections", "pairs"
OF_WEIGHTS = (30.0, 3.0, 0.3)  # λ_w
OF_COLUMNS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)  # λ; every second one where the work is much
OF_PAIRS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
_MUCH = 1_500_000  # rows × columns × classes, from which fewer strengths are tried and two splits judge
SHARED = 1.5  # √(1 + splits/(splits − 1)): rows of other splits share what they are scored by (Nadeau and Bengio 2003)
_VERY_MUCH = 0.9  # of the loss of the columns
_WORSE = 1.03  # of the least loss so far: a weaker pull is not tried any more
_JUDGES = 4_000  # rows that are enough to judge by; of a large table not every split needs to
SPLITS = 5
_MERGED_FROM = 2_000  # rows
_AT_ONCE = 300_000  # entries × classes of all splits
_TOGETHER = 3.0  # λ of the columns from which pairs may grow along with them


@dataclass(frozen=True, eq=False)
class Problem:
    """The rows, dealt and sorted by fold, and the columns: everything that a rung may look at."""

    rows: DealtRows
    coded: Sequence[Coded]
    dense: Sequence[Dense]
    pairs: Sequence[ColumnPair]  # that could be proposed
    paired: frozenset[str] = frozenset()  # coded columns that are pairs already
    enough: float = _JUDGES  # rows to judge by; infinity: every split judges

    @property
    def splits(self) -> Ints:
        """The split of each row: neighbouring folds."""
        return split_of(self.rows.folds, self.rows.n_folds)

    def terms(self) -> Sequence[Summand]:
        """A summand for each column."""
        return self._placed.terms

    @cached_property
    def _placed(self) -> Placed:
        """Where the rows find their entries, whatever split judges."""
        out = []
        for c in self.coded:
            enough = np.bincount(c.codes, minlength=c.size + 1)[: c.size] >= (1 if c.ordered else 2)
            term = Summand.of_column(c.name, c.codes, c.size, enough, c.ordered)
            out.append(term if c.name not in self.paired else replace(term, pair=True))
        return Placed.of(self.rows, out, [True] * len(out))

    def training(self, split: int | None) -> Bools:
        """Which folds score each fold: all but itself, and but the split that judges unless it is of that."""
        fold = np.arange(self.rows.n_folds)
        out = fold[:, None] != fold[None, :]
        if split is not None:
            judges = split_of(fold, self.rows.n_folds) == split
            out &= judges[:, None] | ~judges[None, :]
        return np.asarray(out)

    def joint(self, split: int | None, terms: Sequence[Summand]) -> Joint:
        """The fit of all rows, or of those outside a split, which judges it."""
        training = self.training(split)
        tables = self._at_once.get(split)
        if tables is None:
            tables = [against_first(said) for said in all_entries(self.coded, self._placed.used, [training])]
        prior = against_first(self.rows.log_prior(training))
        n = training.astype(float) @ self.rows.class_counts.T
        known = (n > 0)[self.rows.folds, self.rows.labels]
        inside = np.flatnonzero(self.splits == split) if split is not None else np.zeros(0, dtype=np.int64)
        held = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)
        placed = self._placed if terms is self._placed.terms else None
        return Joint(self.rows, terms, tables, prior, training, held, self.dense, known, placed=placed)

    @cached_property
    def _at_once(self) -> dict[int | None, list[Floats]]:
        """What tables say by the split that judges, unless it is much: of little calls take longer than arithmetic."""
        splits: list[int | None] = [*np.unique(self.splits).tolist(), None]
        if self._placed.size * self.rows.n_classes * len(splits) > _AT_ONCE:
            return {}
        each = [self.training(s) for s in splits]
        every = [against_first(said) for said in all_entries(self.coded, self._placed.used, each)]
        parts = [np.split(said, len(splits), axis=1) for said in every]
        return {s: [part[k] for part in parts] for k, s in enumerate(splits)}

    @property
    def much(self) -> bool:
        """Whether a look at all rows takes long."""
        classes = self.rows.n_classes if self.rows.n_classes > 2 else 1
        return len(self.rows.labels) * (len(self.coded) + len(self.dense)) * classes > _MUCH

    def judges(self) -> list[int]:
        """The splits that judge."""
        count = np.bincount(self.splits, minlength=SPLITS)
        known = [s for s in range(SPLITS) if count[s]]
        enough = np.cumsum([count[s] for s in known])
        return known[: max(2, 0 if self.much else int(np.searchsorted(enough, self.enough)) + 1)]


def split_of(folds: Ints, n_folds: int) -> Ints:
    """The split that each fold belongs to."""
    return np.asarray(folds * SPLITS // max(n_folds, SPLITS))


@dataclass
class Rung:
    """A form with one strength of the pull: its nested losses, and the solution of each split."""

    name: str
    path: tuple[Pull, ...]  # from the first fit to this one
    losses: Floats  # of the rows that judged; NaN for the others
    fitted: dict[int, Solution]
    joints: dict[int, Joint]

    @property
    def pull(self) -> Pull:
        """The last."""
        return self.path[-1]


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
        taken: list[Rung] = [best]
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
        for name, path, anyway in offered:
            if not path:
                continue
            tried[name] = self._least(path)
            found = self._taken(taken[-1], path, anyway)
            if found is not None:
                tried[name] = found
                taken.append(found)
        return self._final(taken, tried)

    # ---- rungs

    def _rung(self, name: str, path: tuple[Pull, ...], joints: dict[int, Joint], fitted: dict[int, Solution]) -> Rung:
        rows = self.problem.rows
        losses = np.full(len(rows.labels), np.nan)
        for s, x in fitted.items():
            own = slice(*joints[s].held)
            found, _ = posterior(joints[s].scores(x, [own])[own], rows.labels[own])
            losses[own] = np.where(joints[s].known[own] & (rows.weights[own] > 0), found, np.nan)
        return Rung(name, path, losses, fitted, joints)

    def _path(self, name: str, pulls: Iterable[Pull], start: Rung) -> Iterable[Rung]:
        """From the strongest pull to the weakest, each from the one before, as long as it is not much worse."""
        last, least = start, np.inf
        for pull in pulls:
            found = {s: fitted(joint, last.fitted[s], pull) for s, joint in last.joints.items()}
            self.watch(name)
            last = self._rung(name, (*last.path, pull), last.joints, found)
            yield last
            least = min(least, self.mean(last.losses))
            if self.mean(last.losses) > _WORSE * least:
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
        of their own beside the columns as they are best.
        """
        best = self._least(columns)
        early = next((r for r in columns if r.pull.columns == _TOGETHER), best)
        together: list[Rung] = []
        if early is not best and (best.pull.columns or 0.0) < _TOGETHER:
            weaker = [c for c in OF_COLUMNS[:: self.every] if c <= _TOGETHER]
            together = list(self._pair_path(early, [early.pull._replace(columns=c, pairs=3 * c) for c in weaker]))
            if self.mean(self._least(together).losses) < _VERY_MUCH * self.mean(best.losses):
                return together
        apart = [best.pull._replace(pairs=p) for p in OF_PAIRS[:: self.every]]
        return [*self._pair_path(best, apart), *together]

    def _pair_path(self, start: Rung, pulls: Sequence[Pull]) -> Iterable[Rung]:
        """Each split proposes pairs by the rows that fit, so that those that judge had no say."""
        joints, fitted = {}, {}
        for s, joint in start.joints.items():
            chosen = best_pairs(self.problem.pairs, joint, start.fitted[s])
            joints[s], fitted[s] = wider(joint, start.fitted[s], chosen)
        first = Rung(PAIRS, start.path, start.losses, fitted, joints)
        return self._path(PAIRS, pulls, first)

    # ---- judging

    def mean(self, losses: Floats) -> float:
        """The weighted mean of the rows that judged."""
        there = ~np.isnan(losses)
        return float(np.average(losses[there], weights=self.weights[there]))

    def error(self, losses: Floats) -> float:
        """Its standard error, as if rows were scored independently of each other."""
        there = ~np.isnan(losses)
        w = self.weights[there] / self.weights[there].sum()
        off = losses[there] - float(w @ losses[there])
        return float(np.sqrt(np.sum((w * off) ** 2) * len(w) / max(len(w) - 1, 1)))

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

    def _taken(self, held: Rung, path: Sequence[Rung], anyway: bool) -> Rung | None:
        """The best of a path if the gain of one of its rungs over what is held is beyond chance; None if there is none.

        Neighbours on the path of one that is beyond chance are better or worse by little: they need half of it.
        """
        gains = [(rung, held.losses - rung.losses) for rung in path]
        if not any(self._beyond_chance(g) for _, g in gains):
            return self._least(path) if anyway else None
        return self._least([rung for rung, g in gains if self.mean(g) > self._chance(g) / 2])

    def _chance(self, gains: Floats) -> float:
        """What a gain must exceed: so many standard errors, more where rows are few, and GAIN."""
        n = int(np.count_nonzero(~np.isnan(gains)))
        return max(ERRORS * (1 + FEW / n) * self.error(gains), GAIN)

    def _beyond_chance(self, gains: Floats) -> bool:
        """Whether a gain is beyond chance, and there in all splits but one at most."""
        splits = self.problem.splits
        each = [np.where(splits == s, gains, np.nan) for s in self.judges]
        in_splits = [self.mean(g) > 0 for g in each if not np.isnan(g).all()]
        return self.mean(gains) > self._chance(gains) and sum(in_splits) >= len(in_splits) - 1

    # ---- the fit of all rows

    def _final(self, taken: Sequence[Rung], tried: Mapping[str, Rung]) -> Choice:
        """Once more along the same path with all rows, each scored by the counts of the other folds."""
        last = taken[-1]
        terms = self.problem.terms()
        joint = self.problem.joint(None, terms)
        x = tempered(joint)
        pairs: list[ColumnPair] = []
        for pull in last.path[1:]:
            self.watch("all rows")
            if pull.columns is not None and not joint.blended and len(self.weights) >= _MERGED_FROM:
                joint, x = merged(joint, x)
            if pull.pairs < np.inf and not pairs:
                pairs = best_pairs(self.problem.pairs, joint, x)
                joint, x = wider(joint, x, pairs)
            x = fitted(joint, x, pull)
        names = {WEIGHTS: (WEIGHTS,), CORRECTIONS: (CORRECTIONS,), PAIRS: (CORRECTIONS, PAIRS)}
        form = names.get(last.name, (TEMPERATURE,))
        unknown = self._of_shares()
        losses = {listed(names.get(n, (n,))): self.mean(r.losses) + unknown for n, r in tried.items()}
        errors = {
            listed(names.get(n, (n,))): float(np.hypot(SHARED * self.error(r.losses), unknown))
            for n, r in tried.items()
        }
        scores = np.full((len(self.weights), joint.width), np.nan)
        for s, fit in last.fitted.items():
            own = slice(*last.joints[s].held)
            scores[own] = last.joints[s].scores(fit, [own])[own]
        judged_by = {s: (last.joints[s], fit) for s, fit in last.fitted.items()}
        judged = ~np.isnan(last.losses)
        return Choice(form, x, joint, pairs, losses, errors, scores, judged, last.losses, judged_by)


def wider(joint: Joint, x: Solution, pairs: Sequence[ColumnPair]) -> tuple[Joint, Solution]:
    """The same problem with pairs, whose corrections start from 0."""
    out = joint.wider([p.term() for p in pairs])
    added = np.zeros((out.n_added - joint.n_added, joint.width))
    return out, x._replace(added=np.concatenate([x.added, added]))


def merged(joint: Joint, x: Solution) -> tuple[Joint, Solution]:
    """The same problem with the readers of each column blended by their weights into one."""
    tables, weights, shares = [], [], []
    for table, (first, count) in zip(joint.tables, joint.of_term, strict=True):
        own = x.weights[first : first + count]
        total = float(own.sum())
        shares.append(own / total if total > 0 else np.full(count, 1 / max(count, 1)))
        tables.append(
            table if table is None else np.add.reduce(shares[-1][:, None, None] * table, axis=0, keepdims=True)
        )
        weights += [total] * (table is not None)
    out = Joint(
        joint.rows, joint.terms, tables, joint.log_prior, joint.training, joint.held, joint.dense, joint.known, shares,
        joint.placed,
    )  # fmt: skip
    return out, x._replace(weights=np.concatenate([weights, x.weights[joint.readers :]]))


def listed(form: Sequence[str]) -> str:
    """A form in words: "corrections and pairs"."""
    return " and ".join([", ".join(form[:-1]), form[-1]] if len(form) > 1 else form)


def coded_pairs(columns: Sequence[tuple[Any, Coded]], taken: Sequence[Any]) -> list[ColumnPair]:
    """The pairs that could be proposed."""
    plain = [(c, coded) for c, coded in columns if isinstance(coded, (Category, Number)) and c.of is None]
    return possible(halves(plain), taken)
