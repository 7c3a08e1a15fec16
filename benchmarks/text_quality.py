"""Accuracy and log loss on the shared text sets, beside scikit-learn's models on the same folds with the same tuning.

    python benchmarks/text_quality.py [set …]

Both sides choose among the same forms: multinomial or complement, amounts or presence, and the same values of α, by
their accuracy on the same five inner folds of the training part; complements know no prior, as in scikit-learn. Outer
folds are the official split where there is one, the ten parts of Ling-Spam, ten folds for SMS, else five. Of the 380
languages every third is taken, and the first fold: scikit-learn's hundred fits of all would take an hour.
"""

from __future__ import annotations

import os
import pathlib
import sys
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold
from sklearn.naive_bayes import ComplementNB, MultinomialNB

import tallybayes as tb
from tallybayes.families import Complement, Multinomial

DATA = pathlib.Path(os.environ.get("TALLYBAYES_DATA", pathlib.Path(__file__).parents[2] / "shared" / "data"))
ALPHAS = (1.0, 0.3, 0.1, 0.03, 0.01)
WORDS, PAIRS, LETTERS = {}, {"ngrams": (1, 2)}, {"chars": (1, 3)}
SETS: dict[str, dict[str, Any]] = {
    "newsgroups20": WORDS,
    "sms_spam": WORDS,
    "ling_spam": WORDS,
    "bbc_news": WORDS,
    "rt_polarity": PAIRS,
    "imdb_20k": PAIRS,
    "trec_questions": PAIRS,
    "udhr_languages": LETTERS,
}
PRIORS = {Multinomial: "counted", Complement: "uniform"}
Scores = tuple[np.ndarray, np.ndarray]  # per row: whether the answer is right, and −log P(right class)


def stratified(target: pd.Series, parts: int, seed: int) -> np.ndarray:
    """A fold for each row."""
    out = np.empty(len(target), dtype=np.int64)
    split = StratifiedKFold(parts, shuffle=True, random_state=seed)
    for k, (_, test) in enumerate(split.split(target, target)):
        out[test] = k
    return out


def folds(name: str, frame: pd.DataFrame) -> np.ndarray:
    """The fold that tests each row; −1 for rows that only ever train."""
    if "split" in frame:
        return np.where(frame["split"] == "test", 0, -1)
    if name == "ling_spam":
        return frame["part"].to_numpy() - 1
    out = stratified(frame["target"], 10 if name == "sms_spam" else 5, 20240607)
    return np.where(out == 0, 0, -1) if name == "udhr_languages" else out


def scores(log: np.ndarray, classes: list[str], target: pd.Series) -> Scores:
    at = {c: i for i, c in enumerate(classes)}
    true = np.array([at[c] for c in target])
    return log.argmax(axis=1) == true, -np.maximum(log[np.arange(len(true)), true], np.log(1e-15))


def ours(train: pd.DataFrame, test: pd.DataFrame, tokeniser: tb.Tokeniser) -> tuple[dict[str, Scores], str]:
    """The default and the tuned model; the settings are those that err least on the inner folds."""
    schema = tb.Schema([tb.Column("text", "text", text=tokeniser)], target="target")
    settings = {
        f"{family.describe()} {alpha}": tb.Settings(
            smoothing=tb.Laplace(alpha), families={"text": family}, prior=PRIORS[type(family)]
        )
        for family in (Multinomial(), Multinomial(presence=True), Complement(), Complement(presence=True))
        for alpha in ALPHAS
    }
    chosen = tb.cross_validate(train, schema, by="inner", settings=settings).best("accuracy")
    tally, rows = tb.count(train, schema), {"text": test["text"]}
    models = {"Laplace 1": tally.model(), "tuned": tally.model(settings[chosen])}
    return {n: scores(m.predict_log_proba(rows), m.classes, test["target"]) for n, m in models.items()}, chosen


def theirs(train: pd.DataFrame, test: pd.DataFrame, form: dict[str, Any]) -> dict[str, Scores]:
    """MultinomialNB and ComplementNB, each tuned, and whichever of the two did better on the inner folds."""
    way = {"analyzer": "char_wb", "ngram_range": form["chars"]} if "chars" in form else {}
    vectors = CountVectorizer(**way) if way else CountVectorizer(ngram_range=form.get("ngrams", (1, 1)))
    counted, tested = vectors.fit_transform(train["text"]), vectors.transform(test["text"])
    inner, out, best = PredefinedSplit(train["inner"]), {}, {}
    for peer in (MultinomialNB, ComplementNB):
        tried = []
        for presence in (False, True):
            x = counted.sign() if presence else counted
            search = GridSearchCV(peer(), {"alpha": ALPHAS}, cv=inner).fit(x, train["target"])
            tried.append((search.best_score_, not presence, search.best_estimator_))
        best[peer.__name__], amounts, model = max(tried, key=lambda t: t[:2])
        log = model.predict_log_proba(tested if amounts else tested.sign())
        out[peer.__name__] = scores(log, list(model.classes_), test["target"])
    return {**out, "better": out[max(best, key=lambda name: best[name])]}


def run(name: str) -> None:
    """One line of a table."""
    frame, form = pd.read_parquet(DATA / f"{name}.parquet"), SETS[name]
    if name == "udhr_languages":
        frame = frame[frame["target"].isin(sorted(set(frame["target"]))[::3])].reset_index(drop=True)
    fold = folds(name, frame)
    found: dict[str, list[Scores]] = {}
    chosen, seconds = [], [0.0, 0.0]
    for k in sorted(set(fold.tolist()) - {-1}):
        train = frame.loc[fold != k, ["text", "target"]].reset_index(drop=True)
        train["inner"] = stratified(train["target"], 5, 1)
        test = frame.loc[fold == k, ["text", "target"]]
        start = time.perf_counter()
        said, form_chosen = ours(train, test, tb.Tokeniser(**form))
        middle = time.perf_counter()
        said.update(theirs(train, test, form))
        seconds = [seconds[0] + middle - start, seconds[1] + time.perf_counter() - middle]
        chosen.append(form_chosen)
        for label, one in said.items():
            found.setdefault(label, []).append(one)
    cells = []
    for results in found.values():
        right, loss = (np.concatenate([r[i] for r in results]) for i in (0, 1))
        cells.append(f"{right.mean():.4f} ({loss.mean():.3f})")
    print(f"| {name} | {sum(len(r[0]) for r in found['tuned']):,} | {' | '.join(cells)} |", flush=True)
    print(
        f"  chosen: {', '.join(sorted(set(chosen)))}; {seconds[0]:.0f} s, scikit-learn {seconds[1]:.0f} s",
        file=sys.stderr,
        flush=True,
    )


def main(names: list[str]) -> None:
    print("| set | test rows | Laplace 1 | tuned | MultinomialNB | ComplementNB | better of the two |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        run(name)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:] or list(SETS))
