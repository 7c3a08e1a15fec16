"""Intervals of figures: processor time for a million rows, beside drawing rows, and how often they hold the truth.

    python benchmarks/intervals.py [--rows 1000000] [--few 10000] [--rounds 3] [--coverage 1500]

The time is that of every metric with its interval (`evaluation.table`), of all classes (`evaluation.by_class`), and the
page. Beside it, from fewer rows, what drawing the rows takes, each metric under the weights of each draw, and what
scikit-learn's metrics take for 200 draws: accuracy, log loss, F1, Matthews' correlation, ROC-AUC, average precision.

Coverage: forecasts that are a little too sure, of rows drawn anew each time; the true figures are those of two million
rows. `even` has two classes alike, `rare` one row in fifteen of the class, `sharp` AUC 0.97, `four` four classes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn import metrics as peer

from tallybayes.selection.measure import metrics
from tallybayes.selection.measure.bootstrap import Figures, interval
from tallybayes.selection.measure.evaluation import Evaluation

CASES = {"even": (2, 1.0, 0.0), "rare": (2, 1.2, 3.6), "sharp": (2, 4.0, 0.0), "four": (4, 1.5, 0.0)}
COVERED = ("accuracy", "log_loss", "brier", "roc_auc", "average_precision", "f1_macro", "calibration_error")
TRUTH = 2_000_000  # rows that say what is true
_TOO_SURE = 1.3
DRAWS, PEER_DRAWS = (200, 1000), 200


def forecasts(rng: np.random.Generator, n: int, case: str) -> metrics.Scored:
    """Rows whose classes have known probabilities, and forecasts that are surer than that."""
    k, sharp, rarity = CASES[case]
    return rows_of(rng, n, k, sharp, rarity)


def rows_of(rng: np.random.Generator, n: int, k: int, sharp: float = 1.5, rarity: float = 0.0) -> metrics.Scored:
    """The same for any number of classes; the last has a prior of e^−rarity of the others'."""
    z = rng.normal(size=(n, k)) * sharp
    z[:, -1] -= rarity
    p, q = (np.exp(factor * z) for factor in (1.0, _TOO_SURE))
    p, q = p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)
    y = np.minimum((rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1), k - 1)
    return metrics.Scored.of(y, q)


def ours(s: metrics.Scored) -> None:
    """Every metric and every class with intervals, and the page, as `tallybayes evaluate` has them."""
    k, n = s.n_classes, len(s.labels)
    prior = np.broadcast_to(np.bincount(s.labels, minlength=k) / n, (n, k))
    found = Evaluation(tuple(range(k)), ("model",), np.arange(n), s.labels, None, {"model": [s.p]}, prior)
    assert found.table.num_rows == 1 and found.by_class().num_rows == k and repr(found)


def by_rows(s: metrics.Scored) -> None:
    """The same metrics by drawing rows."""
    resamples = int(np.clip(2e7 / (len(s.labels) * s.n_classes), *DRAWS))
    for f in (*metrics.METRICS.values(), *metrics.PER_CLASS.values()):
        interval([s], f, resamples=resamples)


def by_peer(s: metrics.Scored) -> None:
    """scikit-learn's metrics of 200 draws."""
    rng, n, k = np.random.default_rng(0), len(s.labels), s.n_classes
    found = []
    for _ in range(PEER_DRAWS):
        at = rng.integers(0, n, n)
        y, p = s.labels[at], s.p[at]
        said, score = p.argmax(axis=1), p[:, 1] if k == 2 else p
        found.append([
            peer.accuracy_score(y, said), peer.log_loss(y, p, labels=range(k)), peer.f1_score(y, said, average="macro"),
            peer.matthews_corrcoef(y, said), peer.roc_auc_score(y, score, multi_class="ovr"),
            peer.average_precision_score(y if k == 2 else np.eye(k)[y], score),
        ])  # fmt: skip
    np.quantile(found, [0.025, 0.975], axis=0)


def spent(work: Callable[[metrics.Scored], None], s: metrics.Scored, rounds: int) -> float:
    """The least seconds of the processor."""
    least = np.inf
    for _ in range(rounds):
        start = time.process_time()
        work(s)
        least = min(least, time.process_time() - start)
    return float(least)


def coverage(case: str, n: int, times: int) -> dict[str, float]:
    """How often the interval of each metric holds the true figure."""
    rng = np.random.default_rng(5)
    many = Figures([forecasts(rng, TRUTH, case)])
    truth = {name: many.value(name) for name in COVERED}
    inside = dict.fromkeys(COVERED, 0)
    for seed in range(times):
        figures = Figures([forecasts(rng, n, case)], seed=seed)
        for name in COVERED:
            _, low, high = figures.interval(name)
            inside[name] += low <= truth[name] <= high
    return {name: hits / times for name, hits in inside.items()}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--coverage", type=int, default=0)
    given = parser.parse_args(arguments)
    print("| rows × classes | all metrics, with intervals | by drawing rows | scikit-learn, 200 draws |")
    print("|---|---|---|---|")
    for k in (2, 10):
        for n in (given.few, given.rows):
            s = rows_of(np.random.default_rng(1), n, k)
            beside = [f"{spent(work, s, 1):.1f} s" for work in (by_rows, by_peer)] if n == given.few else ["", ""]
            print(f"| {n:,} × {k} | {spent(ours, s, given.rounds):.2f} s | {beside[0]} | {beside[1]} |", flush=True)
    if given.coverage:
        print(f"\n| rows | {' | '.join(name.replace('_', ' ') for name in COVERED)} |\n|{'---|' * (1 + len(COVERED))}")
        for case in CASES:
            for n in (200, 2000):
                found = coverage(case, n, given.coverage)
                print(f"| {case}, {n:,} | {' | '.join(f'{100 * share:.1f}' for share in found.values())} |", flush=True)


if __name__ == "__main__":
    main()
