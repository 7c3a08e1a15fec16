"""Spam, ham or unsure: the answer about one message from its own words, in plain Python.

    S = log ½ + Σ weight · log P(value given class)      as in `model`, with the settings of `plan.BELIEF`

Of a state file only what the message has is read: the counts of its words and values, and what their sheets add up to.
`Filter.score_by_model` is the same by reading everything, and the reference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ..base.errors import SettingsError
from ..base.wording import encodable
from ..data.text.tokeniser import Tokeniser
from ..exact.line import cell_code
from .message import read_message
from .parts import MailSettings
from .state import PLAN, ROWS, ROWS_SHEET, SLOTS, LongWay, Place, State, StateError

if TYPE_CHECKING:
    from ..explain.explanation import Explanation

SPAM, HAM, UNSURE = "spam", "ham", "unsure"
LABELS = (HAM, SPAM)
ALPHA = 1.0  # of Laplace
_MOST_KEPT = 1 << 16  # places remembered from message to message
_FAR = 1e150  # a distance of more deviations would overflow when squared

# Words of one message repeat each other, the more the longer it is: beyond WORDS_FREE words a text's evidence grows
# like the fourth root of its length. The best of seven pairs tried on the folds of two corpora, so these figures of the
# same folds flatter it a little: log loss 0.027 for 0.275 and ham taken for spam 0.12 % for 0.66 % on Ling-Spam, 0.066
# for 0.102 and 0.15 % for 0.33 % on SMS Spam.
WORDS_FREE = 4
LENGTH_POWER = 0.75


def text_weight(words: int) -> float:
    """What the evidence of a text of so many words counts."""
    return min(1.0, math.pow(WORDS_FREE / max(words, 1), LENGTH_POWER))


@dataclass(frozen=True)
class FilterSettings:
    """Where the answers begin, and how messages are read. Kept in the file that they were first used with.

    spam, ham   the answer is spam from this probability upwards, ham up to that one, and unsure between
    minimum     as many messages of each class must be learnt before there is an answer
    mail        how a message becomes a row, see `MailSettings`

    >>> from tallybayes.mail import FilterSettings
    >>> FilterSettings(spam=0.99, minimum=50).ham
    0.1
    """

    spam: float = 0.9
    ham: float = 0.1
    minimum: int = 10
    mail: MailSettings = field(default_factory=MailSettings)

    def __post_init__(self) -> None:
        numbers = all(isinstance(p, (int, float)) for p in (self.ham, self.spam))
        if not numbers or not 0 <= self.ham < self.spam <= 1:
            raise SettingsError(
                f"spam from {self.spam!r} upwards and ham up to {self.ham!r}",
                hint="take two probabilities, ham below spam, e.g. spam=0.9, ham=0.1.",
            )
        if not isinstance(self.minimum, int) or self.minimum < 1:
            raise SettingsError(
                f"minimum={self.minimum!r}", hint="take a whole number, at least 1 message of each class."
            )

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> FilterSettings:
        """The inverse of `dataclasses.asdict`, after a way through JSON."""
        return cls(**{**given, "mail": MailSettings(**given["mail"])})

    @classmethod
    def of_state(cls, given: Any, path: str) -> FilterSettings:
        """The settings that a state file keeps."""
        try:
            return cls.from_dict(given)
        except (KeyError, TypeError, SettingsError) as error:
            raise StateError(
                f"the settings in {path} cannot be read: {error}",
                hint="give them: Filter(path, FilterSettings(…)).",
            ) from None


@dataclass(frozen=True)
class Verdict:
    """The answer about one message: "spam", "ham" or "unsure", P(spam), and why.

    >>> from tallybayes.mail import FilterSettings, Verdict
    >>> [Verdict.by(FilterSettings(), p).answer for p in (0.02, 0.5, 0.97)]
    ['ham', 'unsure', 'spam']
    """

    answer: str
    probability: float
    reason: str
    notes: tuple[str, ...] = ()  # what of the message was cut or odd
    explain: Callable[[], Explanation] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def by(cls, settings: FilterSettings, probability: float, *more: Any) -> Verdict:
        """The answer by P(spam); `more` are the notes, and what explains it."""
        spam, ham = settings.spam, settings.ham
        if probability >= spam:
            return cls(SPAM, probability, f"the probability of spam is at least {spam:g}", *more)
        if probability <= ham:
            return cls(HAM, probability, f"the probability of spam is at most {ham:g}", *more)
        return cls(UNSURE, probability, f"the probability of spam is between {ham:g} and {spam:g}", *more)

    @classmethod
    def too_early(cls, settings: FilterSettings, learnt: Mapping[str, int]) -> Verdict | None:
        """The answer before enough was learnt; None once it was."""
        if min(learnt.values()) >= settings.minimum:
            return None
        counts = " and ".join(f"{n} {label}" for label, n in learnt.items())
        return cls(UNSURE, 0.5, f"not enough evidence yet: {counts} learnt, {settings.minimum} of each needed")

    @property
    def explanation(self) -> Explanation | None:
        """What each column and word said, adding up to the answer; None where there was not enough evidence.

        It reads the whole state, as it is when it is asked for.
        """
        return None if self.explain is None else self.explain()

    def reasons(self, most: int = 15) -> list[tuple[str, str, float]]:
        """(column, value, log-odds for spam) of the strongest evidence, and the rest in one: they add up."""
        explanation = self.explanation
        if explanation is None:
            return []
        together: dict[tuple[str, str], float] = {}
        for column, value, odds in explanation.for_class(SPAM, HAM):
            together[column, value] = together.get((column, value), 0.0) + odds
        strongest = sorted(((c, v, odds) for (c, v), odds in together.items() if odds), key=lambda line: -abs(line[2]))
        kept, rest = strongest[:most], strongest[most:]
        return [*kept, ("everything else", f"{len(rest)} more", sum(line[2] for line in rest))] if rest else kept

    def __str__(self) -> str:
        return f"{self.answer}, probability={self.probability:.4f}"


class Scorer:
    """Answers from an open state file. What was read stays until the file is changed, by whichever process.

    Raises `LongWay` where everything has to be read: of a file in an older format, or of other settings than ours.
    """

    def __init__(
        self,
        state: State,
        settings: FilterSettings | None = None,
        explain: Callable[[dict[str, Any]], Explanation] | None = None,
    ) -> None:
        if settings is None:
            with state.reading():
                settings = FilterSettings.of_state(state.told("settings"), state.path)
        self.settings, self._state, self._explain = settings, state, explain
        self._version, self._rows = "", 0
        self._columns: list[_Column] | None = None
        self._counts: dict[Place, dict[str, int]] = {}

    def score(self, raw: bytes) -> Verdict:
        """The answer about one message, learnt or not."""
        message = read_message(raw, self.settings.mail)
        with self._state.reading() as version:
            if version != self._version:
                self._begin(version)
            early = Verdict.too_early(self.settings, self._learnt())
            if early is not None:
                return early
            if self._columns is None:
                raise LongWay
            row = message.with_facts(*self._state.known(message, HAM))
            probability = self._probability(self._columns, row)
        explain = None if self._explain is None else partial(self._explain, row)
        return Verdict.by(self.settings, probability, message.notes, explain)

    def _begin(self, version: str) -> None:
        """Read what is the same for all messages."""
        plan = self._state.told(PLAN)
        try:
            self._columns = None if plan is None else [_Column.of(**told) for told in plan["columns"]]
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"the plan in {self._state.path} cannot be read: {error}",
                hint="it was written by another release: learn a message with this one.",
            ) from None
        self._rows = self._state.sheet_of(ROWS, ROWS_SHEET) or 0
        self._counts.clear()
        self._version = version

    def _learnt(self) -> dict[str, int]:
        rows = (self._rows, "")
        return {**dict.fromkeys(LABELS, 0), **self._counted([rows])[rows]}

    def _counted(self, places: Sequence[Place]) -> dict[Place, dict[str, int]]:
        """What was counted at some places."""
        new = [where for where in places if where not in self._counts]
        if new:
            if len(self._counts) + len(new) > _MOST_KEPT:
                self._counts.clear()
                new = list(places)
            self._counts.update(self._state.counted(new))
        return self._counts

    def _probability(self, columns: Sequence[_Column], row: Mapping[str, Any]) -> float:
        """P(spam given row)."""
        asked = [(column, *column.slots(row)) for column in columns if column.sheet is not None]
        counts = self._counted([place for column, slots, _ in asked for place in column.places(slots)])
        odds = 0.0
        for column, slots, weight in asked:
            odds += weight * column.odds(slots, counts)
        for column in columns:
            if column.says is not None:
                odds += column.says(row[column.reads])
        if not math.isfinite(odds):
            raise LongWay
        return 1 / (1 + math.exp(-odds)) if odds > 0 else math.exp(odds) / (1 + math.exp(odds))


@dataclass(frozen=True)
class _Column:
    """One column as the plan tells of it: the sheet whose slots are looked up, or what its numbers say."""

    reads: str
    kind: str
    missing: frozenset[str]
    values: tuple[str, ...]
    text: Tokeniser | None
    sheet: int | None
    says: Callable[[Any], float] | None

    @classmethod
    def of(
        cls, reads: str, kind: str, missing: Sequence[str], values: Sequence[str], text: Any, sheet: Any, says: Any
    ) -> _Column:
        """The column of its JSON."""
        cut = None if text is None else Tokeniser(**text)
        marks = frozenset(missing) - ({""} if kind == "text" else set())  # an empty text is one without words
        return cls(reads, kind, marks, tuple(values), cut, sheet, None if says is None else heard(says))

    def slots(self, row: Mapping[str, Any]) -> tuple[Mapping[str, int], float]:
        """How often the row has each slot, and what that counts."""
        value = row[self.reads]
        if value is None or (isinstance(value, str) and value in self.missing):
            return {}, 0.0
        if self.text is not None:
            words = self.text.tokens(value)
            return Counter(words), text_weight(len(words))
        if self.kind == "bag":
            return Counter(map(encodable, value)), 1.0
        return {("true" if value else "false") if isinstance(value, bool) else encodable(value): 1}, 1.0

    def places(self, slots: Mapping[str, int]) -> list[Place]:
        """Where the counts of these slots stand, and what they are a share of."""
        sheet = self.sheet or 0
        return [(sheet, slot) for slot in (*slots, *self.values)] + [(-sheet, ""), (-sheet, SLOTS)] if slots else []

    def odds(self, slots: Mapping[str, int], counts: Mapping[Place, Mapping[str, int]]) -> float:
        """Σ times · log P(slot given spam) / P(slot given ham), each (n + α) / (N + α·K); an unseen slot: 0."""
        if not slots:
            return 0.0
        sheet = self.sheet or 0
        total, every = counts[-sheet, ""], counts[-sheet, SLOTS].get("", 0)
        every += sum(not counts[sheet, value] for value in self.values)
        spam, ham = (total.get(label, 0) + ALPHA * every for label in (SPAM, HAM))
        out, known = 0.0, 0
        for slot, times in slots.items():
            n = counts[sheet, slot]
            if n or slot in self.values:
                out += times * math.log((n.get(SPAM, 0) + ALPHA) / (n.get(HAM, 0) + ALPHA))
                known += times
        return out - known * math.log(spam / ham) if known else 0.0


def heard(said: Mapping[str, Any]) -> Callable[[Any], float]:
    """log P(number given spam) / P(number given ham) by what a plan says; 0 for a missing number."""
    if said["form"] == "cells":
        own = dict(zip(said["points"], said["own"], strict=True))
        general, centre, exponent = said["general"], said["centre"], said["exponent"]

        def by_cell(x: float) -> float:
            if x in own:
                return float(own[x])
            code = cell_code(x, centre, exponent, {})
            if not 0 <= code < len(general):
                raise LongWay
            return float(general[code])

        return partial(_asked, by_cell)
    if said["form"] == "rate":
        slope, start = float(said["slope"]), float(said["start"])
        return partial(_asked, lambda x: x * slope + start if x >= 0 else 0.0)
    spam, ham = said["curves"]
    return partial(_asked, lambda x: _log_density(x, *spam) - _log_density(x, *ham))


def _asked(says: Callable[[float], float], x: Any) -> float:
    if x is None:
        return 0.0
    if not isinstance(x, (int, float)) or not math.isfinite(x):
        raise LongWay
    return says(x)


def _log_density(x: float, location: float, scale: float, height: float, freedom: float | None) -> float:
    """Of a Gaussian, or of Student's t where it has degrees of freedom."""
    z = (x - location) / scale
    if not -_FAR <= z <= _FAR:
        raise LongWay
    return height - 0.5 * z * z if freedom is None else height - (freedom + 1) / 2 * math.log1p(z * z / freedom)
