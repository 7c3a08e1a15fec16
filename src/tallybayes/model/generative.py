"""How a model tells the story of rows: a class from P(class), then every column from P(value given class).

    log P(row, class) = log P(class) + Σ log P(value given class)

Everything here follows from that one distribution, and so do the probabilities of the classes. Weights, pairs, curves
and some families make better answers of the same counts, but no distribution of rows: with them there is no story, and
`generative` is the model beneath that has one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from string import ascii_lowercase, digits
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base import canon
from ..base.arrays import Floats, Ints, log_sum_exp
from ..base.errors import SettingsError
from ..data import encode
from ..data.batch import Batch
from ..data.blocks import Block
from ..data.dates import dates_with
from ..data.kinds import GAP, KINDS
from ..data.schema import Column
from ..data.sources import open_source
from ..data.texts import texts_of
from ..families.categorical import UNSEEN
from ..families.settings import Settings
from ..families.smoothing import MaximumLikelihood
from .held import Held

if TYPE_CHECKING:
    from .model import Model


class Generative(Held):
    """The part of a model that knows how likely rows are, and draws them."""

    if TYPE_CHECKING:

        @property
        def counted(self) -> Model:
            """The model by its counts alone."""
            ...

        def table_of(self, rows: Any) -> Any:
            """A dict that is one row as a table of one."""
            ...

        def _scores(self, blocks: Mapping[str, Block], rows: int, start: Floats) -> Floats: ...

    def log_density(self, rows: Any) -> Floats:
        """log P(row), the class summed out: how likely the model finds each row.

        A missing value is summed out, too, and so is one that the model does not know. Of words it is the probability
        given how many there are.
        """
        self._refuse_readings("log_density(rows)")
        return np.concatenate([np.zeros(0), *(log_sum_exp(joint) for joint, _ in self._joints(rows, None))])

    def log_likelihood(self, rows: Any, y: Any = None) -> float:
        """log P of all rows together: Σ log P(row, class) where the class is known, Σ log P(row) where it is not.

        >>> import tallybayes as tb
        >>> rows = {"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}
        >>> model = tb.count(rows, tb.Schema([tb.Column("Sky", "category")], target="Play")).model()
        >>> round(model.log_likelihood({"Sky": ["sunny"], "Play": ["yes"]}), 6)  # 2/3 · 3/4
        -0.693147
        """
        self._refuse_readings("log_likelihood(rows)")
        number = {str(canon.text(c)): i for i, c in enumerate(self.classes)}
        found = []
        for joint, batch in self._joints(rows, y):
            each = log_sum_exp(joint)
            if self.schema.target in batch:
                label = encode.labels(self.schema, batch)
                unknown = joint.shape[1]  # a class that the model does not have is impossible
                at = np.array([*(number.get(s, unknown) for s in label.slots), -1], dtype=np.int64)[label.codes]
                padded = np.column_stack([joint, np.full(len(joint), -np.inf)])
                each = np.where(at < 0, each, padded[np.arange(len(joint)), at])
            found += each.tolist()
        return math.fsum(found)

    def _joints(self, rows: Any, y: Any) -> Iterator[tuple[Floats, Batch]]:
        """log P(row, class) of each batch, rows × classes, and the batch."""
        for number, batch in enumerate(open_source(self.table_of(rows), y, target=self.schema.target).batches()):
            if number == 0 and self.beliefs and (batch.rows or batch.columns):
                encode.check_columns(self.schema, batch)
            blocks = encode.blocks(self.schema, batch)
            shared = sum((b.base(blocks[n]) for n, b in self.beliefs.items()), np.zeros(1))
            yield self._scores(blocks, batch.rows, self.log_prior) + shared[:, None], batch

    def sample(self, n: int, seed: int | np.random.Generator | None = None) -> pa.Table:
        """Rows drawn by the generative story, as the data have them: a class from P(y), each column from P(x given y).

        What is drawn can be counted and predicted again. Of words there are as many whatever the class, since the model
        has no belief about that; a date of which no day was counted has the year 2000.
        """
        self._refuse_readings("sample(n)")
        if n < 0:
            raise SettingsError(f"sample({n})", hint="ask for at least 0 rows.")
        rng = np.random.default_rng(seed)
        p = np.exp(self.log_prior)
        labels: Ints = rng.choice(len(self.classes), size=n, p=p / p.sum())
        drawn = {name: b.sample(labels, rng) for name, b in self.beliefs.items() if self.schema[name].of is None}
        columns = {
            source: self._as_data({c.name: drawn[c.name] for c in read}) for source, read in self._by_source().items()
        }
        for gap in (c for c in self.schema.counted if c.kind == "gap" and c.name in self.beliefs):
            gone = pc.equal(self.beliefs[gap.name].sample(labels, rng), GAP[1])
            there = columns[gap.reads] if gap.reads in columns else _anything(gap, n)
            columns[gap.reads] = pc.if_else(gone, None, there)
        if self.schema.weights is not None:
            columns[self.schema.weights] = pa.array(np.ones(n))
        return pa.table({**columns, self.schema.target: self._label_column().take(pa.array(labels))})

    @property
    def settings_for_drawn(self) -> Settings:
        """The settings under which ever more rows that the model draws, when they are counted, come back to it.

        Those of the model, with what estimating chose written down: the family that `auto` took, bins at the same cuts.
        A kernel has no bandwidth of its own there, nor a Student-t its freedom: drawn rows are many, and find theirs.

        >>> import tallybayes as tb
        >>> rows = {"size": [1.0, 2.0, 3.0, 7.0, 8.0, 9.0], "kind": ["s", "s", "s", "l", "l", "l"]}
        >>> model = tb.count(rows, tb.infer(rows, "kind")).model(tb.Settings(families={"size": "bins"}))
        >>> model.settings_for_drawn.families["size"].describe()
        'bins (method=given, bins=(5.0,))'
        """
        self._refuse_readings("settings_for_drawn")
        each = {name: f.for_drawn(self.beliefs[name], self.schema[name]) for name, f in self.families.items()}
        return replace(self.settings, families=each)

    def _by_source(self) -> dict[str, list[Column]]:
        """The columns that are drawn, by the column of the data that they read."""
        out: dict[str, list[Column]] = {}
        for name in (name for name in self.beliefs if self.schema[name].of is None):
            out.setdefault(self.schema[name].reads, []).append(self.schema[name])
        return out

    def _read_again(self) -> dict[str, str]:
        """Columns that read what another reads already, and that other: no value is drawn twice.

        Weekday, month and hour of a date are drawn apart, and there is a date of them; its day has all of them in it.
        """
        out = {}
        for read in self._by_source().values():
            first = next((c for c in read if c.part == "days"), read[0])
            parts = [c.part for c in read]
            if first.part in (None, "days") or len(set(parts)) < len(parts) or None in parts:
                out.update({c.name: first.name for c in read if c is not first})
        return out

    def _as_data(self, drawn: Mapping[str, Any]) -> Any:
        """A column of the data that is read as what was drawn."""
        columns = [self.schema[name] for name in drawn]
        if columns[0].part is not None:
            return dates_with({str(c.part): drawn[c.name].to_pylist() for c in columns})
        ((name, values),), column = drawn.items(), columns[0]
        if column.about.write is not None:
            return pa.array([column.about.write(v) for v in values.to_pylist()])
        if column.text is not None:
            return self._as_texts(name, values)
        if column.like == "vector" and column.width is not None and values.type.list_size < column.width:
            wide = np.full((len(values), column.width), np.nan)  # the last positions were never seen
            wide[:, : values.type.list_size] = values.flatten().to_numpy().reshape(len(values), -1)
            return pa.FixedSizeListArray.from_arrays(pa.array(wide.ravel()), column.width)
        return values

    def _as_texts(self, name: str, words: pa.ListArray) -> pa.Array:
        """Texts of which the tokeniser makes these words."""
        cut, known = self.schema[name].text, {*self.beliefs[name].table().rows}
        assert cut is not None
        fresh = ("neverseen" + "x" * i for i in range(10))
        new = next((w for w in (*fresh, *ascii_lowercase, *digits) if w not in known and cut.tokens(w) == [w]), UNSEEN)
        flat = words.flatten()
        flat = pc.if_else(pc.equal(flat, UNSEEN), new, flat)
        texts = texts_of(pa.ListArray.from_arrays(words.offsets, flat), cut)
        if texts is None:
            raise SettingsError(
                f"column {name!r} was cut into tokens of which no text can be made again",
                hint="tokens are drawn one by one, and pairs of words, pieces of words and hashes belong together: "
                f"count words, Column({name!r}, 'text'), or lists of tokens, Column({name!r}, 'bag').",
            )
        return texts

    def _label_column(self) -> Any:
        """The classes as a column; as texts where no type of Arrow holds them all."""
        try:
            return pa.array(list(self.classes))
        except (pa.ArrowException, OverflowError):
            return pa.array([str(canon.text(c)) for c in self.classes])

    @property
    def generative(self) -> Model:
        """The model beneath that is a distribution of rows: by counts alone, without pairs of columns.

        A number that was read by a blend of families is read by the one that `auto` prefers, words by their
        frequencies; of columns that read the same data one is kept, of a date its day; zeros that were made ε are
        zeros. Itself, where it is such a model.
        """
        from .estimate import estimate

        counted = self.counted
        readings = [name for name, belief in counted.beliefs.items() if not belief.density]
        over = [name for name, belief in counted.beliefs.items() if not belief.adds_up]
        tally, gone = counted.tally, {*counted._read_again()}
        if tally is None or not (readings or over or gone):
            return counted
        gone |= {name for name in readings if counted.schema[name].of is not None}
        others = {name: _distribution(counted.schema[name].like) for name in readings if name not in gone}
        schema = counted.schema._with(columns=[c for c in counted.schema.columns if c.name not in gone])
        tally = replace(tally, schema=schema, columns={n: c for n, c in tally.columns.items() if n not in gone})
        smoothing = {name: counted.settings.smoothing_of(name) for name in schema.names}
        smoothing |= {name: MaximumLikelihood() for name in over if name not in gone}
        settings = replace(counted.settings, families={**counted.settings.families, **others})
        settings = (replace(settings, smoothing=smoothing) if over else settings).about(schema.names)
        known = {name: family for name, family in counted.families.items() if name not in readings}
        return replace(estimate(tally, settings, known=known), notes=counted.notes, history=counted.history)

    def _refuse_readings(self, asked: str) -> None:
        """Refuse what only a distribution of rows can answer, where the model is none."""
        settings = self.settings
        weighted = {n for n, w in settings.weights.items() if w != 1.0 and n in self.beliefs}
        weighted |= {n for n, b in settings.lengths.items() if b != 0.0 and n in self.beliefs}
        readings = [n for n, b in self.beliefs.items() if not b.density or n in weighted]
        bent = [what for what in ("offsets", *settings.curves) if getattr(settings, what)]
        again = self._read_again()
        over = [n for n, b in self.beliefs.items() if not b.adds_up] if asked != "sample(n)" else []
        if readings:
            why = f"column {readings[0]!r} is weighted, or read by a family that is no probability distribution"
        elif bent:
            why = f"the settings ({', '.join(bent)}) move the scores of whole classes, which no distribution does"
        elif again:
            name, first = next(iter(again.items()))
            why = f"columns {first!r} and {name!r} read one column of the data, which has one value and not two"
        elif over:
            why = (
                f"the probabilities of column {over[0]!r} do not add up to one: zeros were made larger, or not every "
                "value was written"
            )
        else:
            return
        hint = (
            f"model.generative is the model beneath, a distribution of rows by counts alone: model.generative.{asked}."
        )
        if self.tally is None and (again or not all(b.density and b.adds_up for b in self.beliefs.values())):
            hint = "this model has no counts to make one of: write whole tables, or ask the model it was exported from."
        raise SettingsError(why, hint=hint)


def _anything(gap: Column, n: int) -> Any:
    """A column of which all that is known is where it has gaps."""
    assert gap.of is not None
    side = gap.of[0]
    if side.part is not None:
        return dates_with({"days": [0] * n})
    return pa.array([0.0] * n) if KINDS[side.kind].like == "number" else pa.array(["there"] * n)


def _distribution(like: str) -> str:
    """A family that is a distribution, for a column like this kind."""
    return {"number": "auto", "category": "categorical", "vector": "gaussian"}.get(like, "multinomial")
