"""The description of the API for programs, made of the table of its actions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .api import ACTIONS, Action, Field
from .problems import KINDS

_ROW = {"type": "object", "additionalProperties": True}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "row": _ROW,
    "rows": {"type": "array", "items": _ROW},
    "labels": {"type": "array", "items": {}},
    "value": {},
    "text": {"type": "string"},
    "whole": {"type": "integer"},
    "ids": {"type": "array", "items": {"type": "integer"}},
    "names": {"type": "array", "items": {"type": "string"}},
}
_KEY = {
    "name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string"},
    "description": "A random text of the client's: a request that comes again with it is answered and changes nothing.",
}  # fmt: skip
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "enum": [f"urn:tallybayes:{kind}" for kind in KINDS]},
        "title": {"type": "string"},
        "status": {"type": "integer", "enum": sorted({status for status, _ in KINDS.values()})},
        "detail": {"type": "string", "description": "What was found."},
        "hint": {"type": "string", "description": "How to mend it."},
    },
}


def described(version: str, *, token: bool) -> dict[str, Any]:
    """The OpenAPI 3.1 document of a server, which asks for a token or does not."""
    paths = {action.path: {action.method.lower(): _operation(action)} for action in ACTIONS}
    plain = {"text/plain": {"schema": {"type": "string"}}}
    paths["/metrics"] = {"get": _shell("metrics", "What the server counts, as Prometheus reads it.", plain)}
    paths["/health"] = {"get": _shell("health", "That the server answers.", _json({"type": "object"}))}
    paths["/openapi.json"] = {"get": _shell("openapi", "This description.", _json({"type": "object"}))}
    schemes = {"token": {"type": "http", "scheme": "bearer"}}
    out = {
        "openapi": "3.1.0",
        "info": {"title": "A model of tallybayes", "version": version},
        "paths": paths,
        "components": {"schemas": {"Problem": _PROBLEM}, **({"securitySchemes": schemes} if token else {})},
    }
    return {**out, "security": [{"token": []}]} if token else out


def _shell(name: str, says: str, content: dict[str, Any]) -> dict[str, Any]:
    refused = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        "operationId": name,
        "summary": says,
        "responses": {
            "200": {"description": "The answer.", "content": content},
            "default": {"description": "A refusal.", "content": {"application/problem+json": refused}},
        },
    }


def _operation(action: Action) -> dict[str, Any]:
    out = _shell(action.name, action.says, _json({"type": "object"}))
    fields = action.fields.items()
    if action.method == "GET":
        parameters = [
            {"name": n, "in": "query", "required": f.needed, "description": f.says, "schema": _SCHEMAS[f.kind]}
            for n, f in fields
        ]
        return {**out, "parameters": parameters} if parameters else out
    if action.changes:
        out["parameters"] = [_KEY]
    return {**out, "requestBody": {"required": True, "content": _json(_body(fields))}}


def _body(fields: Iterable[tuple[str, Field]]) -> dict[str, Any]:
    each = dict(fields)
    out: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {n: {**_SCHEMAS[f.kind], "description": f.says} for n, f in each.items()},
    }
    needed = [n for n, f in each.items() if f.needed]
    return {**out, "required": needed} if needed else out


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
