"""Settings ↔ JSON, field by field, over a closed list of types. A name is looked up, never evaluated.

null, true, 3, 0.5, "text"                    themselves
{"float": "inf"}                              a number that JSON has no sign for
{"date": "2024-05-31"}                        a date, as labels may be
{"tuple": […]}, {"list": […]}                 sequences
{"map": [[key, value], …]}                    a mapping with keys of any type
{"type": "Laplace", "options": {"alpha": 1}}  one of TYPES
{"family": "bins", "options": {…}}            a registered family

What a correction adds are tens of thousands of numbers: they stand there as one list of whole units of 2⁻²⁰.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from .. import families
from ..base.errors import ModelFileError, SettingsError, TallybayesError, unknown
from ..base.records import misfit
from . import Family, calibration, family_names, named, smoothing, vocabulary
from . import settings as settings_module
from .settings import Settings

# Every dataclass that one of these modules defines may stand in a file, and no other: a new one needs no word here
TYPES: dict[str, type] = {
    name: found
    for module in (settings_module, smoothing, calibration, vocabulary)
    for name, found in vars(module).items()
    if isinstance(found, type) and is_dataclass(found) and found is not Settings and found.__module__ == module.__name__
}
_NEWER = "a newer release may have written the file: update tallybayes."
_DEEPEST = 50  # settings nest four or five deep; a hostile file may try a million


def settings_to_json(settings: Settings) -> dict[str, Any]:
    """The settings that differ from the defaults, as JSON can hold them.

    >>> settings_to_json(Settings(floor=settings_module.Floor(share=0.5)))
    {'floor': {'type': 'Floor', 'options': {'kind': 'column', 'share': 0.5}}}
    """
    given, default = (
        {f.name: _encoded(getattr(s, f.name), f.name) for f in fields(Settings)} for s in (settings, Settings())
    )
    return {name: value for name, value in given.items() if value != default[name]}


def settings_from_json(given: Any) -> Settings:
    """The inverse of `settings_to_json`; unknown fields, types and families are refused."""
    if not isinstance(given, dict):
        raise ModelFileError("the settings are no JSON object", hint="save the model again with model.save(path).")
    known = {f.name for f in fields(Settings)}
    for name in given:
        if name not in known:
            found = f"the settings have a field {name[:60]!r}, which this release does not know"
            raise unknown(ModelFileError, found, name, known, _NEWER)
    out: Settings = _made(Settings, {name: _decoded(value, 0) for name, value in given.items()})
    _refuse_misfit(out)
    return out


def families_to_json(families: Mapping[str, Family]) -> dict[str, Any]:
    """Families by column, as JSON can hold them."""
    return {column: _encoded(family, column) for column, family in families.items()}


def families_from_json(given: Any) -> dict[str, Family]:
    """The inverse of `families_to_json`."""
    out = {column: _decoded(value, 0) for column, value in given.items()}
    if not all(isinstance(family, Family) for family in out.values()):
        raise _unreadable(given)
    for family in out.values():
        _refuse_misfit(family)
    return out


def _refuse_misfit(record: Any) -> None:
    if is_dataclass(record) and (wrong := misfit(record)) is not None:
        raise ModelFileError(f"the settings hold {wrong}", hint="the file was not written by tallybayes.")


def _encoded(value: Any, where: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return {"date": value.isoformat()}
    if isinstance(value, Mapping):
        return {"map": [[_encoded(k, where), _encoded(v, where)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [_encoded(v, where) for v in value]}
    if isinstance(value, np.ndarray):
        return {"array": value.ravel().tolist(), "shape": list(value.shape)}
    if isinstance(value, Family):
        return {"family": _family_key(value, where), "options": _options(value, where)}
    name = "Lead" if isinstance(value, calibration.MarginScaling) else type(value).__name__  # files keep first names
    if isinstance(value, calibration.Correction):
        said = {f.name: _encoded(getattr(value, f.name), where) for f in fields(value) if f.name != "added"}
        return {"type": name, "options": said, "units": value.units}
    if TYPES.get(name) is type(value):
        return {"type": name, "options": _options(value, where)}
    raise SettingsError(
        f"the setting {where!r} holds a {type(value).__name__}, which a file cannot",
        hint="a model file holds numbers, texts and tallybayes' own types, never code: "
        + ", ".join(sorted(TYPES))
        + ".",
    )


def _options(value: Any, where: str) -> dict[str, Any]:
    if not is_dataclass(value):
        raise SettingsError(
            f"the setting {where!r} holds a {type(value).__name__}, whose options are not fields",
            hint="make a family a frozen dataclass: its fields are what the file keeps.",
        )
    return {f.name: _encoded(getattr(value, f.name), where) for f in fields(value) if f.init}


def _family_key(family: Family, where: str) -> str:
    """The name under which the family's class can be found again."""
    for name in (family.name, *family_names()):
        if name in family_names() and type(named(name)) is type(family):
            return name
    if getattr(families, type(family).__name__, None) is type(family):
        return type(family).__name__
    raise SettingsError(
        f"the setting {where!r} names a family {family.name!r} that is not registered, so no file can name it",
        hint=f"call tb.families.register({family.name!r}, family) before saving, and before loading elsewhere.",
    )


