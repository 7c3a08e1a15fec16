"""The place where models are served: a folder, out of which nothing leads, and the model that is open, if one is."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

from .api import Api
from .desk import Desk
from .guard import ServeLimits
from .problems import ApiProblem

MODELS = (".tb.parquet", ".tb")
TABLES = (".csv", ".tsv", ".txt", ".jsonl", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz")
LONGEST_NAME = 120  # characters of a file's name


class Place:
    """A folder and an open desk. Threads may share it: who has taken `api` keeps it for the time of one answer."""

    def __init__(self, folder: str, *, desk: Desk | None = None, limits: ServeLimits | None = None) -> None:
        self.folder, self.limits = os.path.realpath(folder), limits or ServeLimits()
        self._turn = threading.Lock()
        self._api = None if desk is None else Api(desk, self.limits)

    @classmethod
    def of(cls, desk: Desk, limits: ServeLimits | None = None) -> Place:
        """The place of a model that is open already: the folder that its file lies in."""
        return cls(os.path.dirname(desk.path) or ".", desk=desk, limits=limits)

    @property
    def is_open(self) -> bool:
        """Whether there is a model to ask."""
        return self._api is not None

    @property
    def api(self) -> Api:
        """What answers for the model that is open; refused where none is."""
        if self._api is None:
            raise ApiProblem("no-model", "no model is open", "open or make one on the page /start.")
        return self._api

    @property
    def desk(self) -> Desk:
        """The desk of the model that is open."""
        return self.api.desk

    # ---- the folder

    def path_of(self, name: str) -> str:
        """Where a file of this name lies; refused if that is not in the folder itself."""
        plain = name.isprintable() and name.strip() == name and not name.startswith((".", "~", "-"))
        if not plain or any(sign in name for sign in '/\\:*?"<>|') or not 0 < len(name) <= LONGEST_NAME:
            hint = "give a file of the folder by its name: letters, digits, dots, dashes."
            raise ApiProblem("not-found", f"{name[:LONGEST_NAME]!r} is no name of a file here", hint)
        path = os.path.join(self.folder, name)
        if os.path.realpath(path) != path:  # a link may lead outside
            raise ApiProblem("not-found", f"{name!r} leads to another place", "copy the file itself into the folder.")
        return path

    def models(self) -> list[str]:
        """The names of the models in the folder."""
        return [name for name in self._names() if name.endswith(MODELS)]

    def tables(self) -> list[str]:
        """The names of the tables in the folder."""
        return [name for name in self._names() if name.lower().endswith(TABLES) and not name.endswith(MODELS)]

    def _names(self) -> Iterator[str]:
        for name in sorted(os.listdir(self.folder)):
            try:
                if os.path.isfile(self.path_of(name)):
                    yield name
            except ApiProblem:
                continue

    # ---- the model

    def take(self, desk: Desk) -> None:
        """Serve this desk from now on; the one before is folded and closed."""
        with self._turn:
            before, self._api = self._api, Api(desk, self.limits)
        if before is not None:
            before.desk.close()

    def open_model(self, name: str) -> None:
        """Serve a model of the folder from now on."""
        path = self.path_of(name)
        if self._api is not None and os.path.realpath(self._api.desk.path) == path:
            return
        self.take(Desk.open(path))

    def close(self) -> None:
        """Fold and close what is open."""
        with self._turn:
            before, self._api = self._api, None
        if before is not None:
            before.desk.close()
