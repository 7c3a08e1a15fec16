"""The place where models are served: a folder, out of which nothing leads, and the model that is open, if one is."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from ..base.disk import Stamp, stamp
from ..base.errors import TallybayesError
from ..store.model_file import load_stored
from .api import Api
from .desk import Desk
from .fitting import EFFORTS, Fitting, Order
from .guard import ServeLimits
from .looking import AS_USUAL, TableChoices, TableFile, TableLook
from .problems import ApiProblem
from .tables import MODELS, TABLES, is_table

LONGEST_NAME = 120  # characters of a file's name
_MOST_LOOKS = 3  # tables whose rows are remembered while somebody decides about them
_LARGEST_READ = 50_000_000  # bytes of a model file that is read only to be listed
_PATIENCE = 5.0  # seconds that a fit has to end when the server does


@dataclass(frozen=True)
class ModelFacts:
    """What a list says of a model: rows and classes, when its file was written, or why it cannot be read."""

    name: str
    written: dt.datetime
    rows: int | None = None
    target: str = ""
    classes: tuple[str, ...] = ()
    problem: str = ""


class Place:
    """A folder and an open desk. Threads may share it: who has taken `api` keeps it for the time of one answer."""

    def __init__(self, folder: str, *, desk: Desk | None = None, limits: ServeLimits | None = None) -> None:
        self.folder, self.limits = os.path.realpath(folder), limits or ServeLimits()
        self._turn = threading.Lock()
        self._opening = threading.Lock()  # one model is opened at a time, or begun
        self._api = None if desk is None else Api(desk, self.limits)
        self._closed = False
        self.fitting: Fitting | None = None  # the last one, which may go on
        self._looks: dict[tuple[str, Stamp, TableFile], TableLook] = {}
        self._facts: dict[str, tuple[Stamp, ModelFacts]] = {}
        self._coming: set[str] = set()  # names that files are about to have

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
        return [name for name in self._names() if is_table(name)]

    def look(self, name: str, file: TableFile = AS_USUAL) -> TableLook:
        """What a table of the folder holds if it is written so; the last few are remembered until the file changes."""
        path = self.path_of(name)
        if not is_table(name) or not os.path.isfile(path):
            hint = f"a table is a file whose name ends in {', '.join(TABLES)}."
            raise ApiProblem("not-found", f"there is no table {name!r} here", hint)
        key = name, stamp(os.stat(path)), file
        with self._turn:
            found = self._looks.pop(key, None)
        try:
            found = found or TableLook(path, file)
        except TallybayesError as error:
            raise ApiProblem.of(error).without(self.folder) from None
        with self._turn:
            self._looks[key] = found
            for old in list(self._looks)[:-_MOST_LOOKS]:
                del self._looks[old]
        return found

    def facts(self, name: str) -> ModelFacts:
        """What a list says of a model of the folder."""
        path = self.path_of(name)
        try:
            status = os.stat(path)
        except OSError:
            return ModelFacts(name, dt.datetime.now(dt.UTC), problem="it has gone")
        known = self._facts.get(name)
        if known is None or known[0] != stamp(status):
            known = self._facts[name] = stamp(status), _facts(path, name, status)
        return known[1]

    @contextlib.contextmanager
    def coming(self, name: str) -> Iterator[str]:
        """The path for a new file of this name, or of one like it where that is taken: "flats 2.csv"."""
        with self._turn:
            path = self.path_of(name)
            end = next((end for end in (*MODELS, *TABLES) if name.lower().endswith(end)), "")
            stem, number = name[: len(name) - len(end)], 1
            while os.path.lexists(path) or path in self._coming:
                number += 1
                path = self.path_of(f"{stem} {number}{name[len(stem) :]}")
            self._coming.add(path)
        try:
            yield path
        finally:
            with self._turn:
                self._coming.discard(path)

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
            ended: Desk | None = desk  # of a place that is closed itself
            if not self._closed:
                ended = None if self._api is None else self._api.desk
                self._api = Api(desk, self.limits)
        if ended is not None:
            ended.close()

    def open_model(self, name: str) -> None:
        """Serve a model of the folder from now on."""
        path = self.path_of(name)
        with self._opening:
            if not self.serves(path):
                self.take(Desk.open(path))

    def serves(self, path: str) -> bool:
        """Whether this model is the one that is open."""
        return self._api is not None and os.path.realpath(self._api.desk.path) == path

    def begin(
        self, table: str, name: str, target: str, choices: TableChoices, effort: str = "usual", who: str = ""
    ) -> Fitting:
        """Make a model of a table in the background, and serve it once it is made; one at a time."""
        source, ending = self.path_of(table), "" if name.endswith(MODELS) else MODELS[0]
        path = self.path_of(name + ending)
        if effort not in EFFORTS:
            raise ApiProblem("data", f"there is no effort {effort[:60]!r}", f"take {' or '.join(EFFORTS)}.")
        with self._opening:
            if self.fitting is not None and self.fitting.running:
                found = f"{self.fitting.order.name} is being made already"
                raise ApiProblem("conflict", found, "wait for it, or cancel it on the page /start.")
            if os.path.lexists(path):
                raise ApiProblem("conflict", f"there is a model {name + ending!r} already", "give another name.")
            self.fitting = Fitting(Order(source, path, target, choices, effort, who), self.take)
            self.fitting.start()
            return self.fitting

    def close(self) -> None:
        """Fold and close what is open, and let nothing more be made."""
        if self.fitting is not None and self.fitting.running:
            self.fitting.cancel()
            self.fitting.wait(_PATIENCE)
        with self._turn:
            before, self._api, self._closed = self._api, None, True
        if before is not None:
            before.desk.close()


def _facts(path: str, name: str, status: os.stat_result) -> ModelFacts:
    when = dt.datetime.fromtimestamp(status.st_mtime, dt.UTC)
    if status.st_size > _LARGEST_READ:
        return ModelFacts(name, when)
    try:
        stored = load_stored(path)
    except TallybayesError as error:
        return ModelFacts(name, when, problem=error.found)
    rows = None if stored.tally is None else stored.tally.rows
    return ModelFacts(name, when, rows, stored.schema.target, stored.tally.classes if stored.tally else ())
