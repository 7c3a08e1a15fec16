"""Raw text: to a tally, to answers, beside polars which only counts, and one message by itself; as in `items`."""

from __future__ import annotations

import pathlib
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from items import FOLDER, Case, Item, texts
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import tallybayes as tb

SCHEMA = tb.Schema([tb.Column("text", "text")], target="target")


@cache
def corpus(scale: float) -> tuple[pd.DataFrame, pd.DataFrame, Any]:
    """Messages to learn from, others to answer about, and the peer that has learnt from the first."""
    given, target = texts(max(int(8000 * scale), 200))
    frame = pd.DataFrame({"text": given, "target": target})
    train, test = frame[np.arange(len(frame)) % 4 > 0], frame[np.arange(len(frame)) % 4 == 0]
    return train, test, make_pipeline(CountVectorizer(), MultinomialNB()).fit(train["text"], train["target"])


def to_tally(scale: float) -> Case:
    train, test, peer = corpus(scale)

    def agree() -> bool:
        ours = tb.count(train, SCHEMA).model().predict(test)
        return bool(np.mean(ours == peer.predict(test["text"])) > 0.99)

    data = np.frombuffer(pa.array(train["text"].tolist(), pa.large_string()).buffers()[2], dtype=np.uint8)
    return Case(
        lambda: tb.count(train, SCHEMA),
        lambda: MultinomialNB().fit(CountVectorizer().fit_transform(train["text"]), train["target"]),
        agree,
        [data],
        lambda: tb.count(train, SCHEMA),
    )


def to_answers(scale: float) -> Case:
    train, test, peer = corpus(scale)
    model = tb.count(train, SCHEMA).model()
    return Case(
        lambda: model.predict(test),
        lambda: peer.predict(test["text"]),
        lambda: bool(np.mean(model.predict(test) == peer.predict(test["text"])) > 0.99),
    )


def beside_polars(scale: float) -> Case:
    """Polars counts the same tokens by class, and makes no model of them."""
    train, _, _ = corpus(scale)
    frame = pl.DataFrame({"text": train["text"].tolist(), "target": train["target"].tolist()})
    words = pl.col("text").str.to_lowercase().str.extract_all(r"\b\w\w+\b")

    def polars() -> int:
        return frame.select("target", word=words).explode("word").group_by("target", "word").len().height

    def agree() -> bool:
        entries = len(tb.count(train, SCHEMA).columns["text"].sheets["words"])
        return abs(entries / polars() - 1) < 0.01  # its word characters are not quite Python's, and no word is a row

    return Case(lambda: tb.count(train, SCHEMA), polars, agree)


def one_message(scale: float) -> Case:
    """One SMS, from a dict to the answer."""
    if (path := pathlib.Path(FOLDER) / "sms_spam.parquet").exists():
        frame = pq.read_table(path).to_pandas()
    else:
        long, target = texts(600)
        frame = pd.DataFrame({"text": [t[:150] for t in long], "target": target})
    peer = make_pipeline(CountVectorizer(), MultinomialNB()).fit(frame["text"], frame["target"])
    model = tb.count(frame, SCHEMA).model()
    text = frame["text"][2]
    return Case(
        lambda: model.predict({"text": text}),
        lambda: peer.predict([text]),
        lambda: model.predict({"text": text}).tolist() == peer.predict([text]).tolist(),
    )


TEXT_ITEMS = [
    Item("raw text to tally", 40, "CountVectorizer + MultinomialNB", to_tally),
    Item("raw text to answers", 30, "CountVectorizer + MultinomialNB", to_answers),
    Item("raw text to tally, beside counting alone", 5, "polars, no model", beside_polars),
    Item("one SMS", 5, "CountVectorizer + MultinomialNB", one_message),
]
