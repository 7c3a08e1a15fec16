"""The group of all commands: the library's verbs, `tallybayes fit | predict | …`, and `tallybayes mail`."""

from __future__ import annotations

from typing import Any

import click

from .answers import explain, importance, predict
from .auditing import sources, suspicious
from .counting import forget, merge, recalibrate, sets, shift, subtract, update
from .fitting import fit, tune
from .made import datasets
from .mail import mail
from .measuring import compare, evaluate
from .pages import export, report, share, show_
from .reference import reference_
from .running import NobodyReads
from .serving import serve
from .windows import change, windows


class _InOrder(click.Group):
    """A group that lists its commands in the order in which a person meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names as they were added."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """What the command gives."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise NobodyReads(*error.args) from None


@click.group(cls=_InOrder, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tallybayes")
def tallybayes() -> None:
    """Naive Bayes by exact counting: train by adding, forget by subtracting, explain by showing the sum."""


for _command in (
    fit, predict, evaluate, explain, importance, show_, report, tune, compare, suspicious, sources, update, forget,
    merge, subtract, recalibrate, sets, shift, windows, change, export, share, serve, mail, datasets, reference_,
):  # fmt: skip
    tallybayes.add_command(_command)
