"""Mail as a table, and a filter over it: messages from files and mailboxes to the columns that a model counts.

Imports `store`, `explain` and the rooms below. Begin with `message` (bytes → columns), then `filter`. `boxes` reads
files and folders, `parts`, `html` and `links` what a message is made of, `store` keeps what was learnt in one file.
A *message* is one mail as a row; a *verdict* is ham, spam or unsure, with its reasons.
"""

from .boxes import read_mail
from .filter import Filter, FilterSettings, Verdict
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
