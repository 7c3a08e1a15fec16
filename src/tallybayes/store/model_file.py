"""The model file: one Parquet file that holds a tally, its schema and the settings, checked before it is believed.

The rows are the tally (see `tally.table`), for any reader of Parquet to look at and to sum. The key-value metadata hold

    tallybayes.format     the version of this format
    tallybayes.kind       "model" or "tally"
    tallybayes.release    the release of tallybayes that wrote the file
    tallybayes.schema     what was counted, JSON as schema.save writes it
    tallybayes.sheets     the amounts of each sheet, JSON
    tallybayes.settings   every choice made after counting, JSON (see `settings_json`)
    tallybayes.families   the families that "auto" chose, JSON: they stay chosen until the model is updated
    tallybayes.least_rows of a copy for others: what fewer rows had was left out of it
    tallybayes.written    the tables of a model that was written by hand and has no tally, JSON
    tallybayes.notes      whatever else the model remembers, JSON
    tallybayes.provenance when the model was made, from which files, and what has happened since, JSON
    tallybayes.digest     SHA-256 of the logical content, the same however the rows are stored
    tallybayes.checksum   SHA-256 of the bytes of the file, with zeros in the place of these 64 digits

The checksum is compared before any byte is interpreted. There is no code in the file, and none is run on loading.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..base import canon
from ..base.disk import read_whole, write_atomically
from ..base.errors import ModelFileError, SettingsError, in_our_words
from ..data.schema import Column, Schema
from ..families import Auto, Family, default_family, family_for
from ..families.settings import Settings
from ..families.settings_json import families_from_json, families_to_json, settings_from_json, settings_to_json
from ..model.provenance import History
from ..tally.table import sheets_of, table_of, tally_of
from ..tally.tally import Tally
from .parquet import PREFIX, Parts, pack, unpack

if TYPE_CHECKING:
    from ..model.model import Model

FORMAT = 1
_PLACES, _PLACES_PER_ENTRY = 1 << 27, 1_000  # of a table that an untrusted file may ask for: 1 GB, or 8 kB per entry
_HINT = "the file was not written by tallybayes."
_RELEASE_HINT = "a newer release of tallybayes wrote the file: update tallybayes to read it."


@dataclass(frozen=True)
class Stored:
    """What a file holds: a tally or written tables, and what was believed of them."""

    schema: Schema
    settings: Settings = field(default_factory=Settings)
    tally: Tally | None = None
    families: Mapping[str, Family] = field(default_factory=dict)  # what "auto" chose
    written: Mapping[str, Any] | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "model"
    history: History = field(default_factory=History)

    def model(self) -> Model:
        """The model, estimated again: the same tally and settings give the same numbers to the last bit."""
        from ..model.estimate import estimate
        from ..model.written import written_from_json

        with understood():
            if self.tally is None:
                model = written_from_json(self.schema, self.settings, self.written)
            else:
                model = estimate(self.tally, self.settings, known=self.families)
        return replace(model, notes=dict(self.notes), history=self.history)


def understood() -> AbstractContextManager[None]:
    """Within it, whatever goes wrong with the content of a file is said in our words."""
    found = "the file has the right checksum, but means nothing"
    hint = "it was not written by tallybayes: save or export the model again."
    return in_our_words(ModelFileError, found, hint=hint, more=(pa.ArrowException,))


# ---- bytes


def to_bytes(model: Model) -> bytes:
    """A model as the bytes of its file."""
    from ..model.written import written_to_json

    written = written_to_json(model) if model.tally is None else None
    auto = [c.name for c in model.schema.counted if c.name in model.families and _auto(model, c)]
    chosen = {name: model.families[name] for name in auto}
    told = Stored(model.schema, model.settings, model.tally, chosen, written, model.notes, history=model.history)
    return _packed(told)


def _auto(model: Model, column: Column) -> bool:
    named = model.settings.families.get(column.name)
    return isinstance(default_family(column.kind) if named is None else family_for(named, column.kind), Auto)


def from_bytes(raw: bytes, *, trusted: bool = False) -> Model:
    """The model in the bytes of a file; refused if anything is not as it was written."""
    stored = stored_from_bytes(raw, trusted=trusted)
    if not trusted:
        _check_room(stored)
    return stored.model()


def tally_to_bytes(tally: Tally, notes: Mapping[str, Any] | None = None) -> bytes:
    """A tally as the bytes of its file; a difference of tallies may be kept, too."""
    return _packed(Stored(tally.schema, tally=tally, notes=notes or {}, kind="tally"))


def tally_from_bytes(raw: bytes, *, trusted: bool = False) -> Tally:
    """The tally in the bytes of a tally's or a model's file."""
    return _its_tally(stored_from_bytes(raw, trusted=trusted))


def load_tally(path: str | os.PathLike[str]) -> Tally:
    """The tally in the file at a path."""
    return _its_tally(load_stored(path))


def _its_tally(stored: Stored) -> Tally:
    if stored.tally is None:
        raise ModelFileError(
            "the file holds a model written by hand, which has no tally",
            hint="tb.Model.written(prior, tables, strength=100) makes one that counts.",
        )
    return stored.tally


def metadata_of(kind: str, schema: Schema, **more: Any) -> dict[str, str]:
    """The texts that every file starts with, and further ones as JSON."""
    from .. import __version__

    texts = {"format": str(FORMAT), "kind": kind, "release": __version__, "schema": _json(schema.to_dict())}
    return {PREFIX + name: text for name, text in {**texts, **{n: _json(v) for n, v in more.items()}}.items()}


def _texts(stored: Stored) -> dict[str, str]:
    """What the metadata say of what is stored, the digest aside."""
    tally = stored.tally
    return {
        **{k.removeprefix(PREFIX): v for k, v in metadata_of(stored.kind, stored.schema).items()},
        "sheets": _json({} if tally is None else sheets_of(tally)),
        "settings": _json(settings_to_json(stored.settings)),
        "families": _json(families_to_json(stored.families)),
        **({} if stored.written is None else {"written": _json(stored.written)}),
        **({} if tally is None or not tally.least_rows else {"least_rows": str(tally.least_rows)}),
        "notes": _notes(stored.notes),
        **({"provenance": _json(stored.history.to_dict())} if stored.history != History() else {}),
    }


def _packed(stored: Stored) -> bytes:
    tally, texts = stored.tally, _texts(stored)
    texts["digest"] = _digest(texts, tally)
    table = table_of(Tally.zero(stored.schema) if tally is None else tally)
    return pack(table, {PREFIX + name: text for name, text in texts.items()})


def _digest(texts: Mapping[str, str], tally: Tally | None) -> str:
    """SHA-256 of everything that makes the model what it is; which release wrote it, and when, is no part of that."""
    out = hashlib.sha256(b"tallybayes file 1\n")
    for name in ("kind", "schema", "settings", "families", "written", "notes"):
        out.update(f"{name} {texts.get(name, '')}\n".encode())
    if "least_rows" in texts:
        out.update(f"least_rows {texts['least_rows']}\n".encode())
    out.update(b"" if tally is None else tally.digest.encode())
    return out.hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _notes(notes: Mapping[str, Any]) -> str:
    try:
        return _json(dict(notes))
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"the notes of the model cannot be written: {error}",
            hint="notes hold what JSON can: texts, finite numbers, lists and dicts with texts as keys.",
        ) from None


def stored_from_bytes(raw: bytes, *, trusted: bool = False) -> Stored:
    """What a file holds, after every check."""
    parts = unpack(raw, trusted=trusted)
    texts = {k.removeprefix(PREFIX): v for k, v in parts.metadata.items() if k.startswith(PREFIX)}
    version = texts.get("format", "")
    if version != str(FORMAT):
        newer = version.isdigit() and int(version[:9]) > FORMAT
        hint = _RELEASE_HINT if newer else _HINT
        raise ModelFileError(f"a model file of format {version[:20]!r}; this release reads format {FORMAT}", hint=hint)
    if texts.get("kind") == "sealed":
        raise ModelFileError("a sealed scorer, which has no tally", hint="read it with tb.load_sealed(path).")
    if texts.get("kind") not in ("model", "tally"):
        raise ModelFileError(f"a file that holds a {texts.get('kind', '')[:40]!r}", hint=_RELEASE_HINT)
    with understood():
        stored = _interpreted(texts, parts)
    if texts.get("digest") != _digest(texts, stored.tally):
        raise ModelFileError(
            "the content of the file does not have the digest that it names",
            hint="it was put together from other files: add files with tb.load(path, like=model) instead.",
        )
    return stored


def _interpreted(texts: Mapping[str, str], parts: Parts) -> Stored:
    schema = Schema.from_dict(json.loads(texts["schema"]))
    written = json.loads(texts["written"]) if "written" in texts else None
    tally = None if written is not None else tally_of(schema, parts.table(), json.loads(texts["sheets"]))
    if tally is not None and "least_rows" in texts:
        tally = replace(tally, least_rows=_least_rows(texts["least_rows"]))
    notes = json.loads(texts["notes"])
    if not isinstance(notes, dict):
        raise ModelFileError("the notes are no JSON object", hint=_HINT)
    settings = settings_from_json(json.loads(texts["settings"]))
    families = families_from_json(json.loads(texts["families"]))
    history = History.from_dict(json.loads(texts["provenance"])) if "provenance" in texts else History()
    return Stored(schema, settings, tally, families, written, notes, texts["kind"], history)


def _least_rows(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,17}", text):
        raise ModelFileError(f"a copy without what fewer than {text[:20]!r} rows had", hint=_HINT)
    return int(text)


# ---- files


def save(path: str | os.PathLike[str], raw: bytes) -> None:
    """Put the bytes of a file in its place, at once or not at all, once they were read back."""
    write_atomically(path, raw, check)


def check(raw: bytes) -> None:
    """Refuse the bytes of a file that would not be read back as what they were made of."""
    parts = unpack(raw, trusted=True)
    stored = stored_from_bytes(raw, trusted=True)
    if stored.tally is None:
        stored.model()
    again = _texts(stored)
    for name in ("schema", "settings", "families", "written", "notes", "sheets", "least_rows", "provenance"):
        if again.get(name) != parts.metadata.get(PREFIX + name):
            raise ModelFileError(
                f"the {name} would be read back from the file as something else, so it was not written",
                hint="what cannot be kept is most likely a name or value of an unusual type: use texts and numbers.",
            )


def load_stored(
    path: str | os.PathLike[str], *, like: Model | str | os.PathLike[str] | None = None, trusted: bool = False
) -> Stored:
    """What the file at a path holds; with `like`, the rows of any Parquet file under that model's schema."""
    raw = read_whole(path)
    with _naming(path):
        return stored_from_bytes(raw, trusted=trusted) if like is None else _like(raw, like, trusted=trusted)


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{canon.printable(os.fspath(path), 200)}: {error.found}", hint=error.hint) from None


