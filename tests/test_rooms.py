"""The house holds: rules 3, 4, 6 and 7 of docs/architecture.md, read from the sources; nothing is imported.

Each rule is a function from a house to the sentences that say where it is broken, and each is shown to be able to fail.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))

import draw_rooms
from house import ROOT, Contract, House, Import, Module

MOST_LINES_OF_A_PAGE = 12  # about ten
MOST_LINES_OF_A_FILE = 400
MOST_FILES_OF_A_ROOM = 24
MOST_ROOMS = 14
MOST_FILES_AT_THE_TOP = 4
MOST_LAYERS = 11
LEAST_LINES_ALONE = 80  # of a module with one importer
MOST_LINES_THAT_NAME_A_BELIEF = 10

PAGES_WITH_NAMES = {"families", "mail", "sklearn", "explain.plots"}  # public: their names are imported from the room
KNOWS_BELIEFS = "model.fast"  # the kernels' door: which beliefs have a kernel
WHERE = {  # third parties and the only rooms that import them
    "numba": ("exact.kernels",),
    "llvmlite": ("exact.kernels",),
    "duckdb": ("data.files",),
    "psycopg": ("data.files",),
    "python_calamine": ("data.files",),
    "matplotlib": ("explain.plots",),
    "onnx": ("store",),
    "mlflow": ("store",),
    "skl2onnx": ("sklearn",),
    "pyspark": ("tally.spark",),
    "click": ("cli",),
    "rich": ("cli",),
    "starlette": ("serve",),
    "uvicorn": ("serve",),
}
WITHIN_A_FUNCTION = {"rich": ("base.show",)}  # and these modules may, where a function asks for it


def lies_in(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


# ---- rule 3: a room's page


def page_problems(house: House) -> list[str]:
    """A page says what the room is, what it may import and where to begin, in about ten lines, and imports nothing."""
    found = []
    for room, page in house.pages.items():
        says = page.says
        if not re.match(r"[A-Z`][^\n]{20,}[.:]", says):
            found.append(f"{room}: the first line of the page does not say what the room is")
        if "." not in room and not re.search(r"\b(Imports|May import)\b", says):
            found.append(f"{room}: the page does not say what the room may import (Imports …)")
        begin = re.search(r"\b[Bb]egin with `(\w+)", says)
        if begin is None:
            found.append(f"{room}: the page does not say where to begin (Begin with `…`)")
        elif f"{room}.{begin[1]}" not in house.modules:
            found.append(f"{room}: one is to begin with `{begin[1]}`, which is not there")
        below = re.search(r"\bImports ([^.]*)", says)
        absent = [name for name in re.findall(r"`(\w+)`", below[1]) if name not in house.pages] if below else []
        if absent and "." not in room:
            found.append(f"{room}: the page imports {', '.join(absent)}, which is no room")
        if says.count("\n") + 1 > MOST_LINES_OF_A_PAGE:
            found.append(f"{room}: the page has {says.count(chr(10)) + 1} lines; about ten are meant")
        if room in PAGES_WITH_NAMES:
            continue
        at_the_top = [i for i in house.imports(page) if not i.inside]
        if any(i.ours or i.target.partition(".")[0] not in sys.stdlib_module_names for i in at_the_top):
            found.append(f"{room}: the page imports {', '.join(i.target for i in at_the_top)}")
        if len(page.tree.body) > 1 and room != "cli":  # its `main` is the command's address
            found.append(f"{room}: the page has code; it belongs into a module")
    return found


# ---- rule 4: who knows a belief


def beliefs_of(house: House) -> set[str]:
    """The classes of `families` that are beliefs, whatever they are called; `Belief` itself is what all may name."""
    classes = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for module in house.modules.values()
        if lies_in(module.name, "families")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"Belief"}
    while more := {name for name, bases in classes.items() if bases & found} - found:
        found |= more
    return found - {"Belief"}


def lines_that_name_a_belief(house: House) -> list[str]:
    """Lines of code outside `families` with the name of a belief's class, in an import, an expression or a text."""
    beliefs = beliefs_of(house)

    def names(node: ast.AST) -> set[str]:
        if isinstance(node, ast.Name):
            return {node.id}
        if isinstance(node, ast.Attribute):
            return {node.attr}
        if isinstance(node, ast.alias):
            return {node.name, node.asname or ""}
        return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()

    return [
        f"{module.name}, line {line}"
        for module in house.modules.values()
        if not lies_in(module.name, "families") and module.name != KNOWS_BELIEFS
        for line in sorted({n.lineno for n in ast.walk(module.tree) if names(n) & beliefs})
    ]


