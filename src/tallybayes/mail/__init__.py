"""Mail as a table: messages from files and mailboxes to the columns that a model counts."""

from .boxes import read_mail
from .message import MailSettings, Message, mail_schema, read_message
from .striphtml import strip_html

__all__ = ["MailSettings", "Message", "mail_schema", "read_mail", "read_message", "strip_html"]
