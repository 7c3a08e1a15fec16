"""Every public name of tallybayes: on which page of the reference it stands, its members, and its examples.

docs/reference_pages.py writes the reference from it, and tests/test_reference.py holds that no name is without a
docstring and an example. An example stands in the docstring, for `help`; where that of one method goes on from that of
another, it stands in docs/examples_of_names.md under the name, and the reference shows that one.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import tallybayes as tb

EXAMPLES = Path(__file__).resolve().parent / "examples_of_names.md"


@dataclass(frozen=True)
class Group:
    """One page of the reference: its file, its title, what it is about, and the names in their order."""

    file: str
    title: str
    about: str
    names: tuple[str, ...] = ()
    module: str = ""  # or all public names of this module, those first: "sklearn" of tallybayes.sklearn


def _group(file: str, title: str, about: str, names: str = "", module: str = "") -> Group:
    return Group(file, title, about, tuple(names.split()), module)


GROUPS = (
    _group(
        "fit",
        "Fit and count",
        "From rows to counts, and from counts to a model.",
        "fit textbook count count_unlabelled count_grouped group_queries estimate tune Tuned",
    ),
    _group("data", "Data", "What rows are read from, and how they are parted.", "read example split"),
    _group(
        "schema",
        "Schema and columns",
        "Which columns are counted, as what, and how their texts are read.",
        "infer Schema Column PairColumn Side Spelling Tokeniser WordVectors Cells",
    ),
    _group(
        "model",
        "Model",
        "What answers. A model never changes: `update` and `forget` give another one.",
        "Model predict_file",
    ),
    _group(
        "tally", "Tally", "Exact counts: they add, subtract, and are equal to the last bit whatever the order.", "Tally"
    ),
    _group(
        "settings",
        "Settings and smoothing",
        "What is believed beyond the counts. The same tally can be asked under any settings.",
        "Settings Floor Laplace MAP Dirichlet Beta BackOff JelinekMercer AbsoluteDiscount GoodTuring Epsilon "
        "MaximumLikelihood Correction Isotonic MarginScaling Lead Calibrated",
    ),
    _group(
        "families",
        "Families",
        'Which distribution is read out of a column\'s counts: `families={"age": "bins"}` in settings names one.',
        module="families",
    ),
    _group(
        "evaluation",
        "Evaluation",
        "How good answers are on rows that their model has not seen.",
        "cross_validate evaluate Evaluation leave_one_out learning_curve validation_curve FigureCurve compare"
        " Comparison compare_models ModelComparison logistic_twin LogisticTwin Twin Nearest Neighbours",
    ),
    _group(
        "metrics",
        "Metrics",
        "Figures as functions of class numbers, probabilities and weights: `tb.metrics.log_loss(labels, p)`. "
        "`labels` and `p` are those of the first example.",
        module="metrics",
    ),
    _group(
        "explanations",
        "Explanations",
        "Why a row gets its answer, what would change it, and a page about the whole model.",
        "Explanation WhatIf report report_facts",
    ),
    _group(
        "plots",
        "Pictures",
        "What `model.plot` and the `plot` of other results draw. They need matplotlib: `pip install "
        "'tallybayes[plot]'`. In the examples `model` and `today` are those of `tb.Model`.",
        "Plots Display",
        module="plots",
    ),
    _group(
        "labelling",
        "Labelling",
        "Which rows to label next, and when to stop.",
        "Labelling next_to_label relevant_left Left",
    ),
    _group(
        "sets",
        "Prediction sets",
        "Sets of classes that hold the right one as often as asked.",
        "prediction_sets PredictionSets PredictedSets",
    ),
    _group(
        "audit",
        "Audit",
        "Labels that the other rows contradict, and what each source of rows gives or costs.",
        "suspicious Suspicious sources SourceEffects forget_source",
    ),
    _group(
        "windows",
        "Windows, change and watching",
        "Rows that come over time: counts by period, what changed and when, and what a model in use is asked.",
        "Windows change Changes prequential Prequential shift Watch",
    ),
    _group(
        "joint",
        "Joint tables and assumptions",
        "The table that naive Bayes does without, and how far its assumption carries.",
        "JointDistribution check_joint_table hopeless assumptions",
    ),
    _group(
        "files",
        "Files and exports",
        "Models as files, what such a file gives away, and copies for others.",
        "load load_sealed Sealed Reveals SharedCopy",
    ),
    _group(
        "sklearn",
        "scikit-learn",
        "Estimators for pipelines and grid searches: `from tallybayes.sklearn import NaiveBayes`. They need "
        "scikit-learn: `pip install 'tallybayes[sklearn]'`.",
        module="sklearn",
    ),
    _group(
        "datasets",
        "Data to begin with",
        "Tables of the lectures, examples and generators, each with what is true of its rows: `tb.datasets.clinic()`.",
        module="datasets",
    ),
    _group(
        "mlflow",
        "MLflow",
        "Models in MLflow, as the file they are saved in. It needs MLflow: `pip install 'tallybayes[mlflow]'`.",
        module="mlflow",
    ),
    _group(
        "mail", "Mail", "Messages as rows, and a filter over them: `from tallybayes.mail import Filter`.", module="mail"
    ),
    _group(
        "errors",
        "Errors",
        "Everything that is refused on purpose. Each message says what was found and where, then `Hint:` and "
        "the call that mends it.",
        "TallybayesError DataError SchemaError SettingsError CannotForget CannotEstimate ModelFileError "
        "FileError MissingExtra TallybayesWarning OldNameWarning",
    ),
)

ALIASES = {"Twin": "LogisticTwin", "hopeless": "check_joint_table", "Side": "PairColumn", "Lead": "MarginScaling"}
# The classes that people work with: every method that is not listed as an inner one has an example
MAIN = (
    *("Model", "Tally", "Schema", "Column", "Settings", "Windows", "Evaluation", "Explanation", "Labelling", "Sealed"),
    *("Watch", "JointDistribution"),
)
# Methods that other parts of the package call: they are named, and nobody else needs them
INNER = {
    "Model": {"table_of", "scored_batch"},
    "Tally": {"regroup"},
    "Schema": {"joined", "cut_by"},
    "Column": {"counting"},
    "Settings": {"about", "after", "by_column"},
    "Windows": {"wanted", "periods_of", "between"},
    "Explanation": {"shown"},
    "Evaluation": {"known", "spans"},
    "FileError": {"of"},
    "ModelComparison": {"mcnemar_said", "disagree_said"},
    "PredictionSets": {"of", "predicted", "with_rows"},
    "Tokeniser": {"prepared", "flattened", "pieces", "slot", "word", "grams"},
    "mail.FilterSettings": {"from_dict", "of_state"},
    "mail.Verdict": {"by", "too_early"},
    "metrics.Scored": {"of_answers", "ranked", "fewer", "judged"},
}
_SMOOTHING = ("extra_slots", "amounts", "amounts_for", "divisors")  # asked by families


@dataclass(frozen=True)
class Member:
    """A method or property of a public class."""

    name: str
    kind: str  # "method", "class method" or "property"
    function: Any  # what has its signature and its docstring
    home: type  # the class that defines it

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.function.__doc__ or "")


@dataclass(frozen=True)
class Name:
    """A public name: "Model", or "families.Gaussian" where a module is public as a whole."""

    name: str
    value: Any
    page: str

    @property
    def called(self) -> str:
        """How a program says it: tb.Model, tb.families.Gaussian, GaussianNB."""
        module = self.name.partition(".")[0]
        return self.name.partition(".")[2] if module in ("sklearn", "mail") else f"tb.{self.name}"

    @property
    def doc(self) -> str:
        """Its own docstring, never that of a class above it."""
        return inspect.cleandoc(self.value.__doc__ or "")

    @cached_property
    def members(self) -> dict[str, Member]:
        """Public methods and properties that are defined in the package, in the order of the source."""
        if not isinstance(self.value, type):
            return {}
        found: dict[str, Member] = {}
        for home in self.value.__mro__:
            if home.__module__.partition(".")[0] != "tallybayes" or (
                home is not self.value and home in shown_elsewhere()
            ):
                continue
            for name, value in list(vars(home).items()):
                member = _member(name, value, home)
                if member is not None and name not in found:
                    found[name] = member
        return found

    @property
    def inner(self) -> set[str]:
        """Members that other parts of the package call."""
        smoothing = set(_SMOOTHING) if _is_smoothing(self.value) else set()
        return (INNER.get(self.name, set()) | smoothing) & set(self.members)


def _member(name: str, value: Any, home: type) -> Member | None:
    if name.startswith("_"):
        return None
    if isinstance(value, (classmethod, staticmethod)):
        return Member(name, "class method", value.__func__, home)
    if isinstance(value, property):
        return Member(name, "property", value.fget, home)
    if isinstance(value, cached_property):
        return Member(name, "property", value.func, home)
    field = name in vars(home).get("__annotations__", {})  # whose default is a function
    return Member(name, "method", value, home) if inspect.isfunction(value) and not field else None


def _is_smoothing(value: Any) -> bool:
    from tallybayes.families.smoothing import Smoothing

    return isinstance(value, type) and issubclass(value, Smoothing)


@cache
def shown_elsewhere() -> frozenset[type]:
    """Classes whose members are shown once, where they stand themselves, and not again below each subclass."""
    from tallybayes.sklearn.base import TallyClassifier

    return frozenset({tb.families.Family, tb.families.Belief, tb.plots.Display, tb.TallybayesError, TallyClassifier})


def module_names(module: ModuleType) -> list[str]:
    """The public names of a module: `__all__`, or what is defined in it without an underscore."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    own = {n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__ and callable(v)}
    found = [n for n in vars(module) if n in own and not n.startswith("_")]
    return sorted(found, key=lambda n: isinstance(getattr(module, n), type))  # what one calls, then what it rests on


