"""What opening a served model has to see to: the lock, a journal that was never ended, and what came after the file.

The journal knows the digest of the counts after every operation. A model file is therefore as old as the last operation
that left its counts; what the journal has since is added, and must give the digest of the last operation. A file whose
counts no operation left is another model's, or was changed behind the journal's back, or comes from before an erasure,
which forgets all digests: then nothing is served, since rows could come back that were erased.

An erasure is announced in the journal, then the model file is written without the rows, then they are wiped. A process
that was killed in between has acknowledged nothing; if the file is written, the rest is made up for, and if not, the
erasure has not taken place.
"""

from __future__ import annotations

import contextlib
import os

from ..base.disk import locked
from .journal import Journal, Operation, RowChange, now
from .journal_file import JournalError
from .served import Served


def beside(path: str) -> str:
    """The journal of a model file."""
    return f"{path}.journal"


def take_lock(held: contextlib.ExitStack, path: str) -> None:
    """Take the lock that every command takes which changes the file; refused while another process has it."""

    def refuse() -> None:
        hint = "end that, or ask it: two that change one model would undo each other's work."
        raise JournalError(f"{path} is being served or changed by another process", hint=hint)

    held.enter_context(locked(path, refuse))


def clear_leftovers(path: str) -> None:
    """Take away a journal that somebody began and never ended; one with a past is refused."""
    journal = beside(path)
    if not os.path.exists(journal):
        return
    with Journal(journal, create=True) as found:
        if not found.beginning:
            hint = "put the model file back, or move the journal away."
            raise JournalError(f"there is a journal {journal}, but no model {path}", hint=hint)
    for end in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(journal + end)


def caught_up(journal: Journal, file: Served, path: str) -> tuple[Served, int]:
    """The model of a file with all that its journal has since, and how many rows that changed."""
    digest = file.tally.digest
    if journal.beginning:
        _begin(journal, file, path)
    state = journal.at(digest)
    announced = journal.announced()
    if announced is not None:
        if state is None and announced[0].digest == digest:
            journal.erase(*announced)
            state = journal.at(digest)
        else:
            journal.withdraw()
    journal.scrub()
    last = journal.last()
    if state is None or last is None:
        raise JournalError(
            f"{journal.path} does not know the state of {path}: it belongs to another model, or another program has "
            "changed the file, or it is from before an erasure",
            hint="put the right file in its place; or move the journal away, and the file is served without its past.",
        )
    net = journal.net_changes(state.number)
    rows = journal.rows_there(row for row, *_ in net)
    changes = [RowChange(rows[row], was, became) for row, was, became in net if row in rows]
    out = file.after(changes, last.number)
    if len(changes) < len(net) or out.tally.digest != last.digest:
        raise JournalError(
            f"{journal.path} is damaged: its rows do not add up to the digest of operation {last.number}",
            hint="restore journal and model from one backup; the model file can be used by itself.",
        )
    return out, len(changes)


def _begin(journal: Journal, file: Served, path: str) -> None:
    """Note the first operation of a new journal, or of one whose rows are those of the model file."""
    counted = file.counted(journal.all_rows())
    if counted.rows and counted.digest != file.tally.digest:
        hint = f"move {journal.path} away; the model is served without it."
        raise JournalError(f"{journal.path} was begun with other rows than those of {path}, and never ended", hint=hint)
    kind = "begin" if counted.rows else "open"
    journal.begun(Operation(1, kind, "", now(), file.tally.rows, "", file.tally.digest))
