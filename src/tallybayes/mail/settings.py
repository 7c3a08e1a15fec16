"""What the reading of mail depends on."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..base.errors import SettingsError


@dataclass(frozen=True)
class MailSettings:
    """What the reading of mail depends on: the owner of the mailbox, and how much of a message is read."""

    owner: str = ""  # names of the mailbox's owner, with commas between them: "Ada, Lovelace"
    max_bytes: int = 10_000_000  # of the message
    max_text: int = 200_000  # characters of the body that are counted
    max_parts: int = 200  # of a MIME message
    max_depth: int = 20  # of parts in parts
    max_headers: int = 1_000  # lines of headers
    max_header: int = 20_000  # characters of one header
    max_links: int = 2_000

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "owner" and not isinstance(value, str):
                raise SettingsError(f"owner={value!r}", hint="give names with commas between them: 'Ada, Lovelace'.")
            if f.name != "owner" and (not isinstance(value, int) or value < 1):
                raise SettingsError(
                    f"{f.name}={value!r}", hint=f"take a whole number, 1 or more; {f.default} is usual."
                )


USUAL = MailSettings()
