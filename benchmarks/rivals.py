"""Others that take a table of numbers, categories and gaps as it is, each with its own defaults and one thread.

None of them is a dependency of the library; they are imported when `--rivals` asks for them. Each gets categories and
missing values in the way it wants them: EBM the columns as they come, LightGBM and scikit-learn's boosting columns of
type category, CatBoost the names of the categories and a word where one is missing.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

INSTALL = 'python -m pip install -e ".[rivals]"'
NEEDED = {"EBM": "interpret", "CatBoost": "catboost", "LightGBM": "lightgbm"}
MOST_CODES = 250  # of one category that scikit-learn's boosting can take
MISSING = "(missing)"

Fit = Callable[[pd.DataFrame, str], Any]


def needed(names: tuple[str, ...] = tuple(NEEDED)) -> None:
    """Stop with the command that installs what is absent."""
    absent = [name for name in names if importlib.util.find_spec(NEEDED[name]) is None]
    if absent:
        raise SystemExit(f"--rivals needs {', '.join(absent)}, not installed here: {INSTALL}")


@dataclass(frozen=True)
class Fitted:
    """A classifier behind what makes of a table what it wants."""

    classifier: Any
    made: Callable[[pd.DataFrame], Any]

    @property
    def classes_(self) -> list[str]:
        """The classes in the order of the probabilities."""
        return [str(c) for c in np.ravel(self.classifier.classes_)]

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """The chances of every class."""
        with threadpool_limits(1):
            return np.asarray(self.classifier.predict_proba(self.made(frame)), dtype=float)


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _renamed(frame: pd.DataFrame) -> pd.DataFrame:
    """With names that every library takes."""
    return frame.set_axis([f"c{i}" for i in range(frame.shape[1])], axis=1)


def _texts(column: pd.Series) -> pd.Series:
    """A category's values as texts, None where one is missing."""
    out = column.astype(object)
    return out.where(out.isna(), out.map(str)).where(out.notna(), None)


def _as_categories(train: pd.DataFrame, most: int | None = None) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Columns of type category with the values of the training rows (the most frequent `most`); others are missing."""
    known = {}
    for name in train:
        if not _is_number(train[name]):
            values = _texts(train[name]).dropna().value_counts(sort=True).index
            known[name] = sorted(values[:most])

    def made(frame: pd.DataFrame) -> pd.DataFrame:
        columns = {
            name: pd.Categorical(_texts(frame[name]), categories=known[name])
            if name in known
            else frame[name].to_numpy(dtype=float, na_value=np.nan)
            for name in frame
        }
        return _renamed(pd.DataFrame(columns, index=frame.index))

    return made


def _with_words(train: pd.DataFrame) -> tuple[Callable[[pd.DataFrame], pd.DataFrame], list[str]]:
    """Categories as texts, a word where one is missing, numbers as floats; and which columns are categories."""
    numbers = {name for name in train if _is_number(train[name])}

    def made(frame: pd.DataFrame) -> pd.DataFrame:
        columns = {
            name: frame[name].to_numpy(dtype=float, na_value=np.nan)
            if name in numbers
            else _texts(frame[name]).fillna(MISSING)
            for name in frame
        }
        return _renamed(pd.DataFrame(columns, index=frame.index))

    return made, [f"c{i}" for i, name in enumerate(train) if name not in numbers]


def _classes(frame: pd.DataFrame, target: str) -> tuple[pd.DataFrame, np.ndarray]:
    return frame.drop(columns=target), frame[target].astype(str).to_numpy(dtype=object)


def ebm(frame: pd.DataFrame, target: str) -> Fitted:
    """The explainable boosting machine of interpret: columns, then pairs of them, by rounds of boosting."""
    from interpret.glassbox import ExplainableBoostingClassifier

    x, y = _classes(frame, target)
    return Fitted(ExplainableBoostingClassifier(n_jobs=1, random_state=0).fit(x, y), lambda rows: rows)


def catboost(frame: pd.DataFrame, target: str) -> Fitted:
    """Ordered boosting with categories as statistics of the target."""
    from catboost import CatBoostClassifier

    x, y = _classes(frame, target)
    made, categories = _with_words(x)
    classifier = CatBoostClassifier(
        thread_count=1, random_seed=0, verbose=False, allow_writing_files=False, cat_features=categories
    )
    return Fitted(classifier.fit(made(x), y), made)


def lightgbm(frame: pd.DataFrame, target: str) -> Fitted:
    """Boosting by leaves with categories split into sets."""
    from lightgbm import LGBMClassifier

    x, y = _classes(frame, target)
    made = _as_categories(x)
    return Fitted(LGBMClassifier(n_jobs=1, random_state=0, verbose=-1).fit(made(x), y), made)


def boosting(frame: pd.DataFrame, target: str) -> Fitted:
    """scikit-learn's histogram boosting."""
    x, y = _classes(frame, target)
    made = _as_categories(x, MOST_CODES)
    classifier = HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype")
    with threadpool_limits(1):
        return Fitted(classifier.fit(made(x), y), made)


RIVALS: dict[str, Fit] = {"EBM": ebm, "CatBoost": catboost, "LightGBM": lightgbm, "HistGradientBoosting": boosting}
