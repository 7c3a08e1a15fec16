"""What a client is told when something is refused: problem+json (RFC 9457) in our own words, with a hint.

Every kind of refusal has a name of its own and a status; a program goes by the name, a person reads the rest.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ..base.errors import (
    CannotEstimate,
    CannotForget,
    DataError,
    FileError,
    MissingExtra,
    ModelFileError,
    SchemaError,
    SettingsError,
    TallybayesError,
)
from .journal import CannotUndo, NotInJournal
from .journal_file import JournalClosed, JournalError

MEDIA_TYPE = "application/problem+json"
# name → status and title
KINDS: dict[str, tuple[int, str]] = {
    "not-json": (400, "The body is not JSON as it is expected"),
    "token": (401, "The token is missing or wrong"),
    "foreign-page": (403, "A page of another place has sent this"),
    "not-found": (404, "There is no such thing here"),
    "method": (405, "This address does not take this method"),
    "slow-body": (408, "The body came too slowly"),
    "conflict": (409, "This contradicts what has been done"),
    "no-model": (409, "No model is open"),
    "switched": (409, "The model was closed meanwhile"),
    "too-many-bytes": (413, "The body is too large"),
    "not-a-form": (400, "The body is not a form as it is expected"),
    "not-a-json-body": (415, "The body is said to be something else than JSON"),
    "wrong-host": (421, "This server does not go by that name"),
    "data": (422, "The data cannot be read or counted"),
    "too-many-rows": (422, "Too many rows at once"),
    "too-many-fields": (422, "A row has too many fields"),
    "failed": (500, "Something is wrong with the server"),
    "disk": (503, "The disk does not take it"),
    "too-long": (504, "The answer takes too long"),
}
_OF_ERRORS: list[tuple[type[Exception], str]] = [
    (NotInJournal, "not-found"),
    (CannotForget, "conflict"),
    (CannotUndo, "conflict"),
    (CannotEstimate, "conflict"),
    (JournalClosed, "switched"),
    (JournalError, "disk"),
    (FileError, "disk"),
    (DataError, "data"),
    (ModelFileError, "data"),
    (MissingExtra, "data"),
    (SchemaError, "data"),
    (SettingsError, "data"),
]


class ApiProblem(Exception):
    """A refusal: its kind, what was found, and how to mend it."""

    def __init__(self, kind: str, detail: str, hint: str = "", **headers: str) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.hint = kind, detail, hint
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    @classmethod
    def of(cls, error: Exception) -> ApiProblem:
        """The refusal that an error means; what nobody foresaw is told without its inside."""
        if isinstance(error, ApiProblem):
            return error
        if isinstance(error, TallybayesError):
            kind = next((kind for each, kind in _OF_ERRORS if isinstance(error, each)), "failed")
            return cls(kind, error.found, error.hint)
        return cls("failed", "an error that nobody foresaw", "look into the server's log; nothing has been changed.")

    def without(self, folder: str) -> ApiProblem:
        """The same, naming files of a folder without it: whoever looks at a page need not know where it lies."""
        beside = os.path.join(folder, "")
        at = "in " if self.detail.startswith(beside) else ""
        return ApiProblem(self.kind, at + self.detail.replace(beside, ""), self.hint.replace(beside, ""))

    @property
    def status(self) -> int:
        """The status of the answer."""
        return KINDS[self.kind][0]

    def to_dict(self) -> dict[str, Any]:
        """The members of the answer."""
        out = {"type": f"urn:tallybayes:{self.kind}", "title": KINDS[self.kind][1], "status": self.status}
        return {**out, "detail": self.detail, **({"hint": self.hint} if self.hint else {})}

    @property
    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer."""
        return self.status, {"content-type": MEDIA_TYPE, **self.headers}, json.dumps(self.to_dict()).encode()
