"""Fingerprint of a stage's code, which DVC tracks in its place.

The stage `code` writes it to `reports/TASK/code/STAGE.json`: every module that the stage reaches, with a hash of what
it means, and the libraries that these modules import. It begins every `dvc repro`, so nothing heavy is imported here.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from fnmatch import fnmatch
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from transformer.core.files import atomic_write, files_of, json_bytes
from transformer.core.meaning import Meanings, Module, digest
from transformer.core.task import STAGES, Task

ROOT = Path(__file__).parents[2]
CODE = ("transformer", "stages")
"""Folders with the project's code."""
LOCK = "requirements.lock"
_RAY = "transformer/data/ray_engine.py"
_NOT_ENTERED = ("transformer/__init__.py", "transformer/tasks/*.py", "transformer/families/*/__init__.py", _RAY)
"""Modules that know every task or stage. A fingerprint has what its stage uses of them: values, and methods with what
they import."""
_WITHOUT_MEANING = (
    *("transformer/core/code.py", "transformer/core/meaning.py", "transformer/core/unchanged.py"),
    *("transformer/core/process.py", "transformer/core/start.py"),
    *("transformer/core/observer.py", "transformer/workflow/stage.py"),
    *("stages/allocator.py", "transformer/workflow/recording.py"),
)
"""Modules that cannot change an output: they start and monitor a stage and its processes, and report progress."""
_RESULTS = "transformer/workflow/*"
"""The report is made from it; `evaluate` only asks it for another commit's predictions."""
_LIBRARIES_WITHOUT_MEANING = {
    *("dvc", "httpx", "mlflow", "pydantic", "pydantic_core", "ray", "ruamel", "threadpoolctl", "tqdm", "yaml"),
}
"""Libraries that validate parameters, fetch, show progress, start processes or record results."""
_PACKAGES = {"sklearn": "scikit-learn"}
"""Package names that differ from the module's."""
_OF_UPDATES = (
    *("transformer/core/portable.py", "transformer/data/", "transformer/families/"),
    *("transformer/nn/", "transformer/training/"),
)
_KINDS = ("modules", "files", "task", "libraries")


class Tree:
    """The code in a folder or commit; each file is read once."""

    def __init__(self, root: Path = ROOT, contents: Mapping[str, bytes] | None = None) -> None:
        """contents: path to content, for files that are not in `root`."""
        self._root, self._contents = root, dict(contents or {})
        given = (file.relative_to(root).as_posix() for name in (*CODE, LOCK) for file in files_of(root / name))
        self.names = sorted(contents if contents is not None else given)
        self._meanings = _meanings()

    def read(self, name: str) -> bytes:
        """Return the content of a file; empty if missing."""
        if name not in self._contents:
            self._contents[name] = (self._root / name).read_bytes() if name in self.names else b""
        return self._contents[name]

    def module(self, name: str) -> Module:
        """Parse a Python file. Raises UserError when it is not valid Python."""
        return self._meanings.of(self.read(name), name)

    def versions(self) -> dict[str, str]:
        """Return the versions in requirements.lock by lower-case package name."""
        return dict(re.findall(r"^([\w.-]+)==([^\s+]+)", self.read(LOCK).decode().lower(), re.MULTILINE))

    def digest(self) -> str:
        """Return a hash of all modules' meaning."""
        return digest("".join(f"{name} {self.module(name).meaning}\n" for name in self.names if name.endswith(".py")))


@cache
def _meanings() -> Meanings:
    return Meanings(ROOT / ".dvc" / "tmp" / "code.json")


@cache
def code_at_start() -> Tree:
    """Return the process's code. `core/start.py` reads it before loading other modules: what runs is what was read."""
    tree = Tree()
    for name in tree.names:
        tree.read(name)
    return tree


def own_code() -> str:
    """Return a hash of the process's code, for comparing processes."""
    return code_at_start().digest()


def fingerprint(tree: Tree, stage: str, task: Task) -> dict[str, dict[str, Any]]:
    """Return the fingerprint of a task's stage: its `modules`, `files`, libraries, and what it uses of its `task`.

    Raises UserError when a module is not valid Python.
    """
    modules = {name: found for name, found in _reached(tree, stage, task).items() if not _is(name, _WITHOUT_MEANING)}
    beside = tuple(name.removesuffix(".py") for name in modules)  # page.py has the files in page_template/
    others = [name for name in tree.names if name.startswith(beside) and not name.endswith(".py")]
    used = {name for module in modules.values() for name in module.attributes}
    methods = {f"family.{name}": code for name, (code, _) in _methods(tree, task, {*used, f"{stage}_stage"}).items()}
    declared = {name: value for name, value in _declared(task).items() if name in used}
    imported = {name.partition(".")[0] for module in modules.values() for name in module.imports}
    packages = {_PACKAGES.get(name, name) for name in imported - _LIBRARIES_WITHOUT_MEANING}
    return {
        "modules": {name: module.meaning for name, module in modules.items()},
        "files": {name: digest(tree.read(name)) for name in others},
        "task": json.loads(json_bytes(declared | methods)),
        "libraries": {name: version for name, version in tree.versions().items() if name in packages},
    }


