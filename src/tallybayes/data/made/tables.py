"""The tables that five university lectures work out by hand, with the numbers that come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .dataset import Dataset

_DAY = ("Sky", "Temp", "Humid", "Wind", "Play")


def _of_lines(names: Sequence[str], lines: Sequence[str]) -> dict[str, list[Any]]:
    return {name: list(column) for name, column in zip(names, zip(*map(str.split, lines), strict=True), strict=True)}


def _asked(names: Sequence[str], line: str) -> dict[str, str]:
    return dict(zip(names, line.split(), strict=False))


def clinic() -> Dataset:
    """Five patients, with flu or a cold.

    >>> data = tb.datasets.clinic()
    >>> data["Diagnosis"], data.truth["laplace 1"]["Ann"]
    (['Flu', 'Cold', 'Flu', 'Cold', 'Flu'], {'Cold': 0.75, 'Flu': 0.25})
    """
    names = ("Headache", "Sore", "Temperature", "Cough", "Diagnosis")
    lines = (
        "severe mild high yes Flu", "no severe normal yes Cold", "mild mild normal yes Flu", "mild no normal no Cold",
        "severe severe normal yes Flu",
    )  # fmt: skip
    truth = {
        "asked": {"Ann": _asked(names, "mild severe normal no"), "Bob": _asked(names, "severe mild high no")},
        "laplace 1": {"Ann": {"Cold": 3 / 4, "Flu": 1 / 4}, "Bob": {"Cold": 1 / 7, "Flu": 6 / 7}},
        "joint without smoothing": {"Ann": {"Cold": 1 / 20, "Flu": 0.0}, "Bob": {"Cold": 0.0, "Flu": 0.0}},
    }
    about = "Five patients of a clinic: is it flu or a cold? From the lectures."
    return Dataset(_of_lines(names, lines), name="clinic", target="Diagnosis", about=about, truth=truth)


def play(wide: bool = False) -> Dataset:
    """Four days, and whether we played outside; `wide` adds three columns, of which the wind never changes.

    >>> tb.datasets.play().truth["laplace 1"]
    {'today': {'no': 0.2783964365, 'yes': 0.7216035635}}
    """
    names = ("Sky", "Temp", "Humid", "Play")
    lines = ("sunny warm normal yes", "sunny warm high yes", "rainy cold high no", "sunny warm high yes")
    columns = _of_lines(names, lines)
    if wide:
        columns["Wind"] = ["strong"] * 4
        columns["Water"] = ["warm", "warm", "warm", "cool"]
        columns["Forecast"] = ["same", "same", "change", "change"]
    truth = {
        "asked": {"today": _asked(names, "rainy warm normal")},
        "laplace 1": {"today": {"no": 0.2783964365, "yes": 0.7216035635}},
    }
    about = "Four days: do we play outside? From the lectures."
    return Dataset(columns, name="play", target="Play", about=about, truth={} if wide else truth)


def tennis() -> Dataset:
    """Fourteen days of tennis, the best-known table of all.

    >>> tb.datasets.tennis().rows, tb.datasets.tennis().truth["asked"]["windy"]
    (14, {'Outlook': 'sunny', 'Temperature': 'cool', 'Humidity': 'high', 'Wind': 'strong'})
    """
    names = ("Outlook", "Temperature", "Humidity", "Wind", "Play")
    lines = (
        "sunny hot high weak no", "sunny hot high strong no", "overcast hot high weak yes", "rain mild high weak yes",
        "rain cool normal weak yes", "rain cool normal strong no", "overcast cool normal strong yes",
        "sunny mild high weak no", "sunny cool normal weak yes", "rain mild normal weak yes",
        "sunny mild normal strong yes", "overcast mild high strong yes", "overcast hot normal weak yes",
        "rain mild high strong no",
    )  # fmt: skip
    truth = {
        "asked": {"windy": _asked(names, "sunny cool high strong")},
        "maximum likelihood": {"windy": {"no": 0.7954173486, "yes": 0.2045826514}},
        "laplace 1": {"windy": {"no": 3025 / 4201, "yes": 1176 / 4201}},
    }
    about = "Fourteen days: is tennis played? From the lectures."
    return Dataset(_of_lines(names, lines), name="tennis", target="Play", about=about, truth=truth)


def eight_days() -> Dataset:
    """The first thought experiment: eight days alike on which we played, and one other.

    >>> tb.datasets.eight_days()["Play"].count("yes")
    8
    """
    lines = [*["sunny cool normal false yes"] * 8, "overcast cool high true no"]
    truth = {"asked": {"today": _asked(_DAY, "sunny cool normal false")}, "answer": {"today": "yes"}}
    about = "Eight days alike, and one other. The first thought experiment of the lectures."
    return Dataset(_of_lines(_DAY, lines), name="eight_days", target="Play", about=about, truth=truth)


def same_weather() -> Dataset:
    """The second thought experiment: the same weather six times, three times with each label.

    >>> tb.datasets.same_weather().truth["laplace 1"]["today"]["yes"]
    0.5871559633
    """
    lines = (
        *["rainy hot normal true yes", "rainy hot normal true no"] * 3, "sunny cool normal false yes",
        "sunny mild high false no", "overcast cool high true no",
    )  # fmt: skip
    truth = {
        "asked": {"today": _asked(_DAY, "rainy hot normal true")},
        "maximum likelihood": {"today": {"no": 0.3386243386, "yes": 0.6613756614}},
        "laplace 1": {"today": {"no": 0.4128440367, "yes": 0.5871559633}},
    }
    about = "The same weather with both labels. The second thought experiment of the lectures."
    return Dataset(_of_lines(_DAY, lines), name="same_weather", target="Play", about=about, truth=truth)


def labels() -> Dataset:
    """The third thought experiment: labels alone, so that the prior decides.

    >>> tb.datasets.labels().truth["laplace 1"]
    {'anything': {'no': 0.2, 'yes': 0.8}}
    """
    truth = {"asked": {"anything": {"Sky": "sunny"}}, "laplace 1": {"anything": {"no": 0.2, "yes": 0.8}}}
    about = "Labels and no columns at all. The third thought experiment of the lectures."
    return Dataset({"Play": ["yes"] * 4 + ["no"]}, name="labels", target="Play", about=about, truth=truth)


def urn() -> Dataset:
    """Three draws from an urn: how far smoothing pulls 2/3 towards one half.

    >>> tb.datasets.urn().truth["P(red)"][1]
    0.6
    """
    columns: dict[str, list[Any]] = {"ball": ["red", "red", "blue"], "urn": ["u", "u", "u"]}
    truth = {"P(red)": {0: 2 / 3, 1: 3 / 5, 100: 102 / 203}}  # by Laplace's alpha
    return Dataset(columns, name="urn", target="urn", about="Three draws from an urn. From the lectures.", truth=truth)


def heights() -> Dataset:
    """Six heights of two groups: the smallest table for a Gaussian.

    >>> tb.datasets.heights().truth["mean"]
    {'a': 160.0, 'b': 180.0}
    """
    columns: dict[str, list[Any]] = {
        "cm": [150.0, 160.0, 170.0, 170.0, 180.0, 190.0],
        "who": ["a", "a", "a", "b", "b", "b"],
    }
    truth = {"mean": {"a": 160.0, "b": 180.0}, "variance, divided by n": 200 / 3, "divided by n - 1": 100.0}
    return Dataset(
        columns, name="heights", target="who", about="Six heights of two groups. From the lectures.", truth=truth
    )


def sports() -> Dataset:
    """Six bags of words about sports or politics: presence, frequency and count levels tell them apart differently.

    >>> tb.datasets.sports()["words"][0]
    ['ball', 'ball', 'goal']
    """
    words = ["ball ball goal", "ball win", "ball", "vote win", "vote vote vote", "law"]
    columns: dict[str, list[Any]] = {
        "words": [text.split() for text in words],
        "topic": ["sports"] * 3 + ["politics"] * 3,
    }
    truth = {
        "P(ball given sports)": {"bernoulli": 4 / 5, "multinomial": 5 / 11},
        "levels of ball in sports": [1 / 7, 3 / 7, 2 / 7, 1 / 7],
    }
    about = "Six bags of words: sports or politics? From the lectures."
    return Dataset(columns, name="sports", target="topic", about=about, truth=truth)


def messages() -> Dataset:
    """Six messages as words, a share of capitals, a count of dollars and a boolean: four families in one model.

    >>> sorted(tb.datasets.messages())
    ['caps', 'dollars', 'known', 'label', 'words']
    """
    columns: dict[str, list[Any]] = {
        "words": [
            text.split() for text in ("win cash", "cash cash now", "win now", "lunch now", "report", "lunch report")
        ],
        "caps": [0.61, 0.45, 0.52, 0.05, 0.11, 0.08],
        "dollars": [3, 5, 1, 0, 0, 1],
        "known": [False, False, True, True, True, False],
        "label": ["spam", "spam", "spam", "ham", "ham", "ham"],
    }
    about = "Six messages as words, capitals, dollars and a known sender. From the lectures."
    return Dataset(columns, name="messages", target="label", about=about)


def spam_words() -> Dataset:
    """The spam lecture's two columns of word probabilities: a model to be written down, not counted.

    >>> data = tb.datasets.spam_words()
    >>> data.truth["message"][:3], data.truth["P(spam)"]
    (['Gary', 'would', 'you'], 0.9867)
    """
    columns: dict[str, list[Any]] = {
        "word": ["Gary", "would", "you", "like", "to", "lose", "weight", "while", "sleep"],
        "spam": [0.00002, 0.00069, 0.00881, 0.00086, 0.01517, 0.00008, 0.00016, 0.00027, 0.00006],
        "not": [0.00021, 0.00084, 0.00304, 0.00083, 0.01339, 0.00002, 0.00002, 0.00027, 0.00001],
    }
    truth = {
        "prior": {"spam": 0.33333, "not": 0.66666},
        "message": ["Gary", "would", "you", "like", "to", "lose", "weight", "while", "you", "sleep"],
        "P(spam)": 0.9867,
    }
    about = "P(word given spam) and P(word given not), for tb.Model.written. From the lectures."
    return Dataset(columns, name="spam_words", target=None, about=about, truth=truth)


def abc() -> Dataset:
    """The lecture's joint table over A, B and C: a share for each of eight cells.

    >>> tb.datasets.abc().truth["P(A=1 given B=1)"]
    0.7
    """
    shares = [0.30, 0.05, 0.10, 0.05, 0.05, 0.10, 0.25, 0.10]
    bits = {name: [i >> place & 1 for i in range(8)] for name, place in (("A", 2), ("B", 1), ("C", 0))}
    truth = {"P(A=1, B=1, C=0)": 0.25, "P(A=1)": 0.5, "P(A=1 given B=1)": 0.7}
    about = "A joint table over three yes-or-no columns, a share for each cell. From the lectures."
    return Dataset({**bits, "share": shares}, name="abc", target=None, about=about, truth=truth)


def census() -> Dataset:
    """Shares of 48,842 adults by sex, long hours and income, as the lecture prints them.

    >>> tb.datasets.census().truth["P(rich)"]
    0.2393
    """
    shares: Mapping[tuple[str, str, str], float] = {
        ("Female", "no", "poor"): 0.253122, ("Female", "no", "rich"): 0.0245895,
        ("Female", "yes", "poor"): 0.0421768, ("Female", "yes", "rich"): 0.0116293,
        ("Male", "no", "poor"): 0.331313, ("Male", "no", "rich"): 0.0971295,
        ("Male", "yes", "poor"): 0.134106, ("Male", "yes", "rich"): 0.105933,
    }  # fmt: skip
    names = ("sex", "long_hours", "income")
    columns: dict[str, list[Any]] = {name: [cell[i] for cell in shares] for i, name in enumerate(names)}
    truth = {"P(rich)": 0.2393, "P(rich given Female)": 0.1093, "P(rich given Male, long hours)": 0.4413}
    about = "Shares of adults by sex, whether they work more than 40.5 hours a week, and income. From the lectures."
    return Dataset({**columns, "share": list(shares.values())}, name="census", target=None, about=about, truth=truth)
