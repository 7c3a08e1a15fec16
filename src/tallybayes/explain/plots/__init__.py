"""Pictures, in the manner of scikit-learn's displays: an object with `.plot(ax)`, `.figure_` and `.ax_`.

    model.plot.waterfall(row), .nomogram()               how an answer came about; the whole model, to be read off
    model.plot.column(name), .words(name)                what was counted and is believed; the most telling words
    model.plot.regions(x, y), .densities(name)           the answers over a plane of numbers, or along one
    model.plot.beta(name, value), .dirichlet(name, c)    what is believed of probabilities, before counting and after
    tb.plots.terminal(thing)                             the same made of characters, without matplotlib

Begin with `paper`, which has the look of them all. matplotlib is imported when something is drawn, and not before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...base.errors import SettingsError
from .beliefs import BetaDisplay, DirichletDisplay
from .characters import terminal
from .columns import CategoryDisplay, NumberDisplay, VectorDisplay, WordsDisplay, column_display, register_picture
from .evidence import NomogramDisplay, Scale, WaterfallDisplay, nomogram
from .lessons import DensitiesDisplay, JointTableDisplay, RegionsDisplay
from .scores import (
    ConfusionDisplay,
    Display,
    FigureCurveDisplay,
    PeriodsDisplay,
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    RocDisplay,
)

if TYPE_CHECKING:
    from ...model.model import Model

__all__ = [
    "BetaDisplay",
    "CategoryDisplay",
    "ConfusionDisplay",
    "DensitiesDisplay",
    "DirichletDisplay",
    "Display",
    "FigureCurveDisplay",
    "JointTableDisplay",
    "NomogramDisplay",
    "NumberDisplay",
    "PeriodsDisplay",
    "Plots",
    "PrecisionRecallDisplay",
    "RegionsDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "Scale",
    "VectorDisplay",
    "WaterfallDisplay",
    "WordsDisplay",
    "register_picture",
    "terminal",
]


class Plots:
    """The pictures of one model: `model.plot`."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def waterfall(self, row: Any, label: Any = None, against: Any = None, *, number: int = 0, ax: Any = None) -> Any:
        """How the log-odds of a class (default: the likeliest) against another (default: the next) add up."""
        return WaterfallDisplay(self._model.explain(row, number).odds(label, against)).plot(ax)

    def nomogram(self, label: Any = None, against: Any = None, *, most: int = 16, ax: Any = None) -> Any:
        """Scales for the `most` columns that say most; of two classes, or of one against all classes on average."""
        return nomogram(self._model, label, against, most).plot(ax)

    def column(self, name: str, *, ax: Any = None) -> Any:
        """A column by class: histogram or shares that were counted, and what is believed."""
        display: Any = column_display(self._model, name)
        return display.plot(ax)

    def words(self, column: str | None = None, *, top: int = 8, ax: Any = None) -> Any:
        """The most telling words of each class; `column` may be left out where there is one text or bag."""
        found = [c.name for c in self._model.schema.counted if c.about.words]
        if column is None and len(found) != 1:
            raise SettingsError(
                f"the model has {len(found)} columns of words",
                hint=f"name one: {', '.join(map(repr, found)) or 'none'}.",
            )
        name = found[0] if column is None else column
        if name not in found:
            raise SettingsError(f"column {name!r} has no words", hint="take a text or a bag, or plot.column(name).")
        return WordsDisplay.of(self._model, name, top).plot(ax)

    def regions(
        self, x: str, y: str, data: Any = None, *, row: Mapping[str, Any] | None = None, ax: Any = None
    ) -> RegionsDisplay:
        """The answers over a plane of two numbers, other columns missing or as in `row`; `data` are drawn as points."""
        return RegionsDisplay.of(self._model, x, y, data, row).plot(ax)

    def densities(self, column: str, *, prior: bool = True, ax: Any = None) -> DensitiesDisplay:
        """P(class)·P(x given class) along a number; `prior=False` leaves P(class) out."""
        return DensitiesDisplay.of(self._model, column, prior=prior).plot(ax)

    def beta(self, column: str, value: Any, *, ax: Any = None) -> BetaDisplay:
        """What is believed of P(value given class) before counting, and after, by class."""
        return BetaDisplay.of(self._model, column, value).plot(ax)

    def dirichlet(self, column: str, given: Any, *, ax: Any = None) -> DirichletDisplay:
        """What is believed of the shares of a column's three values in one class."""
        return DirichletDisplay.of(self._model, column, given).plot(ax)
