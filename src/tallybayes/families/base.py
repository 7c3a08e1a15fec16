"""The contract of a family.

    A column turns a value into a few additive amounts. Training adds them by class. Predicting adds up what each
    column says.

The amounts are fixed by the column's kind. A family is one way of believing them: `estimate` turns the counts of a
column into a `Belief`, and the belief says, for each row and class, how likely the value is. A new family is one
file with these two classes; engines, merging, forgetting, folds and explanations know nothing of it. What the belief
says as plain numbers is its `form()`, which exports and the one-row scorer read; what it rests on is its `support()`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.canon import printable
from ..base.errors import SettingsError, unknown
from ..base.records import Record, misfit
from ..base.show import Page, Shown
from ..data.kinds import KINDS
from ..data.schema import Column
from ..exact.cells import Cells
from ..exact.counts import Counts
from .forms import Form, NoForm
from .settings import Floor
from .smoothing import Laplace, Smoothing
from .support import ColumnTally, Support


@dataclass(frozen=True)
class Context:
    """What a family may know besides its column's counts: for those who write one.

    >>> context = tb.families.Context("Sky", ("yes", "no"), totals=np.array([3.0, 1.0]))
    >>> context.n_classes, context.smoothing
    (2, Laplace(alpha=1.0))
    """

    column: str
    classes: tuple[str, ...]
    totals: Floats  # rows (or weight) of each class
    smoothing: Smoothing = field(default_factory=Laplace)
    values: tuple[str, ...] | None = None  # the declared values of a category
    cells: Cells | None = None
    width: int | None = None  # how many positions a matrix has, seen or not
    predictive: bool = False
    reserve: bool = False  # keep a slot for values never seen
    floor: Floor = field(default_factory=Floor)
    vector: bool = False  # the column is a vector
    largest_deviation: Callable[[], float] = lambda: 0.0  # over all Gaussian columns of the model
    like: str = ""  # the kind of the column, or that which its kind is like

    @property
    def n_classes(self) -> int:
        """How many classes."""
        return len(self.classes)

    @property
    def rows(self) -> float:
        """How many rows in all."""
        return float(self.totals.sum())

    def is_predictive(self, own: bool | None) -> bool:
        """Whether parameters are averaged over: a family's own wish, or the settings'."""
        return self.predictive if own is None else own

    def probabilities(self, n: Floats, slots: Sequence[str]) -> Floats:
        """P(slot given class) by the column's smoothing."""
        return self.smoothing.probabilities(n, slots, self.classes, self.rows)


@dataclass(frozen=True)
class Term:
    """One line of an explanation: what was seen, and its log-likelihood under each class.

    >>> tb.families.Term("sunny", np.log([0.75, 0.5])).label
    'sunny'
    """

    label: str
    parts: Floats
    note: str = ""  # "missing" or "never seen" where it is no evidence
    corrected: Floats | None = None  # what a correction has added to what was counted; `parts` have it in them


@dataclass(frozen=True)
class Linear:
    """A column's part as a product: parts = weights · (features − centre) + offset, up to what all classes share.

    >>> model = tb.textbook({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> model.beliefs["Sky"].linear().names
    ['rainy', 'sunny']
    """

    names: list[str]
    weights: Floats  # classes × features
    offset: Floats  # classes
    centre: Floats  # features
    features: Callable[[Any], Floats]  # block → rows × features


_MOST_ROWS = 40  # of a table that is printed
WORST = -50.0  # what a row that was held out costs at most, in nats, such as the only one of its class


@dataclass(frozen=True, repr=False)
class Table(Shown):
    """Numbers for a person: P(row given class) or parameters, one column per class; `table[row, class]` is one of them.

    >>> model = tb.textbook({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> table = model.table("Sky")
    >>> table["sunny", "yes"], table.rows
    (0.75, ['rainy', 'sunny'])
    """

    title: str
    rows: list[str]
    values: Floats  # rows × classes
    unit: str = ""  # what a row is, where their number says something: "values", "bins", "words"
    classes: tuple[Any, ...] = ()
    empty: tuple[str, ...] = ()  # rows that nothing was counted in: what smoothing says of them is no evidence

    def __getitem__(self, at: tuple[Any, Any]) -> float:
        """The number in a row and a class: table["severe", "Flu"]."""
        row, label = at
        names = [str(c) for c in self.classes]
        if str(row) not in self.rows or str(label) not in names:
            what, name, known = ("class", label, names) if str(row) in self.rows else ("row", row, self.rows)
            raise unknown(SettingsError, f"the table has no {what} {name!r}", name, known)
        return float(self.values[self.rows.index(str(row)), names.index(str(label))])

    def _page(self) -> Page:
        lines = [[self.title, *(printable(c, 20) for c in self.classes)]]
        for name, figures in zip(self.rows[:_MOST_ROWS], self.values, strict=False):
            lines.append([printable(name, 40), *(f"{v:.6g}" for v in figures[: len(self.classes)])])
        hidden = len(self.rows) - _MOST_ROWS
        return Page("", [*lines, [f"… {hidden:,} more"]] if hidden > 0 else lines)


