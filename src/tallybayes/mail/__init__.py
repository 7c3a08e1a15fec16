"""Mail as a table, and a filter over it: messages from files and mailboxes to the columns that a model counts.

Imports `store`, `explain` and the rooms below. Begin with `message` (bytes → columns), then `filter`. `boxes` reads
files and folders, `parts`, `html` and `links` what a message is made of. `store` keeps what was learnt in one file,
`sums` its check sums; `state` and `answers` read of it what one message needs, by the `plan` that the store writes, and
load no NumPy: a mail server starts them for every message. `serve` answers the clients of SpamAssassin's
`spamd` from a socket.
A *message* is one mail as a row; a *verdict* is ham, spam or unsure, with its reasons.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import FilterSettings, Verdict
    from .boxes import read_mail
    from .filter import Filter
    from .html import strip_html
    from .message import Message, mail_schema, read_message
    from .parts import MailSettings

__all__ = [
    "Filter",
    "FilterSettings",
    "MailSettings",
    "Message",
    "Verdict",
    "mail_schema",
    "read_mail",
    "read_message",
    "strip_html",
]
# where each name lives: imported when it is first asked for, as in the package itself
_HOMES = {
    "Filter": "filter", "FilterSettings": "answers", "MailSettings": "parts", "Message": "message",
    "Verdict": "answers", "mail_schema": "message", "read_mail": "boxes", "read_message": "message",
    "strip_html": "html",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