def _like(raw: bytes, like: Model | str | os.PathLike[str], *, trusted: bool) -> Stored:
    pattern = load_stored(like) if isinstance(like, (str, os.PathLike)) else like
    parts = unpack(raw, trusted=trusted, foreign=True)
    if any(k.startswith(PREFIX) for k in parts.metadata):
        return replace(stored_from_bytes(raw, trusted=trusted), settings=pattern.settings, families={})
    sheets = {} if pattern.tally is None else sheets_of(pattern.tally)
    tally = tally_of(pattern.schema, parts.table(), sheets)
    if pattern.tally is not None:
        tally = replace(tally, least_rows=pattern.tally.least_rows)
    return Stored(pattern.schema, pattern.settings, tally, notes=pattern.notes)


def load(
    path: str | os.PathLike[str], *, like: Model | str | os.PathLike[str] | None = None, trusted: bool = False
) -> Model:
    """The model that `model.save(path)` wrote, after every check; its tally is `model.tally`.

    `like` takes the schema and settings from another model or its file: for a table that SQL has summed, which knows
    neither. `trusted=True` lifts the limits on how much memory a small file may ask for. A file that is damaged or none
    of ours is a ModelFileError, one that cannot be read a FileError; code is never loaded from a file.

    >>> model = tb.textbook({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> model.save("play.tb.parquet")
    >>> tb.load("play.tb.parquet").tally == model.tally
    True
    """
    stored = load_stored(path, like=like, trusted=trusted)
    with _naming(path):
        if not trusted:
            _check_room(stored)
        return stored.model()


def _check_room(stored: Stored) -> None:
    """Refuse counts of which a model would make a table that is all but empty: values × classes, gigabytes of a few."""
    classes = 0 if stored.tally is None else len(stored.tally.classes)
    for name, counts in ({} if stored.tally is None else stored.tally.columns).items():
        for sheet in counts.sheets.values():
            span = 1 + int(sheet.limb.max()) - int(sheet.limb.min())
            places = len(sheet.slots) * classes * span
            if places > max(_PLACES, _PLACES_PER_ENTRY * len(sheet)):
                raise ModelFileError(
                    f"column {canon.printable(name)!r} has {len(sheet.slots):,} values, for a table by {classes:,} "
                    f"classes of some {8 * places / 1e9:,.0f} GB",
                    hint="tb.Tally.load(path) reads the counts alone; tb.load(path, trusted=True) makes the model.",
                )
