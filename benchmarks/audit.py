"""Wrong labels and bad sources: found by leaving rows out of a tally, beside cleanlab and beside training again.

    python benchmarks/audit.py labels [--seeds 10] [--first 1000] [--names adult sms_spam …] [--rows 6000]
    python benchmarks/audit.py sources [--runs 100] [--names adult …]
    python benchmarks/audit.py exact [--rows 100000 1000000 10000000]

labels: 5% of the labels are changed to another class. `tb.suspicious` and cleanlab (its better of logistic regression
and boosting, by the seed's average precision) rank the rows on the same five folds; "gain" is what forgetting the first
5% (and fitting the weights anew on the rest) adds to the accuracy of the same `tb.fit` model on a third of the rows,
kept apart with their labels as they are. Of texts there are three quarters as many rows. Both sides have run once
before time is taken, so that nothing is compiled or imported. Needs cleanlab and scikit-learn. sources: ten sources
drawn at random, 30% of the labels of one of them changed: how often it is ranked first, and how often any is suspect
where none is bad. exact: the models without each source are those of counting the other rows again, in memory or from a
file per source, bit by bit, and the processor time of both.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # waiting threads would be charged to the peers

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

import tallybayes as tb

FOLDER = Path(os.environ.get("TALLYBAYES_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
NAMES = ("adult", "mushroom", "spambase", "credit_approval", "sms_spam", "trec_questions")
NO_FEATURES = ["split", "target_fine", "id", "part", "name", "ticket", "boat", "body", "Speaker Number", "rating"]
FOLDS, WRONG, FEWEST = 5, 0.05, 20


def table(name: str, seed: int, most: int) -> pd.DataFrame:
    """Rows in random order, without the classes of a few rows."""
    rows = pd.read_parquet(FOLDER / f"{name}.parquet").drop(columns=NO_FEATURES, errors="ignore")
    rows = rows.rename(columns={"survived": "target"}).sample(frac=1, random_state=seed)[:most]
    rows["target"] = rows["target"].astype(str)
    many = rows["target"].map(rows["target"].value_counts()) >= FEWEST
    return rows[many].reset_index(drop=True)


def changed(labels: pd.Series, which: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The labels with some changed to another class, each alike."""
    classes, codes = np.unique(labels.to_numpy(str), return_inverse=True)
    other = (codes + rng.integers(1, len(classes), len(codes))) % len(classes)
    return classes[np.where(which, other, codes)].astype(object)


def peers(rows: pd.DataFrame) -> dict[str, Any]:
    """What cleanlab is given probabilities by: pipelines for tables, or for texts."""
    from sklearn.compose import make_column_transformer
    from sklearn.decomposition import TruncatedSVD
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    numbers = [c for c in rows if pd.api.types.is_numeric_dtype(rows[c])]
    others = [c for c in rows if c not in numbers]
    boosting = HistGradientBoostingClassifier(random_state=0)
    if list(rows) == ["text"]:
        words = make_column_transformer((TfidfVectorizer(sublinear_tf=True), "text"))
        return {
            "logistic regression": make_pipeline(words, LogisticRegression(C=10, max_iter=1000)),
            "boosting": make_pipeline(words, TruncatedSVD(100, random_state=0), boosting),
        }
    one_hot = OneHotEncoder(handle_unknown="ignore")
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    return {
        "logistic regression": make_pipeline(
            make_column_transformer((scaled, numbers), (one_hot, others)), LogisticRegression(max_iter=1000)
        ),
        "boosting": make_pipeline(make_column_transformer((codes, others), ("passthrough", numbers)), boosting),
    }


def cleanlab_order(name: str, rows: pd.DataFrame, fold: np.ndarray) -> tuple[np.ndarray, float]:
    """The rows in cleanlab's order by one classifier, and the processor time."""
    from cleanlab.rank import get_label_quality_scores

    begun = time.process_time()
    classes, labels = np.unique(rows["target"].to_numpy(str), return_inverse=True)
    x, p = rows.drop(columns="target"), np.zeros((len(rows), len(classes)))
    for k in range(FOLDS):
        fitted = peers(x)[name].fit(x[fold != k], labels[fold != k])
        p[np.ix_(fold == k, fitted.classes_)] = fitted.predict_proba(x[fold == k])
    order = np.argsort(get_label_quality_scores(labels, p), kind="stable")
    return order, time.process_time() - begun