def _family_class(key: Any) -> type:
    if isinstance(key, str):
        if key in family_names():
            return type(named(key))
        found = getattr(families, key, None) if key in families.__all__ else None
        if isinstance(found, type) and issubclass(found, Family):
            return found
    found = f"the settings name a family {str(key)[:60]!r}, which is not registered here"
    hint = "register a family of your own before loading: tb.families.register(name, family)."
    raise unknown(ModelFileError, found, key, family_names(), hint)


def _decoded(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ModelFileError("the settings are nested without end", hint="the file was not written by tallybayes.")
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise _unreadable(value)
        return value
    deeper = depth + 1
    keys = set(value)
    if keys == {"float"} and value["float"] in ("inf", "-inf", "nan"):
        return float(value["float"])
    if keys == {"date"} and isinstance(value["date"], str):
        try:
            return dt.date.fromisoformat(value["date"])
        except ValueError:
            raise _unreadable(value) from None
    if keys == {"map"} and isinstance(value["map"], list):
        pairs = value["map"]
        if all(isinstance(p, list) and len(p) == 2 for p in pairs):
            decoded = [(_decoded(k, deeper), _decoded(v, deeper)) for k, v in pairs]
            try:
                return dict(decoded)
            except TypeError:
                raise _unreadable(value) from None
    for kind, make in (("tuple", tuple), ("list", list)):
        if keys == {kind} and isinstance(value[kind], list):
            return make(_decoded(v, deeper) for v in value[kind])
    if keys == {"array", "shape"}:
        try:
            return np.array(value["array"]).reshape(value["shape"])
        except (TypeError, ValueError):
            raise _unreadable(value) from None
    if keys == {"type", "options", "units"} and value["type"] == "Correction" and isinstance(value["options"], dict):
        options = {str(k): _decoded(v, deeper) for k, v in value["options"].items()}
        return _made(calibration.Correction, {**options, "units": value["units"]}, calibration.Correction.of_units)
    if isinstance(value.get("options"), dict) and keys in ({"type", "options"}, {"family", "options"}):
        options = {str(k): _decoded(v, deeper) for k, v in value["options"].items()}
        return _made(_family_class(value["family"]) if "family" in keys else _type(value["type"]), options)
    raise _unreadable(value)


def _type(name: Any) -> type:
    if isinstance(name, str) and name in TYPES:
        return TYPES[name]
    found = f"the settings name a type {str(name)[:60]!r}, which this release does not know"
    raise unknown(ModelFileError, found, name, TYPES, _NEWER)


def _made(kind: type, options: dict[str, Any], make: Callable[..., Any] | None = None) -> Any:
    known = [*(f.name for f in fields(kind)), *(["units"] if make else [])]
    strange = sorted(set(options) - set(known))
    if strange:
        found = f"{kind.__name__} has an option {strange[0][:60]!r}, which this release does not know"
        raise unknown(ModelFileError, found, strange[0], known, _NEWER)
    try:
        return (make or kind)(**options)
    except TallybayesError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{kind.__name__} in the settings cannot be read: {str(error)[:200]}",
            hint="the file was not written by tallybayes.",
        ) from None


def _unreadable(value: Any) -> ModelFileError:
    return ModelFileError(
        f"the settings hold {str(value)[:60]!r}, which means nothing", hint="the file was not written by tallybayes."
    )
