"""`tallybayes serve`: a model that is asked, taught and corrected over HTTP, with its journal beside it."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

import click

from .choices import Choices
from .terminal import say

if TYPE_CHECKING:
    from ..serve.desk import Desk
    from ..serve.place import Place


@click.command(short_help="Serve a model over HTTP, with a journal.")
@click.argument("model", type=click.Path(), default=".")
@click.option("--fit", "data", metavar="DATA", help="Make MODEL of these rows first; the journal keeps them.")
@click.option("--target", metavar="COLUMN", help="With --fit: the column to predict; rows without it are the pool.")
@click.option("--set", "sets", multiple=True, metavar="COLUMN=KIND", help="With --fit: what a column is. Repeatable.")
@click.option("--pool", metavar="DATA", help="Rows that wait for a label, besides those that wait already.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8000, show_default=True, help="0 takes a free one.")
@click.option("--name", "names", multiple=True, metavar="HOST", help="A name the server goes by, too. Repeatable.")
@click.option("--token-file", metavar="FILE", help="The token that is asked of everybody; needed beyond this machine.")
def serve(
    model: str, data: str | None, target: str | None, sets: tuple[str, ...], pool: str | None, host: str, port: int,
    names: tuple[str, ...], token_file: str | None,
) -> None:  # fmt: skip
    """Pages in the browser, and an API that /openapi.json describes, until SIGTERM or Ctrl-C.

    MODEL is a model file; or a folder, in which models are made and opened on the page: the current one if nothing is
    said. What is learnt is in MODEL.journal before it is acknowledged, and in MODEL when the server ends.
    """
    from ..serve.guard import check_token, is_loopback

    token = _token_in(token_file)
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(32)
        say(f"the token, which is not shown again: {token}")
    check_token(host, token)
    from ..serve.app import load_uvicorn, run
    from ..serve.place import Place

    load_uvicorn()  # refused before a model is made
    if os.path.isdir(model):
        if data is not None or pool is not None or target is not None or sets:
            raise click.UsageError("--fit, --target, --set and --pool go with a model file, not with a folder")
        place = Place(model)
    else:
        place = Place.of(_opened(model, data, target, sets))
    with contextlib.closing(place):
        if pool is not None:
            done = place.desk.add_to_pool(pool, who="--pool")
            say(f"{len(done.rows):,} rows more wait for a label")
        run(place, host=host, port=port, token=token, hosts=names, ready=lambda address: say(_ready(place, address)))
        last = f"{place.desk.path} has everything up to operation {place.desk.version:,}" if place.is_open else ""
    if last:
        say(last)


def _ready(place: Place, address: str) -> str:
    if not place.is_open:
        return f"open {address} in a browser: models are kept in {place.folder}; Ctrl-C ends it"
    waiting = f", {place.desk.pool_size():,} rows wait for a label" if place.desk.pool_size() else ""
    rows = f"{place.desk.served.tally.rows:,} rows counted{waiting}"
    return f"serving {place.desk.path} on {address}: {rows}; Ctrl-C ends it"


def _opened(model: str, data: str | None, target: str | None, sets: tuple[str, ...]) -> Desk:
    from ..serve.desk import Desk

    if data is None:
        if target is not None or sets:
            raise click.UsageError("--target and --set go with --fit, which makes a new model")
        return Desk.open(model)
    if target is None:
        raise click.UsageError("--fit needs --target, the column to predict")
    choices = Choices.of(sets)
    if choices.families:
        raise click.UsageError("--set takes kinds here; fit the model with `tallybayes fit` to choose families")
    return Desk.begin(model, data, target=target, who="--fit", kinds=choices.kinds)


def _token_in(path: str | None) -> str | None:
    """The token in a file that only its owner should read."""
    from ..base.disk import read_whole
    from ..base.errors import SettingsError

    if path is None:
        return None
    token = read_whole(path).decode("utf-8", "replace").strip()
    if os.name == "posix" and os.stat(path).st_mode & 0o077:
        raise SettingsError(f"others can read the token in {path}", hint=f"keep it to yourself: chmod 600 {path}")
    return token
