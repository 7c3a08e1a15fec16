"""The house as its sources have it: rooms, modules, imports and doors, read with `ast`; nothing is imported.

docs/draw_rooms.py draws it, and tests/test_rooms.py holds the rules of docs/architecture.md with it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Import:
    """One name that a module imports: the module of the package it comes from, or the third party."""

    target: str  # "exact.sheet" inside the package, "numpy.linalg" outside
    ours: bool
    line: int
    inside: str  # the function or method that imports, "Model.explain"; "" at the top of the file
    typing: bool  # under `if TYPE_CHECKING`, so for annotations only


@dataclass(frozen=True)
class Module:
    """One source file; `name` is its dotted name below the package, a room's page has the room's name."""

    name: str
    path: Path
    text: str

    @property
    def page(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def room(self) -> str:
        """The room or sub-room it lies in; "" at the top of the package."""
        return self.name if self.page else self.name.rpartition(".")[0]

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @property
    def says(self) -> str:
        return ast.get_docstring(self.tree) or ""


class House:
    """All modules of a package, found in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: dict[str, Module] = {}
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self.modules[name] = Module(name, path, path.read_text(encoding="utf-8"))

    @property
    def pages(self) -> dict[str, Module]:
        """The page of every room and sub-room, by the room's name."""
        return {m.name: m for m in self.modules.values() if m.page and m.name}

    def subrooms(self, room: str) -> list[str]:
        return [name for name in self.pages if name.rpartition(".")[0] == room]

    def imports(self, module: Module) -> list[Import]:
        """Everything that a module imports, wherever it does; names of our modules in texts count as well.

        The package's first page and `data.sources` load modules by their names when they are first needed.
        """
        return list(self._walk(module, module.tree, "", False))

    def _walk(self, module: Module, node: ast.AST, inside: str, typing: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for name in child.names:
                    yield self._absolute(name.name, child.lineno, inside, typing)
            elif isinstance(child, ast.ImportFrom):
                yield from self._named(module, child, inside, typing)
            elif isinstance(child, ast.Constant) and isinstance(child.value, str):
                below = child.value.removeprefix(f"{self.folder.name}.")
                if below in self.modules and (below != child.value or module.name == ""):
                    yield Import(below, True, child.lineno, inside, typing)
            else:
                here, quiet = inside, typing
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    here = f"{inside}.{child.name}".lstrip(".")
                if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
                    quiet = True
                yield from self._walk(module, child, here, quiet)

    def _absolute(self, name: str, line: int, inside: str, typing: bool) -> Import:
        first, _, rest = name.partition(".")
        return Import(
            self._nearest(rest) if first == self.folder.name else name, first == self.folder.name, line, inside, typing
        )

    def _named(self, module: Module, node: ast.ImportFrom, inside: str, typing: bool) -> Iterator[Import]:
        if node.level == 0:
            yield from (self._absolute(f"{node.module}.{n.name}", node.lineno, inside, typing) for n in node.names)
            return
        here = module.room.split(".") if module.room else []
        base = here[: len(here) - node.level + 1] + ([node.module] if node.module else [])
        for name in node.names:
            yield Import(self._nearest(".".join([*base, name.name])), True, node.lineno, inside, typing)

    def _nearest(self, name: str) -> str:
        """The module that a dotted name lies in: `exact.sheet.Sheet` lies in `exact.sheet`."""
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        return name

    def importers(self, name: str) -> set[str]:
        """The modules that import one, annotations aside."""
        return self._importers.get(name, set())

    @cached_property
    def _importers(self) -> dict[str, set[str]]:
        out: dict[str, set[str]] = {}
        for module in self.modules.values():
            for found in self.imports(module):
                if found.ours and not found.typing and found.target != module.name:
                    out.setdefault(found.target, set()).add(module.name)
        return out


@dataclass(frozen=True)
class Door:
    """An import that points upwards: from a module to one in a room above, with the reason in the contract."""

    source: str
    target: str
    reason: str


@dataclass(frozen=True)
class Contract:
    """The layers, from the top, each of rooms that never import each other; and the doors."""

    layers: list[list[str]]
    doors: list[Door]

    @classmethod
    def read(cls, project: Path) -> Contract:
        """The first contract of a pyproject.toml. Reasons are comments, which a TOML reader does not give."""
        text = project.read_text(encoding="utf-8")
        contract = tomllib.loads(text)["tool"]["importlinter"]["contracts"][0]
        package = contract["containers"][0]
        doors = []
        for door in contract.get("ignore_imports", []):
            source, target = (name.strip().removeprefix(package).lstrip(".") for name in door.split("->"))
            reason = re.search(rf'"{re.escape(door)}",?[ \t]*#[ \t]*(.*)', text)
            doors.append(Door(source, target, reason[1].strip() if reason else ""))
        return cls([[room.strip() for room in layer.split("|")] for layer in contract["layers"]], doors)
