"""Inputs that dvc.yaml declares for a stage, read without importing DVC, which would take longer than a short stage."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from transformer.core.errors import UserError

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