@cache
def groups() -> tuple[Group, ...]:
    """The pages; a public module that has none yet gets one by itself."""
    known = {g.module for g in GROUPS}
    more = {m: _module(m) for m in sorted(tb._MODULES) if m not in known}
    about = {m: (inspect.getdoc(module) or "").partition("\n\n")[0] for m, module in more.items() if module is not None}
    return GROUPS + tuple(Group(m, m.capitalize(), text, (), m) for m, text in about.items())


def _module(name: str) -> ModuleType | None:
    """A module that is public as a whole; None where it needs a package that is not installed."""
    try:
        return getattr(tb, name) if name in tb._MODULES else importlib.import_module(f"tallybayes.{name}")
    except tb.MissingExtra:
        return None


def names() -> Iterator[Name]:
    """Every public name, page by page."""
    for group in groups():
        if not group.module:
            yield from (Name(n, getattr(tb, n), group.file) for n in group.names)
            continue
        module = _module(group.module)
        if module is None:
            continue
        if group.module == "sklearn":
            from tallybayes.sklearn.base import TallyClassifier

            yield Name("sklearn.TallyClassifier", TallyClassifier, group.file)
        for name in sorted(module_names(module), key=lambda n: n not in group.names):
            yield Name(f"{group.module}.{name}", getattr(module, name), group.file)


def without_a_page() -> set[str]:
    """Public names that no page has."""
    return set(tb.__all__) - set(tb._MODULES) - {n.name for n in names()}


@dataclass(frozen=True)
class Example:
    """What docs/examples_of_names.md has below the heading of a name: perhaps a few words, then code."""

    words: str
    code: str
    begins: bool  # whether the examples of a class begin with it


@cache
def examples() -> dict[str, Example]:
    """The examples of docs/examples_of_names.md by name, `>>>` and all."""
    found: dict[str, Example] = {}
    parts = re.split(r"^(#{2,3}) ", EXAMPLES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for level, part in zip(parts[::2], parts[1::2], strict=True):
        name, _, text = part.partition("\n")
        if name in found:
            raise ValueError(f"docs/examples_of_names.md has {name} twice")
        words, *blocks = re.split(r"^```pycon[ \w-]*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
        found[name] = Example(words.strip(), "".join(blocks[::2]).rstrip() + "\n", level == "##")
    return found
