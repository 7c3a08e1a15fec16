"""A word where folds part rows that follow each other and are alike: what they say of new rows flatters.

`fit` holds such rows out together by itself. Folds for measuring are dealt as they were asked for, so that a figure can
be repeated by anybody, and a person who knows what belongs together says it better than a guess does.
"""

from __future__ import annotations

from ...base.errors import warn
from ...data import encode
from ...data.infer import first_look
from ...data.schema import Schema
from ...data.sources import Source
from ..choose.alike import runs_test
from ..choose.deal import row_hashes
from ..parts import Plan


def tell_of_neighbours(source: Source, schema: Schema, plan: Plan) -> None:
    """Warns if folds dealt row by row part neighbours that are alike."""
    if plan.columns or plan.order or source.engine is not None:
        return
    given = schema._with(columns=[c for c in schema.columns if c.of is None])
    rows = encode.labelled(given, first_look(source))
    found = runs_test(rows, row_hashes(rows)) if len(rows.labels) else None
    if found is not None:
        warn(
            f"rows that follow each other are alike: {found.says}; folds part them, which flatters. Hint: name the "
            "column of what belongs together, groups=, or of times, order=; order=True takes the order of the rows."
        )