def belief_problems(house: House) -> list[str]:
    found = lines_that_name_a_belief(house)
    few = MOST_LINES_THAT_NAME_A_BELIEF
    return [] if len(found) <= few else [f"{len(found)} lines, not {few}, name the class of a belief", *found]


# ---- rule 6: third parties


def third_party_problems(house: House) -> list[str]:
    def allowed(module: Module, found: Import, party: str) -> bool:
        inside = WITHIN_A_FUNCTION.get(party, ())
        return any(lies_in(module.name, room) for room in WHERE[party]) or (
            module.name in inside and bool(found.inside)
        )

    return [
        f"{module.name}, line {found.line}: {party} is imported only in {' and '.join(WHERE[party])}"
        for module in house.modules.values()
        for found in house.imports(module)
        if not found.ours and (party := found.target.partition(".")[0]) in WHERE and not allowed(module, found, party)
    ]


# ---- rule 7: sizes


def size_problems(house: House) -> list[str]:
    found = [
        f"{m.name or 'the package'} has {m.lines} lines: it is two things"
        for m in house.modules.values()
        if m.lines > MOST_LINES_OF_A_FILE
    ]
    for room in house.pages:
        files = [m for m in house.modules.values() if m.room == room]
        if len(files) > MOST_FILES_OF_A_ROOM:
            found.append(f"{room} has {len(files)} files: it is two rooms")
    rooms = [room for room in house.pages if "." not in room]
    if len(rooms) > MOST_ROOMS:
        found.append(f"there are {len(rooms)} rooms")
    top = [p.name for p in house.folder.iterdir() if p.is_file()]
    if len(top) > MOST_FILES_AT_THE_TOP:
        found.append(f"there are {len(top)} files at the top: {', '.join(sorted(top))}")
    homeless = {m.path.parent for m in house.modules.values()} - {p.path.parent for p in house.pages.values()}
    found += [f"{folder.name} has no page" for folder in sorted(homeless - {house.folder})]
    return found


def stands_alone(page: str) -> set[str]:
    """The modules that a page justifies: "`prior` stands alone: …", with a reason of at least three words."""
    found = re.findall(r"`(\w+)` stands alone: ([^.]+)", " ".join(page.split()))
    return {name for name, reason in found if len(reason.split()) >= 3}


def satellite_problems(house: House) -> list[str]:
    """Modules that only one other needs, and that are small: they belong into that one, or their page says why not."""
    return [
        f"{m.name} has {m.lines} lines and one importer ({', '.join(house.importers(m.name)) or 'none'}): merge it, or "
        f"say on the page of {m.room}: `{m.name.rpartition('.')[2]}` stands alone: …"
        for m in house.modules.values()
        if m.room and not m.page and m.lines < LEAST_LINES_ALONE and len(house.importers(m.name)) <= 1
        if m.name.rpartition(".")[2] not in stands_alone(house.pages[m.room].says)
    ]


# ---- the contract


def contract_problems(house: House, contract: Contract) -> list[str]:
    """Few layers; every door has a reason and is an import inside a function, so that nothing waits for it."""
    found = []
    if len(contract.layers) > MOST_LAYERS:
        found.append(f"the contract has {len(contract.layers)} layers")
    for door in contract.doors:
        way = f"{door.source} → {door.target or house.folder.name}"
        if len(door.reason) < 10:
            found.append(f"{way} carries no comment that says why")
        if door.source in house.modules and not all(
            i.inside or i.typing
            for i in house.imports(house.modules[door.source])
            if i.ours and i.target == door.target
        ):
            found.append(f"{way} is open at the top of the file; it belongs inside the method that needs it")
    return found


# ---- the package keeps the rules

RULES: list[Callable[[House], list[str]]] = [
    page_problems,
    belief_problems,
    third_party_problems,
    size_problems,
    satellite_problems,
]