def updates_code(tree: Tree, task: Task) -> dict[str, str]:
    """Return the modules that compute a task's updates, with hashes; a checkpoint is only valid for this code."""
    reached = _reached(tree, "train", task)
    return {name: module.update for name, module in reached.items() if name.startswith(_OF_UPDATES)}


def changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names that differ between two fingerprints."""
    pairs = [(was.get(kind, {}), now.get(kind, {})) for kind in _KINDS]
    return [name for one, two in pairs for name in sorted({*one, *two}) if one.get(name) != two.get(name)]


def changes_in(tree: Tree, was: Mapping[str, Any]) -> list[str]:
    """Return the names in a fingerprint that differ in a tree, even for one written by another version."""
    versions = tree.versions()
    now = {
        "modules": {name: name in tree.names and tree.module(name).meaning for name in was["modules"]},
        "files": {name: digest(tree.read(name)) for name in was["files"]},
        "task": was["task"],
        "libraries": {name: versions.get(name) for name in was["libraries"]},
    }
    return changes(was, now)


def code_path(stage: str, task: str) -> str:
    """Return the path of the fingerprint of a stage's code."""
    return f"reports/{task}/code/{stage}.json"


def ran_path(stage: str, task: str) -> str:
    """Return the path of a stage's record of what it ran with."""
    return f"reports/{task}/ran/{stage}.json"


def write_code(task: Task) -> list[str]:
    """Write the fingerprints of a task's stages into the current folder; return the stages whose code has changed.

    Raises UserError, before anything is written, when a module is not valid Python.
    """
    found = workspace_code(ROOT, task)
    contents = {Path(code_path(stage, task.name)): json_bytes(code) for stage, code in found.items()}
    changed = [path for path, content in contents.items() if not path.is_file() or path.read_bytes() != content]
    for path in changed:
        with atomic_write(path) as stream:
            stream.write(contents[path])
    return [path.stem for path in changed]


def workspace_code(root: Path, task: Task) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the fingerprints of the code in `root` by stage, ignoring the written files."""
    tree = Tree(root)
    found = {stage: fingerprint(tree, stage, task) for stage in STAGES}
    _meanings().remember()
    return found


def unlisted(found: Mapping[str, Any]) -> list[str]:
    """Return the project's files that this process has imported but a fingerprint does not list.

    Returns none with Ray's engine, which imports whatever its actors may need.
    """
    folders = tuple(f"{ROOT}/{folder}/" for folder in CODE)
    files = [getattr(module, "__file__", None) or "" for module in [*sys.modules.values()]]
    loaded = {Path(file).relative_to(ROOT).as_posix() for file in files if file.startswith(folders)}
    if any(fnmatch(name, _RAY) for name in loaded):
        return []
    passed = (*_NOT_ENTERED, *_WITHOUT_MEANING, _RESULTS, "*/__init__.py")
    return sorted(name for name in loaded - {*found["modules"]} if not _is(name, passed))


def other_versions(libraries: Mapping[str, str]) -> list[str]:
    """Describe installed versions that differ from these."""
    installed = {name: _installed(name) for name in libraries}
    return [f"{name} {installed[name]} for {wanted}" for name, wanted in libraries.items() if installed[name] != wanted]


def _installed(name: str) -> str:
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return "none"


def _is(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _reached(tree: Tree, stage: str, task: Task) -> dict[str, Module]:
    """Return the modules that `python -m stages.STAGE TASK` imports, by path."""
    passed = _NOT_ENTERED if stage == "report" else (*_NOT_ENTERED, _RESULTS)
    known = {name for name in tree.names if not _is(name, passed)}
    waiting = [f"stages.{stage}"]
    waiting += [name for _, imports in _methods(tree, task, {f"{stage}_stage"}).values() for name in imports]
    found: dict[str, Module] = {}
    while waiting:
        path = f"{waiting.pop().replace('.', '/')}.py"
        if path in known and path not in found:
            found[path] = tree.module(path)
            waiting += found[path].imports
            waiting += [name for _, names in _methods(tree, task, {*found[path].attributes}).values() for name in names]
    return dict(sorted(found.items()))


def _methods(tree: Tree, task: Task, used: set[str]) -> dict[str, tuple[str, list[str]]]:
    """Return the used methods of the task's family: a hash of each, and what it imports."""
    methods = tree.module(f"transformer/families/{task.family.name}/__init__.py").methods
    return {name: (code, imports) for name, (code, imports) in methods.items() if name in used}


def _declared(task: Task) -> dict[str, Any]:
    """Return what a task and its family declare, by name."""
    family = {name: value for name, value in vars(type(task.family)).items() if not callable(value)}
    own = {field.name: getattr(task, field.name) for field in fields(task) if field.name != "family"}
    return {name: value for name, value in family.items() if not name.startswith("_")} | own
