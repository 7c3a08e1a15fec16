"""What a client is told when something is refused: problem+json (RFC 9457) in our own words, with a hint.

Every kind of refusal has a name of its own and a status; a program goes by the name, a person reads the rest.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from ..base.errors import (
    CannotEstimate,
    CannotForget,
    DataError,
    FileError,
    SchemaError,
    SettingsError,
    TallybayesError,
)
from .desk import CannotUndo
from .journal import NotInJournal
from .journal_file import JournalError

# name → status and title
KINDS: dict[str, tuple[int, str]] = {
    "not-json": (400, "The body is not JSON as it is expected"),
    "token": (401, "The token is missing or wrong"),
    "foreign-page": (403, "A page of another place has sent this"),
    "not-found": (404, "There is no such thing here"),
    "method": (405, "This address does not take this method"),
    "slow-body": (408, "The body came too slowly"),
    "conflict": (409, "This contradicts what has been done"),
    "too-many-bytes": (413, "The body is too large"),
    "not-a-json-body": (415, "The body is said to be something else than JSON"),
    "wrong-host": (421, "This server does not go by that name"),
    "data": (422, "The data cannot be read or counted"),
    "too-many-rows": (422, "Too many rows at once"),
    "too-many-fields": (422, "A row has too many fields"),
    "failed": (500, "Something is wrong with the server"),
    "not-yet": (501, "This release cannot do that yet"),
    "disk": (503, "The disk does not take it"),
    "too-long": (504, "The answer takes too long"),
}
_OF_ERRORS: list[tuple[type[Exception], str]] = [
    (NotInJournal, "not-found"),
    (CannotForget, "conflict"),
    (CannotUndo, "conflict"),
    (CannotEstimate, "conflict"),
    (JournalError, "disk"),
    (FileError, "disk"),
    (DataError, "data"),
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

    @property
    def status(self) -> int:
        """The status of the answer."""
        return KINDS[self.kind][0]

    def to_dict(self) -> dict[str, Any]:
        """The members of the answer."""
        out = {"type": f"urn:tallybayes:{self.kind}", "title": KINDS[self.kind][1], "status": self.status}
        return {**out, "detail": self.detail, **({"hint": self.hint} if self.hint else {})}

    def response(self) -> JSONResponse:
        """The answer."""
        return JSONResponse(self.to_dict(), self.status, self.headers, "application/problem+json")


async def answered(request: Request, error: Exception) -> JSONResponse:
    """The answer to a request that ended in an error of Starlette's or of ours."""
    status = getattr(error, "status_code", None)
    if status == 404:
        return ApiProblem("not-found", f"there is nothing at {request.url.path[:200]}", "see /openapi.json.").response()
    if status == 405:
        allowed = (getattr(error, "headers", None) or {}).get("Allow", "")
        found = f"{request.url.path[:200]} does not take {request.method}"
        return ApiProblem(
            "method", found, f"take {allowed}." if allowed else "see /openapi.json.", allow=allowed
        ).response()
    return ApiProblem.of(error).response()