@pytest.fixture(scope="module")
def package() -> House:
    return House(ROOT / "src" / "tallybayes")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__.removesuffix("_problems"))
def test_the_package_keeps_the_rule(rule: Callable[[House], list[str]], package: House) -> None:
    problems = rule(package)
    assert not problems, "\n".join(["", *problems])


def test_the_contract_is_short_and_every_door_has_its_reason(package: House) -> None:
    problems = contract_problems(package, Contract.read(ROOT / "pyproject.toml"))
    assert not problems, "\n".join(["", *problems])


def test_the_reader_sees_the_package_as_it_is(package: House) -> None:
    assert {"base", "exact.kernels", "data.files", "explain.plots"} <= set(package.pages)
    assert package.importers("base.errors") > {"tally.tally", "store.model_file", "cli.running"}
    assert "" in package.importers("selection.choose.fit")  # `tb.fit`, by the list of homes
    assert {"BellBelief", "GaussianBelief", "CategoricalBelief"} <= beliefs_of(package)


# ---- the picture


def test_the_picture_is_the_one_that_is_drawn_now() -> None:
    drawn = (ROOT / "docs" / "rooms.svg").read_text(encoding="utf-8")
    assert drawn == draw_rooms.picture(), "the rooms have changed: python docs/draw_rooms.py"


def test_the_picture_has_every_room_and_every_door(package: House) -> None:
    drawn = draw_rooms.picture()
    for room in package.pages:
        name = room.rpartition(".")[2]
        assert f">{name}/</text>" in drawn if "." not in room else f">{name}</text>" in drawn, room
    for name in ("explain", "what_if", "plot", "recalibrate", "to_sql"):
        assert name in drawn


# ---- the page that explains it


def named_in(page: str) -> list[tuple[str, str]]:
    """The files that a page names, with the function or class where one stands after a colon."""
    return re.findall(r"`([a-z_/]+\.py)(?::\s+([\w.]+))?`", page)


def stale_names(page: str, folder: Path) -> list[str]:
    """What a page says is there and is not: files below a folder, and the names defined in them."""
    out = []
    for path, name in named_in(page):
        text = (folder / path).read_text(encoding="utf-8") if (folder / path).exists() else ""
        parts = [p for p in name.split(".") if not re.search(rf"^\s*(?:def|class) {p}\b|^{p}\b", text, re.MULTILINE)]
        out += [f"{path} is not there"] if not text else [f"{path} has no {p}" for p in parts if p]
    return out


def test_every_file_and_function_that_the_page_names_is_there(package: House) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    page = re.sub(r"`(?:docs|tests|benchmarks)/[^`]*`", "", page)
    assert len(named_in(page)) > 60
    problems = stale_names(page, package.folder)
    assert not problems, "\n".join(["", *problems])


def test_a_name_that_is_gone_is_found(tmp_path: Path) -> None:
    house = made(tmp_path, room__one="class A:\n    def f(self): ...\n\n\nB = 1\n")
    assert stale_names("`room/one.py`, `room/one.py: A.f`, `room/one.py:\n   B`", house.folder) == []
    found = stale_names("`room/two.py: A`, `room/one.py: A.g`, `room/one.py: C`", house.folder)
    assert found == ["room/two.py is not there", "room/one.py has no g", "room/one.py has no C"]


# ---- and every rule can fail

GOOD = '"""The room of nothing but examples.\n\nImports `base`. Begin with `one`. A *thing* is a thing.\n"""\n'
LONG = "x = 1\n" * 100


def made(folder: Path, **files: str) -> House:
    """A house of a few files: {"room__module": text}, with good pages where none is given."""
    top = folder / "tallybayes"
    for name, text in {"__init__": "", **files}.items():
        path = top.joinpath(*name.replace("__init__", "page").split("__")).with_suffix(".py")
        path = path.with_name("__init__.py") if path.stem == "page" else path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in {p.parent for p in top.rglob("*.py")} - {top}:
        for room in [path, *path.parents]:
            if room == top:
                break
            if not (room / "__init__.py").exists():
                first = min(p.stem for p in room.iterdir() if p.suffix == ".py" or p.is_dir())
                (room / "__init__.py").write_text(GOOD.replace("one", first), encoding="utf-8")
    return House(top)


