"""The verbs of the library: count some rows, or fit a model to them in one call."""

from __future__ import annotations

from typing import Any

from ...base.errors import SettingsError
from ...data.infer import first_look, infer, labels_or_name
from ...data.schema import Schema
from ...data.sources import LABELS, on_engine, open_source
from ...families.settings import Settings
from ...model.model import Model
from ...tally.tally import Tally, refuse_empty
from .ladder import Pairs, choose, with_pairs


def count(data: Any, schema: Schema, y: Any = None, *, weights: Any = None, engine: str | None = None) -> Tally:
    """The tally of some rows under a schema: exact, and ready to be added to others.

    `weights` is one number per row or the name of a column; a schema may name that column, too. The engine follows
    from the data; `engine="local"` brings the rows of a Spark frame here, "duckdb" and "spark" insist on being right.

    >>> import tallybayes as tb
    >>> schema = tb.Schema([tb.Column("Sky", "category")], target="Play")
    >>> tb.count({"Sky": ["sunny", "rainy"], "Play": ["yes", "no"]}, schema)
    Tally: 2 rows · no 1, yes 1 · 1 column
    """
    if isinstance(weights, str):
        schema, weights = schema.with_weights(weights), None
    return Tally.of(schema, on_engine(open_source(data, y, weights=weights, target=schema.target), engine))


def fit(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    schema: Schema | None = None,
    settings: Settings | None = None,
    weights: Any = None,
    receipts: bool = False,
    calibrate: bool | str | None = None,
    pairs: Pairs = "auto",
    engine: str | None = None,
) -> Model:
    """A model of some rows: infer the schema, choose families and weights on held-out rows, count. Prints nothing.

    `target` names the column to predict; with a matrix give the labels instead, `fit(X, y)`. `weights` is a
    column's name or one number per row. `receipts=True` also counts a hash per row, so that `forget` knows every row.
    `calibrate=False`, or settings of your own, leave the choosing out; `calibrate=True` fits weights to your settings;
    "temperature", "weights" or "isotonic" (for two classes) ask for one form.
    `pairs` are columns counted together where that helps: "auto", False, or a list of two names each.
    `engine` is as for `count`.

    >>> import tallybayes as tb
    >>> model = tb.fit({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, target="Play")
    >>> model.predict([{"Sky": "sunny"}]).tolist()
    ['yes']
    """
    target, y = labels_or_name(target, y)
    column = weights if isinstance(weights, str) else None
    beside = None if isinstance(weights, str) else weights
    name = target or (schema.target if schema is not None else LABELS)
    source = on_engine(open_source(data, y, weights=beside, target=name), engine).repeatable()
    choosing = settings is None if calibrate is None else calibrate
    named = not isinstance(pairs, (bool, str))
    if pairs is True and not choosing:
        raise SettingsError(
            "pairs=True without calibrate", hint="pairs are chosen by held-out rows; name those to count: [('a', 'b')]."
        )
    look = first_look(source) if schema is None or choosing or named else None
    if schema is None:
        schema = infer(look, target=name, weights=column, receipts=receipts)
    elif receipts and not schema.receipts:
        schema = schema.with_receipts()
    if choosing and look is not None:
        form = "auto" if isinstance(choosing, bool) else choosing
        schema, settings = choose(look, schema, settings or Settings(), pairs, form)
    elif look is not None:
        schema = with_pairs(schema, look, pairs)
    tally = Tally.of(schema, source)
    refuse_empty(tally)
    return tally.model(settings)
