"""A fit on other rows, asked for as a model was: everything that rows had a say in is chosen by these rows alone.

Who judges a fitted model by rows that it has learnt from needs one that has not. Counts subtract, and corrections can
be fitted anew, but which families, weights, pairs and readings of texts there are was chosen by all rows, too, and what
was chosen as the best of many looks better on the rows that it was chosen by.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from ...base.canon import printable
from ...base.errors import TallybayesWarning
from ...data.schema import Schema
from ...data.sources import Source
from ...families.settings import Settings
from ...families.smoothing import Laplace
from ...model.model import Model
from ..choose.fit import fit
from ..choose.ladder import CORRECTIONS, TEMPERATURE
from ..choose.text.words import CHARACTERS, PAIRS_OF_WORDS
from ..parts import Plan


def fit_again(model: Model) -> Callable[[Source], Model]:
    """What makes a model of other rows as this one was made; what the first fit said is not said again."""
    tried = _tried(model)
    plain = _as_given(model.schema, tried["pairs"])
    base = _not_learnt(model.settings, plain)

    def fitted(rows: Source) -> Model:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TallybayesWarning)
            return fit(rows, schema=plain, settings=base, progress=False, **tried)

    return fitted


def folds_as_asked(model: Model, folds: int, *, stratify: bool = False, seed: int = 0) -> Plan:
    """Folds that part rows as the fit did: what was held out together, such as the visits of a patient, stays so."""
    asked: Mapping[str, Any] = {} if model.settings.calibrated is None else model.settings.calibrated.asked
    groups, order = asked.get("groups"), asked.get("order")
    return Plan(folds, stratify and not (groups or order), groups, None, order, seed)


def held_whole(model: Model) -> str:
    """What such folds keep whole, as a sentence goes on about them; nothing where each row goes its own way."""
    asked: Mapping[str, Any] = {} if model.settings.calibrated is None else model.settings.calibrated.asked
    if "groups" in asked:
        return f", groups of {printable(str(asked['groups']), 40)} whole"
    return ", stretches whole" if "order" in asked else ""


def _as_given(schema: Schema, pairs: Any) -> Schema:
    """The schema without the gaps, pairs and further readings of texts that a fit adds, to be found anew."""
    texts = [c.name for c in schema.counted if c.text is not None]
    further = {f"{name} ({what})" for name in texts for what in (PAIRS_OF_WORDS, CHARACTERS)}
    kept = [c for c in schema.columns if c.of is None or (len(c.of) == 2 and not pairs)]  # those that were named stay
    return schema._with(columns=[c for c in kept if c.name not in further])


def _tried(model: Model) -> dict[str, Any]:
    """How a fit was asked to choose, by the forms whose losses it has noted."""
    settings, calibrated = model.settings, model.settings.calibrated
    forms = () if calibrated is None else tuple(calibrated.losses)
    further = ("and pairs", PAIRS_OF_WORDS, CHARACTERS)
    form: bool | str = True if any(CORRECTIONS in f for f in forms) or not forms else "weights"
    return {
        "calibrate": "isotonic" if settings.isotonic is not None else True if forms == (TEMPERATURE,) else form,
        "effort": "quick" if forms == (TEMPERATURE,) else "default",
        **({} if calibrated is None else calibrated.asked),
        "pairs": "auto" if any(f.endswith(further) for f in forms) else False,
        "gaps": any(c.kind == "gap" for c in model.schema.counted),
    }


def _not_learnt(settings: Settings, schema: Schema) -> Settings:
    """The settings as far as a fit does not choose them: families and smoothings are those that somebody gave."""
    families, smoothing = settings.families, settings.smoothing
    given = {*schema.names} if settings.calibrated is None else {*settings.calibrated.given} & {*schema.names}
    if isinstance(smoothing, Mapping):
        smoothing = {name: each for name, each in smoothing.items() if name in given}
    return Settings(
        smoothing=smoothing or Laplace(), families={name: each for name, each in families.items() if name in given},
        prior=settings.prior, unseen=settings.unseen, floor=settings.floor, predictive=settings.predictive,
        classes=settings.classes,
    )  # fmt: skip
