"""Reading of params.yaml, and the digest of parameters that ties a stage's outputs to those that it ran with.

DVC's own parser reads the file (ruamel.yaml with libyaml), where 1e-4 is a float. `dvc commit --force` and `dvc exp
save` can write a dvc.lock that claims outputs for parameters that were never run; the digest in a stage's record
(`unchanged.py`) covers those that were.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from transformer.core.errors import UserError
from transformer.core.files import has_conflict
from transformer.core.validation import SHARED_SECTIONS, StageParams, validate

Params = TypeVar("Params", bound=StageParams)


def read_params(path: Path) -> dict[str, Any]:
    """Read a params.yaml as plain values. Raises UserError when it is missing or not a YAML mapping."""
    try:
        text = path.read_text(encoding="utf-8")
        require_no_conflict(text.encode(), path)
        content = parse(text)
        _require_plain(content)
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: restore it with `git checkout {path}`") from error
    except (YAMLError, ValueError, OSError) as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} must be a mapping of sections, not {type(content).__name__}")
    return content


def require_no_conflict(content: bytes, path: Path) -> None:
    """Raise UserError if a params.yaml has git's conflict markers from a merge."""
    if has_conflict(content):
        raise UserError(f"{path} has conflict markers: edit it, or take one side (`git checkout --ours {path}`)")


def parse(text: str) -> Any:
    """Parse a YAML text to plain values, as DVC does. Raises YAMLError or ValueError."""
    return YAML(typ="safe").load(text)


def _require_plain(value: Any) -> None:
    """Raise ValueError for a value or key of a type that YAML has and dvc.lock cannot hold, such as a date."""
    if isinstance(value, Mapping):
        _require_plain([*value, *value.values()])
    elif isinstance(value, list):
        for item in value:
            _require_plain(item)
    elif isinstance(value, date | bytes | set):
        raise ValueError(f"{value!s} is a {type(value).__name__} in YAML: quote it to make it text")


def stage_params(content: dict[str, Any], task: str, schema: type[Params], *, where: Path) -> Params:
    """Validate the sections that are fields of `schema` and return them typed.

    content: all of a params.yaml; task: the name of its section; where: the file, for messages. Raises UserError, one
    line that names the file and the parameter.
    """
    return validate(schema, _sections(content, task, schema, where), where=where, prefix=task)


def declared_sections(
    content: Mapping[str, Any], task: str, schema: type[StageParams], *, where: Path
) -> dict[str, Any]:
    """Return the plain values of the sections that a stage declares in dvc.yaml, by dotted name. Raises UserError."""
    sections = _sections(content, task, schema, where)
    return {section_path(task, name): value for name, value in sections.items() if name != RUNTIME}


def _sections(content: Mapping[str, Any], task: str, schema: type[StageParams], where: Path) -> dict[str, Any]:
    task_sections = content.get(task)
    if not isinstance(task_sections, dict):
        raise UserError(f"{where}: the section `{task}` is missing or not a mapping")
    sections: dict[str, Any] = {}
    for name in schema.model_fields:
        source = content if name in SHARED_SECTIONS else task_sections
        if name not in source:
            raise UserError(f"{where}: the section `{section_path(task, name)}` is missing")
        sections[name] = source[name]
    return sections


def section_path(task: str, name: str) -> str:
    """Return the dotted path of a stage's section in params.yaml."""
    return name if name in SHARED_SECTIONS else f"{task}.{name}"


RUNTIME = "runtime"
"""The section that no stage declares: it cannot change an output."""
_PLACES_AND_CHECKS = {"download": ("path", "added", "expected_sha256"), "vocab": ("path",)}
"""Parameters that are local paths or checks: results may be equal with different values."""


def parameters_digest(sections: Mapping[str, Any]) -> str:
    """Return 64 hexadecimal digits for the parameters that a stage declares, keyed by the dotted names of dvc.yaml.

    Accepts values from params.yaml or from a lock entry, to which DVC adds interpolated leaves of the sections.
    """
    decides = {
        name: _decisive(name, value)
        for name, value in sections.items()
        if name != RUNTIME and not any(name.startswith(f"{other}.") for other in sections)
    }
    canonical = json.dumps(plain(decides), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _decisive(name: str, section: Any) -> Any:
    left_out = _PLACES_AND_CHECKS.get(name.rpartition(".")[2], ())
    if not isinstance(section, Mapping):
        return section
    return {leaf: value for leaf, value in section.items() if leaf not in left_out}


def plain(value: Any) -> Any:
    """Convert `value` to plain JSON types, whole floats to integers: DVC treats 1 and 1.0 as equal."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def leaves(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested mappings to dotted names, normalizing values with `plain`. An empty mapping has no leaf."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        path = f"{prefix}.{name}" if prefix else str(name)
        found |= leaves(value, path) if isinstance(value, Mapping) else {path: plain(value)}
    return found