class Belief(Record, ABC):
    """What a family believes about one column after estimating.

    >>> model = tb.textbook({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> belief = model.beliefs["Sky"]
    >>> isinstance(belief, tb.families.Belief), belief.parameters()
    (True, (4, 2))
    """

    # What a sealed file may claim: the kinds of columns whose blocks it can be asked of, and the size of each array
    # along its axes, "classes", the length of a field (one more: "starts+1"), or any word for one size everywhere.
    asked_of: ClassVar[tuple[str, ...]] = ()
    axes: ClassVar[Mapping[str, str]] = {}

    def misfit(self, column: Column, n_classes: int) -> str | None:
        """Why it cannot be what is believed of a column, as far as types, kinds and sizes tell; None if it can."""
        if column.like not in self.asked_of:
            return f"a {type(self).__name__} of the {column.kind} {column.name!r:.60}"
        return misfit(self) or self._ill_sized({"classes": n_classes})

    def _ill_sized(self, known: dict[str, int]) -> str | None:
        for name, said in self.axes.items():
            value, axes = getattr(self, name), said.split()
            shape = (len(value),) if isinstance(value, tuple) else np.shape(value)
            wanted = [self._size(axis, known) for axis in axes]
            known |= {axis: n for axis, n, size in zip(axes, shape, wanted, strict=False) if size is None}
            fits = len(shape) == len(axes) and all(size in (None, n) for n, size in zip(shape, wanted, strict=True))
            if value is not None and not fits:
                return f"{name} of a {type(self).__name__} of {'×'.join(map(str, shape))} numbers, which are {said}"
        return None

    def _size(self, axis: str, known: Mapping[str, int]) -> int | None:
        if axis in known:
            return known[axis]
        field_name, _, more = axis.partition("+")
        if not hasattr(self, field_name):
            return None
        return len(getattr(self, field_name)) + (
            int(more) if more.isdigit() else int(getattr(self, more)) if more else 0
        )

    @property
    def density(self) -> bool:
        """Whether exp(parts + base) is a probability or a density of the value."""
        return True

    @property
    def adds_up(self) -> bool:
        """Whether the probabilities of a class sum to one: with a zero made ε they are a little more."""
        return True

    @abstractmethod
    def parts(self, block: Any) -> Floats:
        """log P(value given class), rows × classes; 0 where the value is missing."""

    def sample(self, labels: Ints, rng: np.random.Generator) -> Any:
        """A value for each row, drawn from the distribution of the row's class; what has no `density` has none."""
        raise SettingsError(
            f"a {type(self).__name__} is no distribution, and has no values to draw",
            hint="model.generative is the model beneath that has: model.generative.sample(n).",
        )

    @abstractmethod
    def parameters(self) -> tuple[int, int]:
        """How many numbers describe the belief, raw and free."""

    @abstractmethod
    def table(self) -> Table:
        """The belief's numbers, for display."""

    def base(self, block: Any) -> Floats:
        """The part of log P(value given class) that is the same for every class and left out of `parts`."""
        return np.zeros(block.rows)

    def terms(self, block: Any, row: int) -> list[Term]:
        """The parts of one row, as finely as they can be told apart; their sum is `parts`."""
        parts = self.parts(block.take(np.array([row])))[0]
        text = block.text(row)
        return [Term(text if text is not None else "", parts, "missing" if text is None else self.note(block, row))]

    @property
    def by_counts(self) -> Belief:
        """What the counts alone say: itself, or what a correction was put upon."""
        return self

    def bars(self, low: float, high: float) -> tuple[Floats, Floats] | None:
        """Edges from low to high and densities between them, edges × classes, where a picture should be of bars."""
        return None

    def note(self, block: Any, row: int) -> str:
        """Why a value that is there may be no evidence; empty if it is."""
        return ""

    def linear(self) -> Linear | None:
        """The linear view, or None if the parts are not linear in any features."""
        return None

    def form(self) -> Form:
        """What the belief says, as plain numbers without the counts behind them; by default that it cannot."""
        return NoForm(
            f"believed by a {type(self).__name__}, which no export knows",
            "give the belief a form(), or take one of tallybayes' own families for this column.",
        )

    def sealed(self) -> Belief:
        """The same belief with no counts in it: itself, or a plain one made of its form."""
        from .plain import TYPES, of_form

        return self if type(self) in TYPES.values() else of_form(self.form())

    def support(self, counted: ColumnTally, block: Any) -> Sequence[Support | None]:
        """What each term of a row (a block of one) rests on; one for all: so many rows have a value, no interval."""
        name = next((s for s in ("moments", "values", "rows") if s in counted.counts.sheets), None)
        if name is None:
            return [None]
        n = counted.table(name).sum(axis=0)
        return [Support(n, n)]