def precision(order: np.ndarray, wrong: np.ndarray) -> float:
    """Average precision of an order."""
    hit = wrong[order]
    return float((np.cumsum(hit) / np.arange(1, len(hit) + 1))[hit].mean())


def labels(given: Any) -> None:
    from sklearn.model_selection import StratifiedKFold

    found = []
    for name in given.names:
        for seed in (None, *range(given.first, given.first + given.seeds)):  # None: once without taking time
            rows = table(name, seed or 0, given.rows)
            if list(rows.drop(columns="target")) == ["text"]:
                rows = rows[: 3 * given.rows // 4]
            test, rows = rows[: len(rows) // 3], rows[len(rows) // 3 :].reset_index(drop=True)
            rng = np.random.default_rng(seed)
            wrong = rng.random(len(rows)) < WRONG
            rows["target"] = changed(rows["target"], wrong, rng)
            fold = np.zeros(len(rows), dtype=np.int64)
            dealt = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(rows, rows["target"])
            for k, (_, inside) in enumerate(dealt):
                fold[inside] = k
            begun = time.process_time()
            ours = tb.suspicious(rows.assign(fold=fold), "target", by="fold")
            took = time.process_time() - begun
            kinds = peers(rows.drop(columns="target"))
            theirs = {n: cleanlab_order(n, rows, fold) for n in (kinds if seed is not None else [*kinds][:1])}
            if seed is None:
                continue
            better = max(theirs, key=lambda n: precision(theirs[n][0], wrong))
            model, top = tb.fit(rows, "target"), round(WRONG * len(rows))
            accuracy = lambda m, test=test: float((m.predict(test) == test["target"].to_numpy()).mean())  # noqa: E731
            gains = [
                accuracy(model.forget(rows.iloc[o[:top]]).recalibrate(rows.iloc[o[top:]])) - accuracy(model)
                for o in (ours.rows, theirs[better][0])
            ]
            right = 1 - wrong[ours.rows[: ours.flagged]].mean() if ours.flagged else 0.0
            line = {
                "name": name, "rows": len(rows), "seed": seed, "precision": precision(ours.rows, wrong),
                "cleanlab": precision(theirs[better][0], wrong), "better": better, "seconds": took,
                "its seconds": theirs[better][1], "both seconds": sum(t for _, t in theirs.values()),
                "gain": gains[0], "its gain": gains[1], "flagged": ours.flagged, "right among flagged": float(right),
                "expected wrong": ours.expected, "wrong": int(wrong.sum()),
            }  # fmt: skip
            found.append(line)
            print({k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()}, flush=True)
    each = pd.DataFrame(found)
    each["ahead"], each["gains more"] = each["precision"] - each["cleanlab"], each["gain"] - each["its gain"]
    by_name = each.drop(columns=["seed", "better"]).groupby("name", sort=False)
    means, errors = by_name.mean(), by_name.std() / np.sqrt(given.seeds)
    print(means.round(4).to_string())
    print("standard errors\n" + errors.round(4).to_string())
    whole = pd.DataFrame({"mean": means.mean(), "error": np.sqrt((errors**2).sum()) / len(errors)})
    print(whole.round(4).to_string())
    share = means[["seconds", "its seconds", "both seconds"]].sum()
    of_better, of_both = (share["seconds"] / share[what] for what in ("its seconds", "both seconds"))
    print(f"of its better classifier's time {of_better:.1%}, of both {of_both:.1%}")
    print(
        "of the better one's, set by set: " + (means["seconds"] / means["its seconds"]).map("{:.0%}".format).to_string()
    )


def sources(given: Any) -> None:
    for name in given.names:
        first = suspected = alarms = others = 0
        for run in range(given.runs):
            rows = table(name, run, given.rows)
            rng = np.random.default_rng(run)
            rows["source"] = rng.integers(0, 10, len(rows)).astype(str)
            clean = tb.sources(rows, "target", by="source", effort="quick")
            alarms += bool(clean.suspects)
            bad = str(rng.integers(0, 10))
            which = (rows["source"] == bad).to_numpy() & (rng.random(len(rows)) < 0.3)
            rows["target"] = changed(rows["target"], which, rng)
            found = tb.sources(rows, "target", by="source", effort="quick")
            first += found.each[0].source == bad
            suspected += bad in found.suspects
            others += bool({*found.suspects} - {bad})
        said = f"ranked first in {first}, suspect in {suspected}, another one too in {others}"
        print(f"{name}: of {given.runs} runs {said}; some suspect where none is bad in {alarms}", flush=True)


def exact(given: Any) -> None:
    for n in given.rows:
        of_size(n)


def of_size(n: int) -> None:
    """The ten models without a source, to the bit and by processor time, beside three ways of training again."""
    rng = np.random.default_rng(0)
    y, site = rng.integers(0, 2, n), rng.integers(0, 10, n)
    letters = pa.array(list("abcdefgh"))
    columns = {f"x{j}": rng.normal(y * 0.3 * j, 1.0) for j in range(4)}
    columns |= {
        f"c{j}": letters.take(pa.array((rng.integers(0, 8, n) + y * (rng.random(n) < 0.2)) % 8)) for j in range(4)
    }
    columns |= {
        "site": pa.array([f"s{i}" for i in range(10)]).take(pa.array(site)),
        "target": pa.array(["no", "yes"]).take(pa.array(y)),
    }
    rows = pa.table(columns)
    del columns, y
    found = tb.sources(rows, "target", by="site", settings={"families": "gaussian"})
    assert found.model.tally is not None
    schema, took = found.model.tally.schema, dict.fromkeys(["subtracted", "memory", "CSV", "fit"], 0.0)

    def timed(what: str, work: Any) -> Any:
        begun = time.process_time()
        out = work()
        took[what] += time.process_time() - begun
        return out

    some = range(10 if n <= 1_000_000 else 3)  # of ten million rows three are counted again
    found.without("s0"), tb.fit(rows[:20_000].drop_columns(["site"]), "target")  # nothing is compiled below
    with tempfile.TemporaryDirectory() as folder:
        for s in range(10 if n <= 1_000_000 else 0):
            csv.write_csv(rows.filter(pa.array(site == s)), f"{folder}/s{s}.csv")
        for s in some:
            less = timed("subtracted", lambda s=s: found.without(f"s{s}"))
            rest = rows.filter(pa.array(site != s)).combine_chunks()
            anew = timed("memory", lambda rest=rest: tb.count(rest, schema=schema).model(found.model.settings))
            assert less.tally == anew.tally and less.tally.digest == anew.tally.digest
            assert np.array_equal(less.predict_proba(rows[:1000]), anew.predict_proba(rows[:1000]))
            if s == 0:
                timed("fit", lambda rest=rest: tb.fit(rest.drop_columns(["site"]), "target", progress=False))
                took["fit"] *= len(some)
            del rest, anew
            if n <= 1_000_000:
                names = [f"{folder}/s{i}.csv" for i in range(10) if i != s]
                files = timed("CSV", lambda names=names: tb.count(names, schema=schema))
                assert less.tally == files and less.tally.digest == files.digest
    each = {what: seconds / len(some) for what, seconds in took.items() if seconds}
    shares = ", ".join(
        f"{each['subtracted'] / seconds:.2%} of {what} ({seconds:.3f} s)"
        for what, seconds in each.items()
        if what != "subtracted"
    )
    print(
        f"{n:,} rows, {len(some)} models equal to the bit: {1e3 * each['subtracted']:.1f} ms each, {shares}", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["labels", "sources", "exact"])
    parser.add_argument("--names", nargs="*", default=list(NAMES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rows", type=int, nargs="*")
    given: Any = parser.parse_args()
    usual: dict[str, Any] = {"labels": 6000, "sources": 4000, "exact": [100_000, 1_000_000, 10_000_000]}
    given.rows = given.rows if given.rows and given.what == "exact" else (given.rows or [usual[given.what]])[0]
    warnings.simplefilter("ignore")
    {"labels": labels, "sources": sources, "exact": exact}[given.what](given)


if __name__ == "__main__":
    main()
