"""What imports what."""

import ast
import graphlib
from functools import cache

from tests.conftest import ROOT

PACKAGE = ROOT / "transformer"
BELOW = {
    "core": set(),
    "data": {"core"},
    "nn": {"core"},
    "evaluation": {"core", "data"},
    "training": {"core", "data", "nn"},
    "inference": {"core", "data", "nn", "evaluation"},
    "workflow": {"core", "data", "evaluation", "inference"},
    "reporting": {"core", "nn", "evaluation", "training", "workflow"},
    "families": {"core", "data", "nn", "evaluation", "training", "inference", "reporting"},
    "tasks": {"core", "families"},
}
"""The rooms, and those that each may import."""


@cache
def imports() -> dict[str, set[str]]:
    """What each module imports of ours, also within functions, by name and for type checkers alone."""
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    known = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    found: dict[str, set[str]] = {}
    for name, path in known.items():
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
                names |= {str(each.value) for each in node.args if isinstance(each, ast.Constant)}
        found[name] = {each for each in names if each in known and each != name and known[each].name != "__init__.py"}
    return found


def test_no_modules_import_each_other() -> None:
    graphlib.TopologicalSorter(imports()).prepare()  # raises CycleError, which names them


def test_a_room_imports_only_what_is_below_it() -> None:
    for name, imported in imports().items():
        room = name.split(".")[1] if "." in name else ""
        if room in BELOW:
            assert {each.split(".")[1] for each in imported} <= BELOW[room] | {room}, name
