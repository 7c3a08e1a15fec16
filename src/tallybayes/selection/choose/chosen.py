"""From a look at the data to settings: columns become cells, the ladder is climbed, what it found is written down."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Bools, Floats
from ...base.errors import DataError, SettingsError, unknown, warn
from ...base.threads import one_blas_thread
from ...data import encode
from ...data.blocks import Block, Codes, Numbers
from ...data.encode import Labelled
from ...data.files.file import size_of
from ...data.infer import first_look
from ...data.looking.look import gaps_may_tell
from ...data.pairs import PairColumn
from ...data.schema import Column, Schema
from ...data.sources import Batch, Source, open_source
from ...families import Blend
from ...families.blend import READERS
from ...families.calibration import Calibrated
from ...families.settings import Settings
from ...families.smoothing import BackOff, Laplace
from ...tally.together import without_together
from ..folds import Folds, count_folds
from ..settings_at_once import for_column
from .columns import AskedColumn, Category, Coded, DealtRows, Number, cells_for
from .deal import dealt
from .forms import listed
from .joint import Dense
from .ladder import Ladder
from .losses import against_first
from .pairs import coded_pairs, pair_of
from .problem import SPLITS, Problem
from .text.beside import Allowed, read_on
from .text.words import LEAST_WORDS, read_texts, row_lengths, thinned
from .written import READ_BY, Written, curve_of, figures

FEWEST = 10  # rows; below, the counts are believed as they are
FORMS = ("auto", "temperature", "weights", "isotonic")  # fitted to rows
COUNTED = "counted"  # and one that is worked out of counts alone
EFFORTS = ("quick", "default", "thorough")
CURVE = "isotonic curve"
_MOST_WORK = 40_000_000  # rows × columns × classes; of more rows some are taken, evenly over folds, classes and hashes
_MOST_TEXTS = 200_000  # rows × classes × columns of text, likewise; but
_ENOUGH = 20_000  # rows are always looked at
_ARRAYS = 12  # of rows × classes that a fit holds at a time
_LEAST_PART = -60.0  # nats below the best class: a held-out value that a class cannot have is strong, not infinite
_MEMORY = 1 << 30  # bytes beyond the data, unless TALLYBAYES_MEMORY says otherwise
_SMALL = 2_000  # rows, below which ten folds leave more of them to count by
Pairs = bool | str | Sequence[tuple[str, str]]
_PAIRS_HINT = "take 'auto', True, False, or a list of two different columns each: [('sex', 'class')]."


def choose(
    look: Batch, schema: Schema, base: Settings, pairs: Pairs = "auto", form: str = "auto", *, effort: str = "default",
    groups: str | None = None, order: str | bool | None = None, watch: Callable[[str], None] = lambda what: None,
    gaps: bool = True,
) -> tuple[Schema, Settings]:  # fmt: skip
    """The schema with gaps and pairs added, and the families, weights and corrections that held-out rows support."""
    _one_of("calibrate", form, FORMS)
    check_effort(effort)
    look = thinned(look, schema)
    base = Settings.of(base, schema)
    schema = with_pairs(without_together(schema), look, pairs)
    rows = encode.labelled(schema, look, first=True)
    if gaps and form == "auto" and effort != "quick":
        schema = with_gaps(schema, rows)
    counted, n_classes = len(rows.labels), len(rows.classes)
    if form == "isotonic" and n_classes != 2:
        raise SettingsError(
            f"isotonic calibration of {n_classes} classes", hint="it is for two; leave calibrate= away."
        )
    found = None
    if counted >= FEWEST and n_classes >= 2 and schema.counted:
        with one_blas_thread():
            found = _chosen(look, rows, schema, base, pairs, form, effort, groups, order, watch)
    if found is None and form != "auto":
        warn(
            f"calibrate={form!r} was asked for, but {counted} labelled rows of {n_classes} classes are too few for it; "
            f"the counts are believed as they are. Hint: give at least {FEWEST} rows, some of each class."
        )
    return found or (schema, base)


def check_effort(effort: str, calibrate: object = None, pairs: Pairs = "auto") -> None:
    """Refuses an effort, a form of calibration or pairs that there are not."""
    _one_of("effort", effort, EFFORTS)
    if not (calibrate is None or isinstance(calibrate, bool)):
        _one_of("calibrate", calibrate, (*FORMS, COUNTED))
    if (_each_pair(pairs) or pairs is True) and calibrate == COUNTED:
        raise SettingsError(
            f"pairs={pairs!r} with calibrate='counted'", hint="it counts every two columns together: leave pairs out."
        )


def _one_of(name: str, given: object, known: Sequence[str]) -> None:
    if given not in known:
        hint = "take " + ", ".join(map(repr, known)) + "."
        raise unknown(SettingsError, f"{name}={given!r}", given, known, hint)


def _chosen(
    look: Batch, rows: Labelled, schema: Schema, base: Settings, pairs: Pairs, form: str, effort: str,
    groups: str | None, order: str | bool | None, watch: Callable[[str], None],
) -> tuple[Schema, Settings] | None:  # fmt: skip
    """The same for rows that are enough to choose by; None where nothing could be judged."""
    counted, thorough = len(rows.labels), effort == "thorough"
    dealing = dealt(rows, look, 10 if thorough or counted < _SMALL else SPLITS, groups, order)
    by_fold = np.argsort(dealing.folds, kind="stable")
    n_texts = sum(column.text is not None for column in schema.counted)
    step = _step(len(by_fold), len(schema.counted), n_texts, len(rows.classes))
    by_fold = by_fold[::step]
    look, folds = look.take(dealing.order[by_fold]), dealing.folds[by_fold]
    rows = encode.labelled(schema, look)
    weights = np.ones(len(folds)) if rows.weights is None else rows.weights
    units = None if dealing.units is None else dealing.units[by_fold]
    dealt_rows = DealtRows(
        rows.labels, folds, weights, len(rows.classes), int(folds.max()) + 1, units, dealing.copied
    )  # fmt: skip
    if np.count_nonzero(dealt_rows.class_counts, axis=1).max() < 2:
        return None  # every class is in one fold: there is nothing to judge by
    made = LookColumns(look, rows, schema, base, dealt_rows)
    named = [(c, made.coded[c.name]) for c in schema.counted if c.name in made.coded]
    quick = form == "temperature" or (effort == "quick" and form != "weights")
    paired = not quick and pairs in (True, "auto") and len(named) > 1
    proposed = coded_pairs(named, schema.counted) if paired else []
    problem = Problem(
        dealt_rows, list(made.coded.values()), list(made.dense.values()), proposed,
        frozenset(c.name for c, _ in named if c.kind == "pair"), **({"enough": np.inf} if thorough else {}),
    )  # fmt: skip
    if len(problem.judges()) < 2:
        return None
    ladder = Ladder(problem, watch)
    choice = ladder.climb(
        weights=False if quick else True if form == "weights" or problem.paired else None,
        corrections=form != "weights", pairs=pairs if isinstance(pairs, bool) else None,
    )  # fmt: skip
    allowed = Allowed(
        further=pairs in (True, "auto"), corrections=form != "weights", lead=form == "auto"
    ) if not quick else None  # fmt: skip
    texts = read_on(look, schema, made.base, made.folds, rows.classes, ladder, choice, allowed)
    choice = texts.choice
    written = Written(made.schema, made.base, made.coded, choice, rows.classes)
    with_all = texts.schema(written.schema())
    out = texts.written(written.settings(), with_all)
    curve = curve_of(choice, dealt_rows) if form == "isotonic" else None
    taken = listed((*choice.form, *[CURVE] * (curve is not None)))
    fitted = Calibrated(
        taken, len(rows.labels), choice.losses, errors=choice.errors,
        note=_note(dealing.note, len(rows.labels), counted), figures=figures(choice, dealt_rows),
        judged=int(choice.judged.sum()), given=_named(base), asked=as_asked(effort, groups, order),
    )  # fmt: skip
    return with_all, replace(out, isotonic=curve, calibrated=fitted)


def as_asked(effort: str, groups: str | None, order: str | bool | None) -> dict[str, str | bool]:
    """What was asked for, as far as it is not the default."""
    given = {"effort": None if effort == "default" else effort, "groups": groups, "order": order or None}
    return {name: value for name, value in given.items() if value is not None}


def _named(settings: Settings) -> tuple[str, ...]:
    """The columns whose family or smoothing is named."""
    smoothing = settings.smoothing if isinstance(settings.smoothing, Mapping) else {}
    return tuple(sorted({*settings.families, *smoothing}))


def _note(said: str | None, seen: int, counted: int) -> str:
    sample = (
        f"chosen by {seen:,} of {counted:,} rows, since all would take too long or too much room"
        if seen < counted
        else ""
    )
    return "; ".join(filter(None, (said, sample)))


def _step(rows: int, columns: int, texts: int, classes: int) -> int:
    """Every how manyth row is looked at: all of them, unless they would take too long or too much room.

    Texts take longest, since each is read in several ways.
    """
    width = classes if classes > 2 else 1
    wish = os.environ.get("TALLYBAYES_MEMORY")
    room = (_MEMORY if wish is None else size_of("TALLYBAYES_MEMORY", wish)) // (_ARRAYS * 8 * width)
    of_texts = min(-(-rows * classes * texts // _MOST_TEXTS), rows // _ENOUGH)
    return max(1, -(-rows * columns * width // _MOST_WORK), -(-rows // max(room, 1)), of_texts)


# ---- columns


class LookColumns:
    """The columns as cells where their rows can be told apart so, and as parts row by row where not."""

    def __init__(self, look: Batch, rows: Labelled, schema: Schema, base: Settings, dealt: DealtRows) -> None:
        self.schema, self.base, self.dealt, self.look = schema, base, dealt, look
        self.coded: dict[str, Coded] = {}
        self.dense: dict[str, Dense] = {}
        self.folds: Folds | None = None  # of the columns that are asked
        rest: list[Column] = []
        for column in schema.counted:
            block = rows.blocks[column.name]
            if isinstance(block, Codes) and len(np.unique(block.codes[block.codes >= 0])) < 2:
                continue  # of one value: whether there is one is asked by a column of its own
            plain = self._plain(column, block)
            if plain is not None:
                self.coded[column.name] = plain
            elif any(name in look for name in column.inputs):
                rest.append(column)  # one that is not in the data says nothing
        if rest:
            self._others(rest, rows)
        self.coded = {c.name: self.coded[c.name] for c in schema.counted if c.name in self.coded}

    def _plain(self, column: Column, block: Block) -> Coded | None:
        """A column under the settings that are the default, which have a fast way."""
        base = self.base
        usual = not base.predictive and base.unseen == "no evidence" and base.floor.kind == "column"
        smooth = base.smoothing_of(column.name)
        if not usual or column.name in base.families or column.kind == "pair":
            return None
        if isinstance(block, Codes) and column.like == "category" and isinstance(smooth, (Laplace, BackOff)):
            return Category.of(column, block, self.dealt, None if smooth == Laplace() else smooth)
        if isinstance(block, Numbers) and column.like == "number" and column.cells is not None and smooth == Laplace():
            return Number.of(column, block, self.dealt, cells_for(len(self.schema.counted), self.dealt.n_classes))
        return None

    def _others(self, rest: Sequence[Column], rows: Labelled) -> None:
        """Columns that are asked what they say under real tallies of the folds."""
        alone = self.schema._with(columns=rest)
        base = self.base.about({c.name for c in rest})
        folds = count_folds(open_source(self.look), alone, lambda read, start: self.dealt.folds[read.rows + start])
        self.folds = folds
        self.base = base = replace(self.base, **_readings(read_texts(folds, alone, base), self.base))
        row_by_row = []
        for column in rest:
            block = rows.blocks[column.name]
            if isinstance(block, (Codes, Numbers)):
                self.coded[column.name] = self._asked(column, block, folds)
            else:
                row_by_row.append(column)
        if not row_by_row:
            return
        held = folds.held_out(base.about({c.name for c in rest}).without(fitted=True), parts=True)
        for column in row_by_row:
            least = LEAST_WORDS if column.about.words else _LEAST_PART
            parts = held.parts[column.name]  # in place: rows × classes may be many
            np.nan_to_num(parts, copy=False, neginf=-1e300)
            parts -= parts.max(axis=1, keepdims=True)
            np.maximum(parts, least, out=parts)
            parts = parts[:, _order_of(held.classes, rows.classes)]
            length = np.log(np.maximum(row_lengths(folds, column.name), 1.0)) if column.about.words else None
            self.dense[column.name] = Dense(column.name, against_first(parts), length)

    def _asked(self, column: Column, block: Codes | Numbers, folds: Folds) -> AskedColumn:
        """A column of cells under settings of its own: the family is asked for each of them."""
        like: Category | Number
        if isinstance(block, Codes):
            like = Category.of(column, block, self.dealt, None)
            cells: Block = Codes(like.slots, np.arange(like.size))
        else:
            like = Number.of(column, block, self.dealt)
            there = like.codes < like.size
            value = np.full(like.size, np.nan)
            value[like.codes[there][::-1]] = block.values[there][::-1]
            cells = Numbers(value, block.cells)
        own, classes = for_column(self.base, column.name), sorted({label for label, _ in folds.names})

        def ask(counted: Bools) -> Floats:
            model = folds.part_of(column.name, counted).model(own)
            said = model.beliefs[column.name].parts(cells)
            best = said.max(axis=1, keepdims=True)
            with np.errstate(invalid="ignore"):
                bounded = np.maximum(np.nan_to_num(said - best, nan=0.0, neginf=_LEAST_PART), _LEAST_PART)
            out = np.zeros((len(said), len(classes)))
            out[:, [classes.index(str(canon.text(c))) for c in model.classes]] = bounded
            return out

        return AskedColumn(
            column.name, like.codes, like.size, like.ordered, like.alike, like.places, like.cuts, like.slots, ask
        )


def _order_of(classes: Sequence[Any], wanted: Sequence[str]) -> list[int]:
    """Where each of the wanted classes, by their texts, stands among others."""
    texts = [str(canon.text(c)) for c in classes]
    return [texts.index(c) for c in wanted]


def _readings(found: Settings, base: Settings) -> dict[str, Any]:
    """The families and smoothings that reading texts has added to some settings."""
    smoothing: Any = base.smoothing
    if isinstance(found.smoothing, Mapping):
        named = dict(base.smoothing) if isinstance(base.smoothing, Mapping) else {}
        smoothing = {**named, **found.smoothing}
    return {"families": {**base.families, **found.families}, "smoothing": smoothing}


def unfitted(settings: Settings) -> Settings:
    """The settings as they were before rows chose weights, corrections and blends; smoothings stay."""
    blends = {n for n, f in settings.families.items() if isinstance(f, Blend) and f.families in (READERS, READ_BY)}
    families = {n: f for n, f in settings.families.items() if n not in blends}
    return replace(settings.without(fitted=True), families=families)


def recalibrated(
    source: Source, schema: Schema, settings: Settings, *, effort: str | None = None, groups: str | None = None,
    order: str | bool | None = None,
) -> Settings:  # fmt: skip
    """Settings with weights and corrections fitted anew on some rows; the families, pairs and readings of text stay.

    Rows are held out as they were for the fit before, unless something else is asked for.
    """
    before: Mapping[str, Any] = {} if settings.calibrated is None else settings.calibrated.asked
    effort = effort or str(before.get("effort", "default"))
    if groups is None and order is None:
        groups, order = before.get("groups"), before.get("order")
    look = first_look(source)
    free = unfitted(settings)
    labels = encode.labels(schema, look).codes
    known = labels[labels >= 0]
    n_classes = len(np.unique(known))
    curve = settings.isotonic is not None and n_classes == 2  # with a third class there is none
    enough = len(known) >= FEWEST and n_classes >= 2
    out = free
    if enough:
        form = "isotonic" if curve else "auto"
        out = choose(look, schema, free, False, form, effort=effort, groups=groups, order=order, gaps=False)[1]
    if out.calibrated is None:
        raise DataError(
            "these rows are too few to fit weights to: fewer than 10, or of one class",
            hint="give more labelled rows; the model as it is has not been changed.",
        )
    given = () if settings.calibrated is None else settings.calibrated.given  # what rows once chose stays theirs
    return replace(out, calibrated=replace(out.calibrated, given=given))


def with_gaps(schema: Schema, rows: Labelled) -> Schema:
    """The schema with a column for each whose values are missing in some rows; of those missing together the first."""
    known: set[Any] = {c.of[0].source for c in schema.counted if c.of is not None and c.kind == "gap"}
    names, added = {c.name for c in schema.columns}, []
    for column in schema.counted:
        asked = column.name if column.part is None else column.reads
        name = f"{asked} (missing)"
        if column.like not in ("category", "number") or column.of is not None:
            continue
        if column.reads in known or name in names:
            continue
        there = rows.blocks[column.name].present()
        missing = len(there) - int(np.count_nonzero(there))
        pattern = np.packbits(there).tobytes()
        if not gaps_may_tell(missing, len(there)) or pattern in known:
            continue
        known |= {column.reads, pattern}
        side = PairColumn(column.reads, column.kind, column.part, tuple(column.missing), spelling=column.spelling)
        reason = f"{asked} is missing in {canon.share_of(missing, len(there))}"
        added.append(Column(name, "gap", of=(side,), reason=reason))
    return schema._with(columns=[*schema.columns, *added])


def _each_pair(pairs: Pairs) -> Sequence[Any]:
    """The pairs that were asked for by name; refuses what is no pair."""
    if not isinstance(pairs, (list, tuple)):
        if not isinstance(pairs, bool) and pairs != "auto":
            raise SettingsError(f"pairs={pairs!r}", hint=_PAIRS_HINT)
        return ()
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or pair[0] == pair[1]:
            raise SettingsError(f"the pair {pair!r}", hint=_PAIRS_HINT)
    return pairs


def with_pairs(schema: Schema, look: Batch, pairs: Pairs) -> Schema:
    """The schema with the pairs that were asked for by name; those it has already are not added again."""
    named = _each_pair(pairs)
    if not named:
        return schema
    columns = {c.name: c for c in schema.counted}
    blocks = encode.blocks(schema, look)
    known = {frozenset(c.of) for c in schema.counted if c.of is not None and len(c.of) == 2}
    added = []
    for pair in named:
        for name in pair:
            if name not in columns:
                raise unknown(SettingsError, f"a pair with the column {name!r}, which is not counted", name, columns)
        a, b = pair
        column = pair_of(a, b, columns, blocks)
        assert column.of is not None
        if frozenset(column.of) not in known:
            known.add(frozenset(column.of))
            added.append(column)
    return schema._with(columns=[*schema.columns, *added])
