"""What a model holds, declared once for the parts that it is made of: each of them is written against this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..base.arrays import Floats
    from ..data.schema import Schema
    from ..families import Belief, Family
    from ..families.settings import Settings
    from ..tally.tally import Tally
    from .provenance import History


class Held:
    """The fields of `Model`, which says what each is; nothing stands here when the program runs."""

    if TYPE_CHECKING:
        schema: Schema
        classes: tuple[Any, ...]
        log_prior: Floats
        beliefs: Mapping[str, Belief]
        families: Mapping[str, Family]
        settings: Settings
        tally: Tally | None
        notes: Mapping[str, Any]
        history: History