def test_a_good_house_has_no_problems(tmp_path: Path) -> None:
    house = made(
        tmp_path,
        base__errors=LONG,
        base__show="def show():\n    import rich\n" + LONG,
        cli__page=GOOD.replace("one", "program")
        + "from typing import Any\n\n\ndef main() -> Any:\n    from .program import run\n    run()\n",
        cli__program="import click\n" + LONG,
        explain__plots__page=GOOD.replace("one", "paper") + "from .paper import Paper\n",
        explain__plots__paper="import matplotlib\n" + LONG,
        families__base="class Belief: ...\nclass Bell(Belief): ...\nclass Gaussian(Bell): ...\n" + LONG,
        families__page=GOOD.replace("one", "base") + "from .base import Belief\n",
        model__fast="from ..families.base import Gaussian\n" + LONG,
        model__scoring="from ..families.base import Belief\nfrom .fast import x\ndef of(b: Belief): ...\n" + LONG,
    )
    assert [problem for rule in RULES for problem in rule(house)] == []
    assert beliefs_of(house) == {"Bell", "Gaussian"}


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("", "does not say what the room is"),
        ('"""Room."""\n', "does not say what the room is"),
        (GOOD.replace("Imports `base`. ", ""), "does not say what the room may import"),
        (GOOD.replace("Begin with `one`. ", ""), "does not say where to begin"),
        (GOOD.replace("`one`", "`two`"), "begin with `two`, which is not there"),
        (GOOD.replace("`base`", "`basement`"), "imports basement, which is no room"),
        (GOOD.replace("\nImports", "\n" * 11 + "Imports"), "about ten are meant"),
        (GOOD + "from .one import One\n", "imports room.one"),
        (GOOD + "import numpy\n", "imports numpy"),
        (GOOD + "x = 1\n", "has code"),
    ],
)
def test_a_bad_page_is_found(page: str, problem: str, tmp_path: Path) -> None:
    found = page_problems(made(tmp_path, room__page=page, room__one=LONG, base__errors=LONG))
    assert page_problems(made(tmp_path, room__page=GOOD)) == []
    assert any(problem in f for f in found), found


def test_too_many_lines_that_name_a_belief_are_found(tmp_path: Path) -> None:
    families = "class Belief: ...\nclass Bell(Belief): ...\n"
    few = "from ..families.base import Belief, Bell\n" + "x = Bell\n" * 9
    house = made(tmp_path / "few", families__base=families, store__sealed=few)
    assert len(lines_that_name_a_belief(house)) == 10 and belief_problems(house) == []
    for line in ("y = base.Bell\n", "isinstance(x, Bell)\n", "kinds = {'Bell': 1}\n", "class Two(Bell): ...\n"):
        house = made(tmp_path / str(len(line)), families__base=families, store__sealed=few + line)
        assert belief_problems(house)[0].startswith("11 lines"), line
    assert lines_that_name_a_belief(made(tmp_path / "text", families__base=families, a__b='"""Of a Bell."""\n')) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model__fast", "import numba\n"),
        ("exact__sums", "def f():\n    from llvmlite import ir\n"),
        ("data__infer", "from duckdb import sql\n"),
        ("selection__curves", "from matplotlib.figure import Figure\n"),
        ("cli__pages", "def f():\n    import onnx.helper\n"),
        ("data__sources", "if TYPE_CHECKING:\n    from pyspark.sql import DataFrame\n"),
        ("mail__filter", "import click\n"),
        ("base__show", "import rich\n"),
        ("explain__odds", "def f():\n    import rich\n"),
    ],
)
def test_a_third_party_in_the_wrong_room_is_found(name: str, text: str, tmp_path: Path) -> None:
    (found,) = third_party_problems(made(tmp_path, **{name: text}))
    assert found.startswith(name.replace("__", "."))


def test_sizes_are_found(tmp_path: Path) -> None:
    assert any("401 lines" in p for p in size_problems(made(tmp_path / "a", room__one="x = 1\n" * 401)))
    assert size_problems(made(tmp_path / "b", room__one="x = 1\n" * 400)) == []
    many = {f"room__m{i}": "" for i in range(24)}
    assert size_problems(made(tmp_path / "c", **many)) == ["room has 25 files: it is two rooms"]
    rooms = {f"r{i}__one": "" for i in range(15)}
    assert size_problems(made(tmp_path / "d", **rooms)) == ["there are 15 rooms"]
    top = made(tmp_path / "e", **{f"m{i}": "" for i in range(4)})
    assert size_problems(top) == ["there are 5 files at the top: __init__.py, m0.py, m1.py, m2.py, m3.py"]
    (tmp_path / "a" / "tallybayes" / "room" / "__init__.py").unlink()
    assert any("room has no page" in p for p in size_problems(House(tmp_path / "a" / "tallybayes")))


