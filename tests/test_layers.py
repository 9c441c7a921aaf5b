"""Imports point one way: a subpackage may import only those above it in this list."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "drosurv"


def pictured_layers() -> list[set[str]]:
    """The lines of the picture of the library in CONTRIBUTING.md."""
    block = (SRC.parents[1] / "CONTRIBUTING.md").read_text().partition("fails otherwise:\n\n")[2]
    lines = block.partition("\n\n")[0].splitlines()
    return [set(line.strip().split("  ")[0].split(", ")) for line in lines]


# A subpackage may import those of the lines above it, and none of its own line.
LAYERS = [{"_version"}, *pictured_layers(), {"__main__"}]
LEVEL = {subpackage: level for level, subpackages in enumerate(LAYERS) for subpackage in subpackages}


@cache
def nodes(source: str) -> list[ast.Import | ast.ImportFrom | ast.ClassDef]:
    """The imports and classes of a source, also inside functions."""
    wanted, waiting = [], [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef)):
            wanted.append(node)
        # They are statements, so expressions, most of a source, need no visit.
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            waiting += getattr(node, part, ())
    return wanted


def subpackage_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imported_subpackages(source: str) -> set[str]:
    """Subpackages of drosurv that a module imports, also inside functions."""
    subpackages = set()
    for node in nodes(source):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, "imports are absolute, so that a reader sees the subpackage"
            names = [node.module]
            if node.module == "drosurv":
                names = [f"drosurv.{alias.name}" for alias in node.names]
        subpackages |= {name.split(".")[1] for name in names if name.startswith("drosurv.")}
    return subpackages


def upward_imports(path: Path) -> set[str]:
    subpackage = subpackage_of(path)
    return {
        other
        for other in imported_subpackages(path.read_text())
        if other != subpackage and LEVEL.get(other, -1) >= LEVEL[subpackage]
    }


MODULES = sorted(path for path in SRC.rglob("*.py") if path != SRC / "__init__.py")


def test_the_picture_names_every_subpackage_once():
    pictured = [name for layer in LAYERS for name in layer]
    assert sorted(pictured) == sorted({subpackage_of(path) for path in MODULES})


def test_a_subpackage_imports_only_subpackages_below_it():
    found = {str(path.relative_to(SRC)): upward_imports(path) for path in MODULES}
    assert {path: upward for path, upward in found.items() if upward} == {}


@pytest.mark.parametrize(
    "statement",
    [
        "def f():\n    {}",
        "class A:\n    def f(self):\n        {}",
        "if True:\n    pass\nelse:\n    {}",
        "try:\n    pass\nexcept ValueError:\n    {}",
        "try:\n    pass\nfinally:\n    {}",
        "with a:\n    for b in c:\n        while d:\n            {}",
        "match a:\n    case 1:\n        {}",
    ],
)
def test_the_check_sees_an_upward_import_in_every_statement(statement):
    source = statement.format("from drosurv.estimators import CoxPH")
    assert imported_subpackages(source) == {"estimators"}
    assert LEVEL["estimators"] > LEVEL["losses"]


def module_name(path: Path) -> str:
    parts = ("drosurv", *path.relative_to(SRC).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in MODULES if path.name != "__init__.py"}


def exported(source: str) -> dict[str, str]:
    """Where a table of contents takes each of its names from."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes(source)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


CONTENTS = {module_name(p): exported(p.read_text()) for p in SRC.rglob("__init__.py")}


@cache
def homes(name: str) -> set[str]:
    """The file that a dotted name lives in, whichever packages hand it on; of a package, all files it names."""
    package, _, last = name.rpartition(".")
    if name in FILES:
        return {name}
    if package in FILES:
        return {package}
    if last in CONTENTS.get(package, {}):
        return homes(CONTENTS[package][last])
    return {file for found in CONTENTS.get(name, {}).values() for file in homes(found)}


def imported_files(source: str) -> set[str]:
    """Files of drosurv that a module imports, also inside functions, for types, and through a table of contents."""
    names = []
    for node in nodes(source):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    # Files that are imported by their name in a text.
    names += re.findall(r"import_module\(\"(drosurv[\w.]*)\"\)", source)
    return {file for name in names for file in homes(name) | inside(name)}


def inside(name: str) -> set[str]:
    """The files of a package that is a table of contents of its own files."""
    return {file for file in FILES if file.startswith(f"{name}.")} if name in CONTENTS else set()


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Groups of files that can all reach each other."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = arrows.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        return seen

    reach = {name: reached(name) for name in arrows}
    groups = {
        tuple(sorted(other for other in reach[name] if name in reach.get(other, set())))
        for name in arrows
        if name in reach[name]
    }
    return sorted(map(list, groups))


def class_homes(sources: dict[str, str]) -> dict[str, list[str]]:
    """The files that define each class name."""
    homes: dict[str, list[str]] = {}
    for name, source in sources.items():
        for node in nodes(source):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(name)
    return homes


SOURCES = {name: path.read_text() for name, path in FILES.items()}


def test_no_files_import_each_other_in_a_circle():
    assert circles({name: imported_files(source) for name, source in SOURCES.items()}) == []


def test_no_class_name_is_defined_twice():
    homes = class_homes(SOURCES)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_the_check_sees_a_circle_inside_functions_and_through_a_package():
    inside = "def f():\n    from drosurv.estimators import CoxPH"
    checked = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from drosurv.estimators import CoxPH"
    assert imported_files(inside) == {"drosurv.estimators.cox"}
    assert imported_files("from drosurv import estimators") >= {
        "drosurv.estimators.cox",
        "drosurv.estimators.dro_cox",
    }
    assert imported_files(checked) == {"drosurv.estimators.cox"}
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}) == [["b", "c"], ["d"]]
    assert class_homes({"a": "class Pair: ...", "b": "def f():\n    class Pair: ..."})["Pair"] == ["a", "b"]
