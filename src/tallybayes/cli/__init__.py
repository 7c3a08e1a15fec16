"""The commands, one file per noun, each a thin shell: it reads options, calls the library, and shows what came back.

May import every room. Begin with `running`, which has the exit codes, and `program`, the group of all commands. Only
click is imported at the top of these files; the library is loaded when a command runs, so that help and completion are
quick. `running`, `terminal` and `one_message` do without click, too: a mail server starts them for every message.
A *screen* is what a command prints for a person, a *page* is a file of HTML or Markdown. `reference` stands alone: it
is a command of its own, which writes docs/commands.md. `program` stands alone: it loads every command, and `running`
does without it where it can. `serving` stands alone: it is the only command that opens `serve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code."""
    from .running import main as run

    run(arguments)
