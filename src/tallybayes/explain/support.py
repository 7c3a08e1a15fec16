"""What every line of an explanation rests on: the prior, and each column by its belief's own `support`.

The log-odds of two classes under the prior are the difference of two log Gamma variables; see `families.support`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import canon
from ..base.arrays import Floats
from ..data.blocks import Block
from ..families.smoothing import Dirichlet
from ..families.support import ColumnTally, Support, log_gamma, supports_of
from ..model.posterior import factor_of_one
from ..model.prior import class_totals

if TYPE_CHECKING:
    from ..model.model import Model


def of_prior(n: Floats, imagined: Floats | None) -> Support:
    """The support of the class prior; `imagined` rows on top of the counted, None for a prior that was given."""
    of = np.full(len(n), n.sum())
    if imagined is None:
        return Support(n, of, lambda y: np.zeros(1))
    amounts = n + imagined
    return Support(n, of, (lambda y: log_gamma(float(amounts[y]))) if np.all(amounts > 0) else None)


def model_supports(model: Model, blocks: Mapping[str, Block], prior: Any) -> list[Support | None]:
    """The support of every line of an explanation: the prior, then each term of each column (blocks of one row)."""
    assert model.tally is not None
    names = tuple(str(canon.text(c)) for c in model.classes)
    chosen = model.settings.prior if prior is None else prior
    imagined = None
    if isinstance(chosen, Dirichlet):
        imagined = chosen.amounts_for(names, ("",))[:, 0]
    elif isinstance(chosen, str) and chosen == "counted":
        imagined = np.zeros(len(names))
    out: list[Support | None] = [of_prior(class_totals(model.tally, names), imagined)]
    if model.settings.offsets:
        out.append(None)  # their own line, which no row stands behind alone
    number = np.array([names.index(c) for c in model.tally.classes], dtype=np.int64)
    kept = np.array_equal(number, np.arange(len(number)))
    for name, belief in model.beliefs.items():
        counts = model.tally.columns[name] if kept else model.tally.columns[name].relabel(number)
        counted = ColumnTally(counts, names, model.settings.smoothing_of(name))
        found = supports_of(belief, counted, blocks[name])
        factor = factor_of_one(model.settings, name, blocks[name])
        out += [None if s is None else s.times(factor) for s in found]
    return [*out, None] if model.settings.curves else out  # the curve's own line
