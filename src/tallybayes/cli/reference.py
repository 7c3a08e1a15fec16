"""The reference page, made of the help of every command: `tallybayes reference > docs/commands.md`."""

from __future__ import annotations

from collections.abc import Iterator

import click

_WIDE = 78  # what click takes on a terminal of 80 columns
_OPENING = """# Commands

This page is what `--help` says, command by command; it is made by `tallybayes reference`.
[First steps](first_steps.md) shows them at work, [the mail page](mail.md) the spam filter.

The words are those of the library. The model comes first, then the data. DATA is a file (CSV, TSV, JSON lines, Parquet
or Arrow, also packed), several of them, a folder, a quoted pattern such as `'part-*.csv'`, or `-` for standard input; a
MODEL may be `-`, too. What a person reads goes to a terminal as tables; what a pipe gets is plain.

| exit code | means |
|---|---|
| 0 | done |
| 1 | could not finish: the disk is full, a file cannot be written, interrupted; nothing is left half-written |
| 2 | bad input or usage; the message says what was found, where, and how to mend it |
| 143 | ended by SIGTERM, as Ctrl-C would have ended it; nothing is left half-written |

`mail` answers by its exit code: 0 spam, 1 ham, 2 unsure, 3 error.

Completion of commands and options, for bash (put it into `~/.bashrc`; zsh and fish likewise):

```sh
eval "$(_TALLYBAYES_COMPLETE=bash_source tallybayes)"
```
"""


def reference(group: click.Group, name: str = "tallybayes") -> str:
    """The page in Markdown; its blocks are run and compared like those of any page."""
    return _OPENING + "".join(
        f"\n## {title}\n\n```console\n$ {title} --help\n{text}\n```\n" for title, text in _help(group, name)
    )


def _help(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """Every command and what it says about itself, a group before its commands."""
    short = name.rpartition(" ")[2]
    with click.Context(command, info_name=short, parent=parent, terminal_width=_WIDE) as context:
        context.help_option_names = ["-h", "--help"]
        yield name, command.get_help(context)
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                found = command.get_command(context, each)
                if found is None or found.hidden:
                    continue
                yield from _help(found, f"{name} {each}", context)


@click.command("reference", hidden=True)
@click.pass_context
def reference_(context: click.Context) -> None:
    """Print the reference page of all commands."""
    root = context.find_root().command
    assert isinstance(root, click.Group)
    click.echo(reference(root), nl=False)
