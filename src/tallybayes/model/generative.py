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
from ..data.kinds import GAP, KINDS
from ..data.schema import Schema
from ..data.sources import open_source
from ..families import Belief, Family
from ..families.settings import Settings
from ..tally.tally import Tally

if TYPE_CHECKING:
    from .model import Model


class Generative:
    """The part of a model that knows how likely rows are, and draws them."""

    if TYPE_CHECKING:
        schema: Schema
        classes: tuple[Any, ...]
        log_prior: Floats
        beliefs: Mapping[str, Belief]
        families: Mapping[str, Family]
        settings: Settings
        tally: Tally | None

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
        """Rows drawn by the generative story: a class from P(y), then each column from P(x given y)."""
        self._refuse_readings("sample(n)")
        rng = np.random.default_rng(seed)
        p = np.exp(self.log_prior)
        labels: Ints = rng.choice(len(self.classes), size=n, p=p / p.sum())
        drawn = [name for name in self.beliefs if self.schema[name].of is None]
        columns = {name: self.beliefs[name].sample(labels, rng) for name in drawn}
        for name, write in ((name, self.schema[name].about.write) for name in drawn):
            if write is not None:
                columns[name] = pa.array([write(v) for v in columns[name].to_pylist()])
        for gap in (c for c in self.schema.counted if c.kind == "gap" and c.name in self.beliefs):
            gone = pc.equal(self.beliefs[gap.name].sample(labels, rng), GAP[1])
            for name in (name for name in drawn if self.schema[name].reads == gap.reads):
                columns[name] = pc.if_else(gone, None, columns[name])
        return pa.table({**columns, self.schema.target: self._label_column().take(pa.array(labels))})

    def _label_column(self) -> Any:
        """The classes as a column; as texts where no type of Arrow holds them all."""
        try:
            return pa.array(list(self.classes))
        except (pa.ArrowException, OverflowError):
            return pa.array([str(canon.text(c)) for c in self.classes])

    @property
    def generative(self) -> Model:
        """The model beneath that is a distribution of rows: by counts alone, without pairs of columns.

        A number that was read by a blend of families is read by the one that `auto` prefers, and words by their
        frequencies. Itself, where it is such a model.
        """
        from .estimate import estimate

        counted = self.counted
        readings = [name for name, belief in counted.beliefs.items() if not belief.density]
        tally = counted.tally
        if tally is None or not readings:
            return counted
        pairs = {name for name in readings if counted.schema[name].of is not None}
        others = {name: _distribution(KINDS[counted.schema[name].kind].like) for name in readings if name not in pairs}
        schema = counted.schema._with(columns=[c for c in counted.schema.columns if c.name not in pairs])
        tally = replace(tally, schema=schema, columns={n: c for n, c in tally.columns.items() if n not in pairs})
        settings = replace(counted.settings, families={**counted.settings.families, **others}).about(schema.names)
        known = {name: family for name, family in counted.families.items() if name not in readings}
        return replace(estimate(tally, settings, known=known), notes=counted.notes, history=counted.history)

    def _refuse_readings(self, asked: str) -> None:
        """Refuse what only a distribution of rows can answer, where the model is none."""
        settings = self.settings
        weighted = {n for n, w in settings.weights.items() if w != 1.0 and n in self.beliefs}
        weighted |= {n for n, b in settings.lengths.items() if b != 0.0 and n in self.beliefs}
        readings = [n for n, b in self.beliefs.items() if not b.density or n in weighted]
        bent = [what for what in ("offsets", *settings.curves) if getattr(settings, what)]
        if not readings and not bent:
            return
        raise SettingsError(
            f"column {readings[0]!r} is weighted, or read by a family that is no probability distribution"
            if readings
            else f"the settings ({', '.join(bent)}) move the scores of whole classes, which no distribution does",
            hint=f"model.generative is the model beneath, a distribution of rows by counts alone: "
            f"model.generative.{asked}.",
        )


def _distribution(like: str) -> str:
    """A family that is a distribution, for a column like this kind."""
    return {"number": "auto", "category": "categorical", "vector": "gaussian"}.get(like, "multinomial")
