"""Data flows one way: a room may import only rooms that stand above it in this list."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "drosurv"

# From the foundation upwards. Rooms on one line do not know each other.
LAYERS = [
    {"_version", "errors", "radix", "files"},
    {"target", "presentation", "runs"},
    {"groups"},
    {"losses", "objectives", "disparities", "networks", "neighborhoods", "tables", "inference"},
    {"solvers", "metrics", "coefficients"},
    {"persistence"},
    {"estimators", "datasets"},
    {"evaluation"},
    {"tuning", "insight", "competing"},
    {"repairs"},
    {"discovery"},
    {"paper", "audit", "benchmark", "distributed"},
    {"workflows", "demo"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


def room_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imported_rooms(source: str) -> set[str]:
    """Rooms of drosurv that a module imports, also inside functions."""
    rooms = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, "imports are absolute, so that a reader sees the room"
            names = [node.module]
            if node.module == "drosurv":
                names = [f"drosurv.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("drosurv.")}
    return rooms


def upward_imports(path: Path) -> set[str]:
    room = room_of(path)
    return {
        other
        for other in imported_rooms(path.read_text())
        if other != room and LEVEL.get(other, -1) >= LEVEL[room]
    }


MODULES = sorted(path for path in SRC.rglob("*.py") if path != SRC / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_a_room_imports_only_rooms_below_it(path):
    assert room_of(path) in LEVEL, f"{room_of(path)} has no place in the order of rooms"
    assert upward_imports(path) == set()


def test_the_check_sees_an_upward_import():
    assert imported_rooms("def f():\n    from drosurv.estimators import CoxPH") == {"estimators"}
    assert LEVEL["estimators"] > LEVEL["losses"]
