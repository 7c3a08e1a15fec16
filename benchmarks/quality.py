"""How good the default is: every shared data set by one protocol, beside what others give.

    python benchmarks/quality.py [--only adult,letter] [--way "pairs=False"] [--text]
    python benchmarks/quality.py --rivals [--only adult,letter]    # EBM, CatBoost, LightGBM and boosting beside it

Protocol: the official split where there is one, ling_spam by its ten parts, otherwise StratifiedKFold(5, shuffle=True,
random_state=20240607); auto_mpg's class is whether mpg reaches its median; figures pooled over the folds, p clipped at
1e-15, calibration error in 15 bins of equal width. Columns that the data's page calls "not features" are dropped.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

import tallybayes as tb
from tallybayes.selection.measure import metrics

DATA = Path(os.environ.get("TALLYBAYES_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
TABLES = [
    "adult",
    "auto_mpg",
    "balance_scale",
    "breast_cancer_wisconsin",
    "cmc",
    "contact_lenses",
    "credit_approval",
    "glass",
    "house_votes_84",
    "ionosphere",
    "labor",
    "letter",
    "mushroom",
    "nursery",
    "pima_diabetes",
    "soybean",
    "spambase",
    "tic_tac_toe",
    "titanic3",
    "vowel",
    "weather_nominal",
]
TEXTS = [
    "bbc_news",
    "imdb_20k",
    "ling_spam",
    "names_gender",
    "newsgroups20",
    "rt_polarity",
    "sms_spam",
    "trec_questions",
    "udhr_languages",
]
Folds = list[tuple[np.ndarray, np.ndarray]]
TARGET = {"auto_mpg": "mpg", "titanic3": "survived"}
NOT_FEATURES = {
    "auto_mpg": ["car_name"],
    "bbc_news": ["id"],
    "breast_cancer_wisconsin": ["id"],
    "imdb_20k": ["id", "rating"],
    "ling_spam": ["id"],
    "newsgroups20": ["id"],
    "titanic3": ["name", "ticket", "boat", "body"],
    "trec_questions": ["target_fine"],
    "vowel": ["Speaker Number"],
}


def load(name: str) -> tuple[pd.DataFrame, str, Folds]:
    """The frame, its target and (training rows, test rows) of each fold."""
    frame = pd.read_parquet(DATA / f"{name}.parquet").drop(columns=NOT_FEATURES.get(name, []))
    target = TARGET.get(name, "target")
    if name == "auto_mpg":
        frame[target] = np.where(frame[target] >= frame[target].median(), "high", "low")
    if "split" in frame:
        split = frame.pop("split").to_numpy()
        return frame, target, [(np.flatnonzero(split == "train"), np.flatnonzero(split == "test"))]
    if "part" in frame:
        part = frame.pop("part").to_numpy()
        return frame, target, [(np.flatnonzero(part != p), np.flatnonzero(part == p)) for p in np.unique(part)]
    return frame, target, stratified(frame, target)


def stratified(frame: pd.DataFrame, target: str) -> Folds:
    """Five shuffled folds with the classes in proportion."""
    folds = StratifiedKFold(5, shuffle=True, random_state=20240607)
    return list(folds.split(frame, frame[target].astype(str)))


def held_out(frame: pd.DataFrame, target: str, folds: Folds, fit: Any) -> Iterator[tuple[np.ndarray, np.ndarray, str]]:
    """(probabilities over all classes, right class numbers, form of the weights) of each fold; no model is kept."""
    labels = frame[target].astype(str).to_numpy()
    classes = sorted(set(labels))
    for train, test in folds:
        model = fit(frame.iloc[train].reset_index(drop=True), target)
        p = np.zeros((len(test), len(classes)))
        known = model.classes_ if hasattr(model, "classes_") else model.classes
        p[:, [classes.index(str(c)) for c in known]] = model.predict_proba(
            frame.iloc[test].drop(columns=target).reset_index(drop=True)
        )
        form = getattr(getattr(model, "settings", None), "calibrated", None)
        del model  # one of hundreds of classes fills gigabytes
        yield p, np.array([classes.index(c) for c in labels[test]]), "as counted" if form is None else form.form


def figures(name: str, fit: Any) -> dict[str, Any]:
    """Log loss, accuracy, calibration error and seconds for one set."""
    return figures_of(*load(name), fit)


def figures_of(frame: pd.DataFrame, target: str, folds: Folds, fit: Any) -> dict[str, Any]:
    """The same for a table and its folds."""
    started, worked = time.perf_counter(), time.process_time()
    p, y, forms = zip(*held_out(frame, target, folds, fit), strict=True)
    seconds, processor = time.perf_counter() - started, time.process_time() - worked
    proba, label = np.concatenate(p), np.concatenate(y)
    return {
        "log loss": float(metrics.log_loss(label, proba)),
        "accuracy": float(metrics.accuracy(label, proba)),
        "ece": float(metrics.calibration_error(label, proba)),
        "seconds": seconds,
        "processor": processor,  # of all threads
        "form": " / ".join(sorted(set(forms))),
    }


def single(family: str) -> Any:
    """A fit with one family for every number column and no calibration."""

    def fit(frame: pd.DataFrame, target: str) -> Any:
        schema = tb.infer(frame, target=target)
        numbers = [c.name for c in schema.counted if c.kind == "number"]
        return tb.fit(frame, schema=schema, settings=tb.Settings(families=dict.fromkeys(numbers, family)))

    return fit


WAYS: dict[str, Any] = {
    "default": lambda frame, target: tb.fit(frame, target=target),
    "pairs=False": lambda frame, target: tb.fit(frame, target=target, pairs=False),
    "temperature": lambda frame, target: tb.fit(frame, target=target, calibrate="temperature"),
    "as counted": lambda frame, target: tb.fit(frame, target=target, calibrate=False),
    **{name: single(name) for name in ("gaussian", "gaussian-shared", "student", "kernel", "bins")},
}


def beside(names: list[str], ways: list[str]) -> None:
    """Print log loss, accuracy, calibration error and processor seconds of the default and others, a line per set."""
    import rivals

    unknown = [w for w in ways if w not in {"default", *rivals.RIVALS}]
    if unknown:
        raise SystemExit(f"--ways knows default, {', '.join(rivals.RIVALS)}; not {', '.join(unknown)}")
    fits = {"default": WAYS["default"], **rivals.RIVALS}
    fits = {way: fit for way, fit in fits.items() if not ways or way in ways}
    rivals.needed(tuple(way for way in fits if way in rivals.NEEDED))
    keys = ("log loss", "accuracy", "ece", "processor")
    print("log loss / accuracy / calibration error / processor seconds\n")
    print(f"| set | {' | '.join(fits)} |\n|---|{'---|' * len(fits)}")
    every = []
    for name in names:
        found = [figures(name, fit) for fit in fits.values()]
        every.append([[f[k] for k in keys] for f in found])
        print(f"| {name} | {' | '.join(map(four, every[-1]))} |", flush=True)
    print(f"| **mean** | {' | '.join(map(four, np.mean(every, axis=0)))} |")


def four(figures: Sequence[float]) -> str:
    """The cell of one way."""
    return " / ".join([f"{v:.4f}" for v in figures[:3]] + [f"{figures[3]:.1f}"])


def main() -> None:
    """Print a line per set and the means, for one way of fitting."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default="", help="some sets, by commas")
    parser.add_argument("--way", default="default", choices=list(WAYS))
    parser.add_argument("--text", action="store_true", help="the nine text sets instead of the 21 tables")
    parser.add_argument("--rivals", action="store_true", help="others beside the default; --ways names some of them")
    parser.add_argument("--ways", default="", help="with --rivals: some ways, by commas")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    names = asked.only.split(",") if asked.only else TEXTS if asked.text else TABLES
    if asked.rivals:
        beside(names, asked.ways.split(",") if asked.ways else [])
        return
    print(f"| {asked.way} | log loss | accuracy | calibration error | seconds | form |\n|---|---|---|---|---|---|")
    rows = []
    for name in names:
        found = figures(name, WAYS[asked.way])
        rows.append(found)
        cells = [f"{found[k]:.4f}" for k in ("log loss", "accuracy", "ece")]
        print(f"| {name} | {' | '.join(cells)} | {found['seconds']:.1f} | {found['form']} |", flush=True)
    mean = [f"{np.mean([r[k] for r in rows]):.4f}" for k in ("log loss", "accuracy", "ece")]
    print(f"| **mean** | {' | '.join(mean)} | | |")


if __name__ == "__main__":
    main()