class Family(ABC):
    """One way of believing a column's counts. Subclasses are frozen dataclasses; their fields are its options.

    >>> tb.families.Bins("frequency", 4).describe(), tb.families.Bins().reads("number")
    ('bins (method=frequency, bins=4)', True)
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]

    def reads(self, kind: str) -> bool:
        """Whether it believes columns of this kind, or of the kind that this one is like."""
        return kind in self.kinds or KINDS[kind].like in self.kinds

    def takes(self, column: Column) -> bool:
        """Whether it is meant for this column where it is named for all columns at once."""
        return self.reads(column.kind)

    @abstractmethod
    def estimate(self, counts: Counts, context: Context) -> Belief:
        """The belief that these counts support."""

    def leave_one_out(self, h: Any, counts: Counts, context: Context) -> tuple[Floats, Floats] | None:
        """For a number column, what each cell of the histogram says, as counted and with one of its rows left out.

        Up to what all classes share; None (the default) keeps the family out of the automatic choice.
        """
        return None

    def one_more(
        self, counts: Counts, context: Context, more: Any, labels: Ints, weights: Floats, asked: Any
    ) -> Floats | None:
        """What the values of `asked` say if one row of `more` were counted too, each by itself, under its label.

        Rows of `more` × rows asked × classes, as `estimate` and `parts` have it; None (the default) where no way is
        known that is shorter than asking them.
        """
        return None

    def held_out_score(self, h: Any, context: Context) -> float | None:
        """Σ over rows of log P(class given value), estimated anew without them.

        For a family that looks at the labels before it counts, which `leave_one_out` cannot undo; else None.
        """
        return None

    def for_drawn(self, belief: Belief, column: Column) -> Family:
        """The family that comes back to this belief the more rows are drawn from it and counted; by default itself."""
        return self

    def tries(self, h: Any) -> bool:
        """Whether `auto` tries the family, as it is registered, on a number column with this histogram."""
        return False

    def describe(self) -> str:
        """The family with the options that differ from its defaults."""
        default = type(self)()
        changed = [
            f"{f.name}={getattr(self, f.name)}"
            for f in fields(self)  # type: ignore[arg-type]
            if getattr(self, f.name) != getattr(default, f.name)
        ]
        return self.name + (f" ({', '.join(changed)})" if changed else "")


_REGISTRY: dict[str, Family] = {}


def register(name: str, family: Family) -> None:
    """Let `families={column: name}` mean this family.

    >>> tb.families.register("student", tb.families.Gaussian(predictive=True))  # as it comes
    >>> tb.families.named("student").predictive
    True
    """
    _REGISTRY[name] = family


def named(family: str | Family) -> Family:
    """The family of this name, or the family itself; SettingsError names the nearest where there is none.

    >>> tb.families.named("bins").describe()
    'bins'
    """
    if isinstance(family, Family):
        return family
    if not isinstance(family, str) or family not in _REGISTRY:
        raise unknown(SettingsError, f"there is no family {family!r}", family, sorted(_REGISTRY))
    return _REGISTRY[family]


def family_names() -> list[str]:
    """The names that `families={column: name}` knows, in order.

    >>> tb.families.family_names()[:4]
    ['auto', 'bernoulli', 'bins', 'blend']
    """
    return sorted(_REGISTRY)


def registered() -> list[Family]:
    """The registered families, in the order of their names."""
    return [_REGISTRY[name] for name in family_names()]