@pytest.mark.parametrize(
    ("one", "user", "page", "fine"),
    [
        ("x = 1\n", "from .one import x\n", GOOD, False),
        ("x = 1\n", "", GOOD, False),  # nobody at all
        ("x = 1\n", "from . import one\n", GOOD, False),
        ("x = 1\n", "import tallybayes.room.one\n", GOOD, False),
        (LONG, "from .one import x\n", GOOD, True),
        ("x = 1\n", "from .one import x\n", GOOD.replace("A *", "`one` stands alone: cold start needs it. A *"), True),
        ("x = 1\n", "from .one import x\n", GOOD.replace("A *", "`one` stands alone: really. A *"), False),
        ("x = 1\n", "from .one import x\n", GOOD.replace("A *", "`two` stands alone: cold start needs it. A *"), False),
    ],
)
def test_a_satellite_is_found(one: str, user: str, page: str, fine: bool, tmp_path: Path) -> None:
    house = made(
        tmp_path, room__one=one, room__two=user + LONG, room__three="from .two import y\n" + LONG, room__page=page
    )
    problems = satellite_problems(house)
    assert problems == [] if fine else problems[0].startswith("room.one has 1 lines and one importer")


def test_two_importers_are_enough_and_annotations_are_none(tmp_path: Path) -> None:
    two = {"room__a": "from .one import x\n" + LONG, "room__b": "from ..room.one import x\n" + LONG}
    assert satellite_problems(made(tmp_path / "two", room__one="x = 1\n", **two)) == []
    two["room__b"] = "if TYPE_CHECKING:\n    from .one import x\n" + LONG
    assert len(satellite_problems(made(tmp_path / "typing", room__one="x = 1\n", **two))) == 1


CONTRACT = """
[[tool.importlinter.contracts]]
containers = ["tallybayes"]
layers = [{layers}]
ignore_imports = [
  "tallybayes.low.one -> tallybayes.high.two",{comment}
]
"""


@pytest.mark.parametrize(
    ("layers", "comment", "where", "problems"),
    [
        (11, " # Low.up: because it must", "def f():\n    ", []),
        (12, " # Low.up: because it must", "def f():\n    ", ["the contract has 12 layers"]),
        (2, "", "def f():\n    ", ["low.one → high.two carries no comment that says why"]),
        (2, " # Low.up: because it must", "", ["low.one → high.two is open at the top of the file"]),
    ],
)
def test_a_loose_contract_is_found(layers: int, comment: str, where: str, problems: list[str], tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text(CONTRACT.format(layers=", ".join(f'"r{i}"' for i in range(layers)), comment=comment))
    house = made(tmp_path, low__one=f"{where}from ..high.two import x\n", high__two="x = 1\n")
    found = contract_problems(house, Contract.read(project))
    assert [f.partition(";")[0] for f in found] == problems


def test_a_way_up_that_is_no_door_is_not_drawn(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text(CONTRACT.format(layers='"high", "low"', comment=" # Low.up: because it must"))
    door = {"low__one": "class Low:\n    def up(self):\n        from ..high.two import x\n", "high__two": "x = 1\n"}
    contract = Contract.read(project)
    assert draw_rooms.ways(made(tmp_path / "door", **door), contract) == [draw_rooms.Way("low", "high", ("up",))]
    assert "↑ up" in draw_rooms.drawn(House(tmp_path / "door" / "tallybayes"), contract)
    with pytest.raises(ValueError, match=r"low\.three, line 1 imports high\.two, which is above and no door"):
        draw_rooms.ways(made(tmp_path / "hole", **door, low__three="from ..high import two\n"), contract)


def test_a_class_name_means_one_class() -> None:
    """One word, one meaning: a reader who meets `Table` in two rooms need not ask which."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(found) > 150
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
