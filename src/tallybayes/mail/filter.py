"""A mail filter: learn, unlearn and score messages, with its state in one file.

learn    one transaction: forget the message if it was learnt with the other label, then count it
unlearn  subtract exactly the row that was counted
score    spam from one probability upwards, ham up to another, unsure between, and unsure before there is evidence
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..base.errors import CannotForget, DataError
from ..base.wording import printable
from ..data.schema import Schema
from ..explain.explanation import Explanation
from ..model.model import Model
from ..tally.tally import Tally
from .answers import HAM, LABELS, SPAM, FilterSettings, Scorer, Verdict, text_weight
from .learnt import Learnt, pack
from .message import Message, mail_schema, read_message
from .plan import BELIEF
from .state import LongWay, StateError
from .store import StateChange, Store

BATCH_MESSAGES = 500  # per transaction of `train`
BATCH_BYTES = 32 << 20


@dataclass(frozen=True)
class Trained:
    """What training did: messages new, learnt before with the other label, and known already."""

    new: int = 0
    moved: int = 0
    known: int = 0

    def __add__(self, other: Trained) -> Trained:
        return Trained(self.new + other.new, self.moved + other.moved, self.known + other.known)


class Filter:
    """A spam filter over one state file, safe under kill -9 and for several processes and threads at once.

    A file that does not exist is made with these settings, unless `create=False`; an existing file brings its own, and
    settings given beside it are for this object only.

    >>> from tallybayes.mail import Filter, read_mail
    >>> box = Filter("mail.tally")
    >>> box.train(read_mail(tb.example("inbox")))
    Trained(new=60, moved=0, known=0)
    >>> print(box.score(b"Subject: You have won\\n\\nClaim your prize: click here now"))
    spam, probability=0.9999
    >>> box.close()
    """

    def __init__(
        self, path: str | os.PathLike[str], settings: FilterSettings | None = None, *, create: bool = True
    ) -> None:
        kept = asdict(settings or FilterSettings())
        self.store = Store(path, mail_schema() if create else None, kept)
        if settings is None:
            try:
                settings = FilterSettings.of_state(self.store.settings, self.store.path)
            except StateError:
                self.close()
                raise
        self.settings = settings
        self._scorer = Scorer(self.store, settings, self._explain)
        self._model: tuple[tuple[int, int], Model] | None = None
        self._learnt: tuple[tuple[int, int], dict[str, int]] | None = None

    def close(self) -> None:
        """Give the file back."""
        self.store.close()

    def __enter__(self) -> Filter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- learning

    def learn(self, raw: bytes, label: str) -> bool:
        """Learn one message; whether that changed anything. One learnt with the other label is first forgotten.

        >>> from tallybayes.mail import Filter
        >>> with Filter("learn.tally") as box:
        ...     box.learn(b"Subject: Your prize: claim it now", "spam"), box.learnt
        (True, {'ham': 0, 'spam': 1})
        """
        return self.train([(label, raw)]).known == 0

    def unlearn(self, raw: bytes) -> str:
        """Forget a learnt message as if it had never come; the label it had."""
        message = self._read(raw)
        with self.store.change() as change:
            gone = self.store.find_message(message)
            if gone is None:
                raise CannotForget(
                    f"the message {printable(message.id)} has not been learnt; nothing has been forgotten",
                    hint="give the message with the headers and the text that it had when it was learnt.",
                )
            change.forget(gone.id)
        return gone.label

    def train(self, messages: Iterable[Sequence[Any]]) -> Trained:
        """Learn many messages, given as (label, raw) or as `read_mail` gives them, a transaction per few hundred."""
        total = Trained()
        for batch in _batches(messages):
            read = [(label, self._read(raw)) for label, raw in batch]
            with self.store.change() as change:
                done = [self._learn(change, label, message) for label, message in read]
            total = sum(done, total)
        return total

    def _learn(self, change: StateChange, label: str, message: Message) -> Trained:
        found = self.store.find_message(message)
        if found is not None and found.label == label:
            return Trained(known=1)
        if found is not None:
            change.forget(found.id)
        row = self._with_facts(message)
        change.learn(Learnt(message.id, label, row, message.sender, message.fingerprint))
        return Trained(new=found is None, moved=found is not None)

    def _read(self, raw: bytes) -> Message:
        return read_message(raw, self.settings.mail)

    def _with_facts(self, message: Message) -> dict[str, Any]:
        """The row with what only the state knows, from all learnt messages but this one."""
        found = self.store.find_message(message)
        own = message.id if found is None else found.id
        return message.with_facts(
            self.store.sender_known(message.sender, HAM, besides=own),
            self.store.seen_before(message.fingerprint, besides=own),
        )

    # ---- answers

    def score(self, raw: bytes) -> Verdict:
        """The answer about one message, learnt or not, by what it has; nothing changes."""
        try:
            return self._scorer.score(raw)
        except LongWay:
            return self.score_by_model(raw)

    def score_by_model(self, raw: bytes) -> Verdict:
        """The same answer from the model of all that was learnt: for files of older releases, and as the reference."""
        early = Verdict.too_early(self.settings, self.learnt)
        if early is not None:
            return early
        message = self._read(raw)
        row = self._with_facts(message)
        model = self._model_for(row)
        probability = float(model.predict_proba([row])[0, model.classes.index(SPAM)])
        return Verdict.by(self.settings, probability, message.notes, lambda: model.explain([row]))

    def _model_for(self, row: dict[str, Any]) -> Model:
        """The model with the weights that a row's texts have."""
        model = self.model
        return replace(model, settings=replace(model.settings, weights=text_weights(model.schema, row)))

    def _explain(self, row: dict[str, Any]) -> Explanation:
        return self._model_for(row).explain([row])

    @property
    def learnt(self) -> dict[str, int]:
        """How many messages of each class have been learnt; counted again only after a change, by whichever process."""
        version = self.store.version
        if self._learnt is None or self._learnt[0] != version:
            self._learnt = (version, {**dict.fromkeys(LABELS, 0), **self.store.learnt()})
        return dict(self._learnt[1])

    @property
    def tally(self) -> Tally:
        """The exact tally of all learnt messages."""
        return self.store.tally()

    @property
    def model(self) -> Model:
        """What the tally makes one believe; estimated again only after a change, by whichever process."""
        version = self.store.version
        if self._model is None or self._model[0] != version:
            self._model = (version, self.tally.model(BELIEF))
        return self._model[1]

    @property
    def digest(self) -> str:
        """SHA-256 of the whole state: the tally, and every learnt message. Forgetting restores it."""
        out = hashlib.sha256(b"tallybayes mail 1\n" + self.tally.digest.encode())
        for m in self.store.messages():
            out.update(pack(asdict(m)))
        return out.hexdigest()


def text_weights(schema: Schema, row: Mapping[str, Any]) -> dict[str, float]:
    """What the evidence of each text column counts, by how many words the row has there."""
    out = {}
    for column in schema.counted:
        if column.text is not None and row.get(column.reads):
            out[column.name] = text_weight(len(column.text.tokens(row[column.reads])))
    return out


def _batches(messages: Iterable[Sequence[Any]]) -> Iterator[list[tuple[str, bytes]]]:
    """Labelled messages in pieces that one transaction takes; a label other than spam and ham is refused."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    for given in messages:
        if not isinstance(given, (list, tuple)) or len(given) < 2:
            raise DataError(
                f"a {type(given).__name__} where a label and a message should be",
                hint="give (label, bytes) of each message, or what read_mail gives.",
            )
        label, raw, *where = given
        if label not in LABELS:
            place = f" ({printable(where[0], 200)})" if where else ""
            raise DataError(
                f"a message{place} with the label {printable(label)!r}"
                if label is not None
                else f"a message{place} without a label",
                hint="the labels are 'spam' and 'ham': name the folders so, or use --spam PLACE and --ham PLACE.",
            )
        batch.append((label, raw))
        size += len(raw)
        if len(batch) >= BATCH_MESSAGES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
