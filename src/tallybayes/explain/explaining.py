"""From one row to its explanation: the terms of every column, times what its evidence counts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import Floats
from ..base.errors import SettingsError
from ..data.blocks import Block
from ..model import scorer
from .explanation import LOGS, Contribution, Explanation

if TYPE_CHECKING:
    from ..model.model import Model


def explained(model: Model, blocks: Mapping[str, Block], log: str, start: Floats, prior: Any) -> Explanation:
    """The explanation of one row (blocks of one), in logs of `log`; `prior` is what was asked for, None for the own."""
    if log not in LOGS:
        raise SettingsError(f"log={log!r}", hint="take " + ", ".join(map(repr, LOGS)) + ".")
    unit = LOGS[log]
    offsets = scorer.offsets(model.settings, model.classes)
    lines = [Contribution("prior", "", (start - offsets) / unit)]
    if model.settings.offsets:
        lines.append(Contribution("offsets", "", offsets / unit))
    for name, belief in model.beliefs.items():
        factor = scorer.factor_of_one(model.settings, name, blocks[name])
        for term in belief.terms(blocks[name], 0):
            parts = term.parts * factor if factor else np.zeros_like(term.parts)
            lines.append(Contribution(name, term.label, parts / unit, term.note, factor))
    total = Explanation(model.classes, tuple(lines), np.zeros(len(model.classes)), log).total[None, :] * unit
    if model.settings.isotonic is not None or model.settings.lead is not None:
        after = scorer.calibrated(model.settings, total, scorer.prior_shift(start, model.start))
        moved = np.subtract(after, total, out=np.zeros_like(total), where=np.isfinite(total))
        lines.append(Contribution("calibration", "", moved[0] / unit))
        total = after
    log_p = scorer.log_posterior(total, start)[0]
    behind = None if model.tally is None else partial(_supports, model, blocks, prior)
    return Explanation(model.classes, tuple(lines), np.exp(log_p), log, behind)


def _supports(model: Model, blocks: Mapping[str, Block], prior: Any) -> list[Any]:
    """What each line rests on; worked out, and SciPy imported, when somebody asks."""
    from .support import model_supports

    return model_supports(model, blocks, prior)
