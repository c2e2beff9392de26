"""The package's modules: what imports what, and where a reader looks for a thing."""

import ast
import graphlib
from collections import Counter
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
SHORT = {
    "__main__.py": "`python -m transformer`",
    "core/start.py": "imported for its effect, before any library is loaded",
    "nn/masks.py": "for the layers and for the kernels below them",
    "workflow/live.py": "a program that a stage starts: its code is none of the stage's",
    "commands/vega.py": "a program, which `make plots` starts",
    **dict.fromkeys(("tasks/language.py", "tasks/sentiment.py", "tasks/translation.py"), "a task is one declaration"),
    **{
        f"families/{name}.py": "a stage depends on whole modules"
        for name in (
            *("classifier/build_vocab", "classifier/combinations", "language/build_vocab", "language/combinations"),
            *("language/training_params", "seq2seq/build_vocab", "seq2seq/export"),
        )
    },
}
"""Modules of fewer than 40 lines, and why they are on their own."""


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


def test_short_modules_have_a_reason() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    short = {path.relative_to(PACKAGE).as_posix() for path in paths if path.read_text().count("\n") < 40}
    assert short == {*SHORT}


def test_no_file_name_is_there_more_than_three_times() -> None:
    names = Counter(path.name for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
    assert max(names.values()) <= 3, names.most_common(3)
