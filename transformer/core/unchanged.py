"""Ensure that a stage's parameters, code and inputs do not change while it runs.

DVC hashes them only at the end, so edits made meanwhile would be recorded in dvc.lock, and in DVC's run cache, as
the origin of the result.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from transformer.core.code import (
    Tree,
    changes,
    code_at_start,
    code_path,
    fingerprint,
    other_versions,
    ran_path,
    unlisted,
)
from transformer.core.errors import UserError
from transformer.core.files import files_of, json_bytes, read_json, write_json
from transformer.core.params import declared_sections, leaves, parameters_digest, read_params
from transformer.core.task import STAGES, Task
from transformer.core.validation import StageParams

WORKFLOW = Path("dvc.yaml")
_REFERENCE = re.compile(r"\$\{([\w.]+)\}")


def dependencies(stage: str, task: str, params: Mapping[str, Any]) -> list[str]:
    """Return the `deps` of a stage, files and folders, as DVC resolves them; empty in a folder without dvc.yaml.

    params: all of params.yaml. Raises UserError when dvc.yaml cannot be read or is not structured like this project's.
    """
    try:
        content = yaml.load(WORKFLOW.read_bytes(), Loader=yaml.CSafeLoader)
        definition = content["stages"][stage]
        context = dict(params)
        for variables in content.get("vars") or ():
            context |= variables
        items = _resolved(definition["foreach"], context)
        context |= {"key": task, "item": items[task] if isinstance(items, Mapping) else task}
        return [*dict.fromkeys(str(_resolved(path, context)) for path in definition["do"]["deps"])]
    except FileNotFoundError:
        return []
    except (yaml.YAMLError, OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{WORKFLOW} cannot be read ({type(error).__name__}: {reason}): fix it") from error


def _resolved(value: Any, context: Mapping[str, Any]) -> Any:
    """Replace each `${...}` in `value`; a string that is only a reference may resolve to a mapping."""
    if isinstance(value, Mapping):
        return {name: _resolved(item, context) for name, item in value.items()}
    if not isinstance(value, str):
        return value
    if whole := _REFERENCE.fullmatch(value):
        return _named(whole.group(1), context)
    return _REFERENCE.sub(lambda found: str(_named(found.group(1), context)), value)


def _named(name: str, context: Any) -> Any:
    for part in name.split("."):
        context = context[part]
    return context


_CLONES = Path(".dvc", "tmp", "exps")


def repository(folder: Path) -> Path | None:
    """Return the DVC repository of `folder`; for a temporary clone, the original one; None outside of any.

    DVC removes a clone when its experiment ends, so lasting files belong in the original, which DVC names in
    DVC_ROOT. That variable is ignored outside temporary clones: it may name another project, a stage of which runs
    this one.
    """
    folder = folder.resolve()
    if given := os.environ.get("DVC_ROOT"):
        root = Path(given).resolve()
        if folder.is_relative_to(root / _CLONES):
            return root
    return next((each for each in (folder, *folder.parents) if (each / ".dvc").is_dir()), None)


def hint_of_clone(path: Path) -> str:
    """Return a hint for messages that `path` is missing or empty, in a temporary clone.

    A clone contains only what git tracks. A file read from the repository unknown to DVC would not be a dependency of
    the result, and changes to it would go unnoticed.
    """
    root = _repository_of_clone()
    if root is None or path.is_absolute() or not (root / path).exists():
        return ""
    return f"; a temporary clone sees only what git tracks, so name the absolute path {(root / path).resolve()}"


def refuse_outside_of_clone(path: Path) -> None:
    """Raise UserError for a relative path that leads out of a temporary clone, where a stale copy may be.

    `dvc exp run --temp --copy-paths ../corpus` puts one beside the clones. It stays, and later experiments find it.
    """
    root = _repository_of_clone()
    if root is not None and Path(os.path.normpath(path)).parts[:1] == ("..",):
        raise UserError(f"{path} leads out of the temporary clone, so name the absolute path {(root / path).resolve()}")


def refuse_other_repository(path: Path) -> None:
    """Raise UserError for a path in a folder next to dvc.yaml with its own `.dvc`: DVC would see it as empty.

    path: relative to dvc.yaml's folder, which is the current one, or absolute.
    """
    top = Path(*path.parts[:1])
    if not path.is_absolute() and path.parts[:1] != ("..",) and top != Path() and (top / ".dvc").is_dir():
        raise UserError(
            f"{top} has a `.dvc`, so DVC takes it for another repository and sees no change of its files: remove"
            f" {top / '.dvc'}, or move {top} out of the project and name it there"
        )


def refuse_around_project(path: Path) -> None:
    """Raise UserError for a folder that contains the current one, such as `.`, `..` or the system's root.

    DVC would hash all of it for each stage, results included, which would make the stages stale again.
    """
    if Path.cwd().is_relative_to(path.resolve()):
        raise UserError(
            f"{path} contains this project: name a folder with nothing but the data, such as data/local/mine"
        )


def _repository_of_clone() -> Path | None:
    """Return the repository that the current folder is a temporary clone of; None in the repository itself."""
    here = Path.cwd()
    root = repository(here)
    return root if root is not None and here.resolve().is_relative_to(root / _CLONES) else None


_SHOWN = 3


class InputSnapshot:
    """Snapshot of the parameters, code and inputs that a stage was started with."""

    def __init__(
        self, path: Path, content: Mapping[str, Any], stage: str, task: Task, schema: type[StageParams]
    ) -> None:
        """path: the params.yaml with this `content`; schema: of the stage's parameters.

        Raises UserError, also when the stage's file of code does not match this process's code.
        """
        self._path, self._stage, self._task, self._schema = path, stage, task, schema
        self._sections = declared_sections(content, task.name, schema, where=path)
        self._code = fingerprint(code_at_start(), stage, task)
        self._inputs = [Path(name) for name in dependencies(stage, task.name, content)]
        self._stamps = _stamps(self._inputs)
        self.other_versions = other_versions(self._code["libraries"])
        """Description of the libraries that differ from requirements.lock."""
        for name in self._inputs:
            refuse_other_repository(name)
        self._require_own_code()

    def _require_own_code(self) -> None:
        """Raise UserError if the file of code is not this process's: DVC would record it, whatever code runs."""
        path = Path(code_path(self._stage, self._task.name))
        if path.is_file() and (changed := changes(read_json(path), self._code)):
            raise UserError(
                f"{_some(changed)} changed since {path} was written: run `dvc repro`, or before a stage by hand"
                f" `python -m stages.code {self._task.name}`"
            )

    def require_unchanged(self, note: str) -> None:
        """Raise UserError, one line that names what changed, if anything did; note: appended."""
        if changed := [*self._changed_params(), *self._changed_code(), *self._changed_inputs()]:
            raise UserError(
                f"{_some(changed)} changed while the stage ran, so nothing is recorded as its result: revert the change"
                f" or keep it, and run `dvc repro` again{note}"
            )

    @property
    def parameters(self) -> str:
        """Hash of the stage's parameters."""
        return parameters_digest(self._sections)

    def record(self) -> None:
        """Record what ran as an output of the stage: `dvc commit` and `dvc exp save` record what never ran.

        Raises UserError if a module was imported that the fingerprint does not list.
        """
        if more := unlisted(self._code):
            raise UserError(
                f"{_some(more)} was imported, but DVC would see no change of it: import it by a name that is written"
                " out (transformer/core/code.py follows those)"
            )
        code = hashlib.md5(json_bytes(self._code), usedforsecurity=False).hexdigest()
        ran = {"parameters": self.parameters, "other_versions": self.other_versions, "code": code}
        if self._stage != STAGES[-1]:
            write_json(Path(ran_path(self._stage, self._task.name)), ran)

    def _changed_params(self) -> Iterator[str]:
        now = declared_sections(read_params(self._path), self._task.name, self._schema, where=self._path)
        first, second = (
            {name: json.dumps(value, ensure_ascii=False) for name, value in leaves(sections).items()}
            for sections in (self._sections, now)
        )
        for name in _differing(first, second):
            yield f"{name} ({first.get(name, 'missing')} -> {second.get(name, 'missing')})"

    def _changed_code(self) -> list[str]:
        return changes(self._code, fingerprint(Tree(), self._stage, self._task))

    def _changed_inputs(self) -> list[str]:
        return _differing(self._stamps, _stamps(self._inputs))


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _differing(was: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return [name for name in sorted({*was, *now}) if was.get(name) != now.get(name)]


def _stamps(paths: list[Path]) -> dict[str, tuple[int, int, int]]:
    """Return modification time, size and inode of every input file: rehashing all would take too long."""
    stats = {str(file): file.stat() for path in paths for file in files_of(path)}
    return {name: (stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in stats.items()}
