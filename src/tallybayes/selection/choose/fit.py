"""The verbs of the library: count some rows, or fit a model to them in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from ...base.canon import many
from ...base.errors import DataError, SettingsError, unknown, warn
from ...base.show import progress_line
from ...data.encode import as_table
from ...data.guess import Reading
from ...data.infer import asked, first_look, looked_at, mended, with_late_marks
from ...data.schema import Schema
from ...data.sources import Batch, Source, on_engine, open_source
from ...data.spelling import OddCells
from ...families.settings import Settings, SettingsLike
from ...model.model import Model
from ...model.provenance import History, names_of
from ...tally.guard import refuse_empty
from ...tally.tally import Tally
from ..parts import apart, by_target, without_columns
from .chosen import COUNTED, Pairs, check_effort, choose, with_pairs
from .ladder import CORRECTIONS, OF_COLUMNS, OF_PAIRS, OF_WEIGHTS, PAIRS, WEIGHTS
from .pairs import with_cells_together

Counted = TypeVar("Counted", Tally, Model)
_expected: ContextVar[bool] = ContextVar("expected", default=False)


@contextmanager
def some_without_label() -> Iterator[None]:
    """Within it rows without a label are known to be there, and `fit` says nothing of them."""
    before = _expected.set(True)
    try:
        yield
    finally:
        _expected.reset(before)


def count(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    weights: Any = None,
    receipts: bool = False,
    engine: str | None = None,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> Tally:
    """The tally of some rows: exact, and ready to be added to others that were counted under the same schema.

    schema    what every column is; without one it is inferred, and other rows are to be counted under `tally.schema`
    weights   one number per row or the name of a column; a schema may name that column, too
    y         labels beside the data; those that are not certain are a table of weights, and a row counts for each
              class: y={"yes": [0.7, 1], "no": [0.3, 0]}
    receipts  also count a hash per row, so that `forget` knows every row
    engine    who reads the rows, "local", "duckdb" or "spark", which follows from the data; one that is named here is
              refused where another would read them, and "local" brings the rows of a Spark frame here

    `data`, `target` and `kinds` are as for `tb.fit`, `missing`, `strict`, `date_format` and `fold` as for `tb.infer`.

    >>> import tallybayes as tb
    >>> schema = tb.Schema([tb.Column("Sky", "category")], target="Play")
    >>> tb.count({"Sky": ["sunny", "rainy"], "Play": ["yes", "no"]}, schema)
    Tally: 2 rows · no 1, yes 1 · 1 column
    """
    reading = Reading.of(missing, strict, date_format, fold, kinds)
    name, y, schema = asked(target, y, schema, reading)
    column, weights = (weights, None) if isinstance(weights, str) else (None, weights)
    odd = OddCells()

    def counted(found: Schema) -> Tally:
        nonlocal odd
        odd = OddCells()
        return Tally.of(found, odd.watching(source))

    if schema is None:
        source = on_engine(open_source(data, y, weights=weights, target=name), engine).repeatable()
        found, seen = looked_at(first_look(source), name, column, receipts, reading)
        if source.engine is not None:
            seen.warn()  # nobody tells of those that are met in counting
        tally = by_all_rows(found, source, reading, counted)
    else:
        schema = schema if column is None else schema.with_weights(column)
        schema = schema.with_receipts() if receipts and not schema.receipts else schema
        source = on_engine(open_source(as_table(schema, data), y, weights=weights, target=name), engine)
        tally = counted(schema)
    odd.warn()
    return tally


def fit(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    settings: SettingsLike = None,
    weights: Any = None,
    unlabelled: Any = None,
    receipts: bool = False,
    calibrate: bool | str | None = None,
    pairs: Pairs = "auto",
    gaps: bool = True,
    engine: str | None = None,
    effort: str = "default",
    groups: str | None = None,
    order: str | bool | None = None,
    progress: bool | Callable[[str, float], None] | None = None,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> Model:
    """A model of some rows: infer the schema, choose families and weights on held-out rows, count. Prints nothing.

    data        a table in any form: a data frame, a dict of columns, a list of dicts, a matrix, a path, `tb.read(…)`
    target      the column to predict; with a matrix give the labels instead, `tb.fit(X, y)`, or a schema
    y           labels that stand beside the data; those that are not certain are a table of weights, as for `tb.count`
    schema      what every column is; else it is inferred, as `tb.infer` does
    kinds       what some columns are: {"zip": "category", "note": "text", "id": "ignore"}
    settings    tb.Settings(…) or a dict of them, {"families": "gaussian", "smoothing": 1}; nothing is chosen then,
                unless `calibrate` asks for it
    weights     how much rows count: a column's name, or one number per row
    unlabelled  more rows, whose labels nobody knows, or "missing": those of the data without a label; held-out labels
                decide whether and how much they count
    receipts    also count a hash per row, so that `forget` knows every row
    calibrate   False: nothing is chosen by held-out rows; True: weights are fitted to your settings, too;
                "temperature", "weights" or "isotonic" (for two classes): just this form; "counted": weights worked out
                of counts alone, so that `forget` gives those of never having seen a row, see docs/counted.md
    pairs       columns counted together where that helps: "auto", False, or a list of two names each
    gaps        False: do not ask whether it tells something that a value is missing
    engine      who reads the rows, as for `tb.count`
    effort      "quick" (one temperature, no second look), "default" or "thorough" (ten folds, and all of them judge)
    groups      a column whose equal values are held out together, such as a patient; it is no evidence
    order       a column of times, of which stretches are held out, or True for the order of the rows
    progress    None: a line in terminals and notebooks if it takes longer than a second; False: none; or a function
                that is told (what: str, done: float)

    `missing`, `strict`, `date_format` and `fold` say how texts are read, as for `tb.infer`.

    Refused are rows that cannot be read and a target that is not there (DataError, with row and column), kinds that do
    not suit the data (SchemaError), and settings that nobody knows (SettingsError, with the nearest that is known).

    >>> import tallybayes as tb
    >>> model = tb.fit({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, target="Play")
    >>> model.predict([{"Sky": "sunny"}]).tolist()
    ['yes']
    """
    check_effort(effort, calibrate, pairs)
    settings = None if settings is None else Settings.of(settings)
    reading = Reading.of(missing, strict, date_format, fold, kinds).beside([groups])
    name, y, schema = asked(target, y, schema, reading)
    column = weights if isinstance(weights, str) else None
    beside = None if isinstance(weights, str) else weights
    source = on_engine(open_source(data, y, weights=beside, target=name), engine).repeatable()
    choosing = settings is None if calibrate is None else calibrate
    named = not isinstance(pairs, (bool, str))
    if pairs is True and not choosing:
        raise SettingsError(
            "pairs=True without calibrate", hint="pairs are chosen by held-out rows; name those to count: [('a', 'b')]."
        )
    if choosing == COUNTED and (groups is not None or order is not None):
        raise SettingsError(
            "groups or order with calibrate='counted'",
            hint="counted weights hold no rows out; leave both away, or let calibrate be True.",
        )
    if unlabelled is not None:
        from ..unlabelled.fit import FitAsked, fit_with_unlabelled

        def alone(rows: Source, found: Schema) -> Model:
            return fit(
                rows, schema=found, settings=settings, calibrate=calibrate, pairs=pairs, gaps=gaps, effort=effort,
                groups=groups, order=order, progress=False,
            )  # fmt: skip

        what = FitAsked(name, schema, column, receipts, reading, settings, bool(choosing), effort, groups, order)
        with progress_line(progress) as tell:
            return fit_with_unlabelled(source, unlabelled, what, alone, tell)
    deciding = [groups] if groups is not None else []

    def proposed(look: Batch | None) -> Schema:
        """The schema that was given, or the one that what was seen of the data proposes."""
        if groups is not None and look is not None and groups not in look:
            raise unknown(DataError, f"there is no column {groups!r}, which holds the groups", groups, look.names())
        if schema is not None:
            return apart(schema.with_receipts() if receipts and not schema.receipts else schema, deciding)
        assert look is not None
        if name in deciding:
            raise by_target(name)
        seen = first_look(without_columns(open_source(look), deciding)) if deciding else look
        found, odd = looked_at(seen, name, column, receipts, reading)
        if source.engine is not None:
            odd.warn()  # nobody tells of those that are met in counting
        return apart(found, deciding)

    def decided(found: Schema, look: Batch | None) -> tuple[Schema, Settings | None]:
        """The schema and the settings by what was seen of the data."""
        if look is None:
            return found, settings
        if not choosing:
            return with_pairs(found, look, pairs), settings
        if choosing == COUNTED:
            return with_cells_together(found, look), settings
        form = "auto" if isinstance(choosing, bool) else choosing
        base = settings or Settings()
        return choose(look, found, base, pairs, form, effort=effort, groups=groups, order=order, watch=share, gaps=gaps)

    with progress_line(progress) as tell:
        share = _Share(tell)
        share("looking")
        look = first_look(source) if schema is None or choosing or named or groups is not None else None
        odd = OddCells()

        def attempt(found: Schema) -> Model:
            nonlocal odd
            counted, chosen = decided(found, look)
            chosen = None if chosen is None else Settings.of(chosen, counted)  # refused before all rows are read
            share("counting")
            odd = OddCells()
            tally = Tally.of(counted, odd.watching(source))
            refuse_empty(tally, source)
            return tally.model(chosen)

        if schema is not None or look is None:
            model = attempt(proposed(look))
        else:
            found = proposed(look)
            try:
                model = by_all_rows(found, source, reading, attempt, mend=not look.stretches)
            except DataError as error:  # perhaps what lies between the stretches that were seen is not like them
                if not look.stretches:
                    raise
                if error.unreadable and strict:
                    mended(found, source, strict)  # refuses the first odd cell, and knows where it stands
                look = first_look(source, whole=True)
                model = by_all_rows(proposed(look), source, reading, attempt)
        odd.warn()
        if model.tally is not None and model.tally.skipped and not _expected.get():
            skipped, rows = model.tally.skipped, model.tally.rows + model.tally.skipped
            warn(
                f"{skipped:,} of {many(rows, 'row')} {'has' if skipped == 1 else 'have'} no label and "
                f"{'is' if skipped == 1 else 'are'} left out. Hint: mend the labels, or let such rows count for what "
                "they are with unlabelled='missing'."
            )
        share("done")
    return replace(model, history=History.begun(names_of(source)))


def textbook(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    families: Any = None,
    smoothing: Any = 1.0,
    prior: Any = "counted",
    weights: Any = None,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> Model:
    """The model of the lectures, whose numbers can be worked out by hand: nothing is chosen by held-out rows.

    P(value given class) is smoothed by Laplace's α = 1 unless said otherwise: `smoothing=0.5`, "maximum likelihood",
    tb.MAP(2). A number has a Gaussian with a mean and a variance for each class, words are counted; `families` names
    others, as in settings. `tb.fit` does more, because it is judged by rows that it has not seen.

    >>> import tallybayes as tb
    >>> days = {"Sky": ["sunny", "sunny", "rainy", "sunny"], "Play": ["yes", "yes", "no", "yes"]}
    >>> tb.textbook(days, "Play").table("Sky")["sunny", "yes"], 4 / 5
    (0.8, 0.8)
    >>> tb.textbook(days, "Play", smoothing="maximum likelihood").table("Sky")["sunny", "yes"]
    1.0
    """
    given = Settings(smoothing=smoothing, prior=prior, families={} if families is None else families)
    reading = Reading.of(missing, strict, date_format, fold, kinds)
    model = fit(data, target, y, schema=schema, settings=given, weights=weights, **reading.options)
    named = model.settings.families
    numbers = {c.name: "gaussian" for c in model.schema.counted if c.like == "number" and c.name not in named}
    if not numbers or model.tally is None:
        return model
    told = model.tally.model(replace(model.settings, families={**named, **numbers}))
    return replace(told, history=model.history)


def by_all_rows(
    schema: Schema, source: Source, reading: Reading, attempt: Callable[[Schema], Counted], *, mend: bool = True
) -> Counted:
    """What an inferred schema gives, mended where counting meets cells that the first look did not show."""
    try:
        counted = attempt(schema)
    except DataError as error:
        if not error.unreadable or not mend or source.engine is not None:
            raise
        schema = mended(schema, source, reading.strict)
        counted = attempt(schema)
    tally = counted if isinstance(counted, Tally) else counted.tally
    if reading.missing == () or tally is None:
        return counted
    sheets = {name: counts.sheets.get("values") for name, counts in tally.columns.items()}
    found = {name: list(sheet.slot_names) for name, sheet in sheets.items() if sheet is not None}
    more = with_late_marks(schema, found)
    return counted if more == schema else attempt(more)


class _Share:
    """How much of a fit is done: each kind of step has its part of the whole, which its steps share out."""

    parts: ClassVar[dict[str, tuple[float, float, int]]] = {  # from, to, most steps
        "looking": (0.0, 0.05, 1),
        WEIGHTS: (0.05, 0.15, len(OF_WEIGHTS)),
        CORRECTIONS: (0.15, 0.4, len(OF_COLUMNS)),
        PAIRS: (0.4, 0.75, 2 * len(OF_PAIRS)),
        "all rows": (0.75, 0.9, len(OF_WEIGHTS) + len(OF_COLUMNS)),
        "counting": (0.9, 1.0, 2),
        "done": (1.0, 1.0, 1),
    }

    def __init__(self, tell: Callable[[str, float], None]) -> None:
        self.tell, self.done = tell, 0.0
        self.steps: dict[str, int] = {}

    def __call__(self, what: str) -> None:
        """A step of some kind begins; a kind that is not known leaves the share where it is."""
        first, last, most = self.parts.get(what, (self.done, self.done, 1))
        step = min(self.steps.get(what, 0), most)
        self.steps[what] = step + 1
        self.done = max(self.done, first + (last - first) * step / most)
        self.tell(what, self.done)
