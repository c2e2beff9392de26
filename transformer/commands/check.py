"""`transformer check`: validate params.yaml, and list the stages that would run."""

import os
import reprlib
from pathlib import Path

from transformer.commands.local_corpora import FROM_NOTHING, starts_from_samples
from transformer.core.errors import UserError
from transformer.core.params import read_params, stage_params
from transformer.core.task import STAGES, open_task, task_names
from transformer.core.unchanged import refuse_around_project, refuse_other_repository
from transformer.core.validation import SHARED_SECTIONS, Hardware, Runtime, Section, validate

_WATCHED = (
    *(("download", leaf) for leaf in ("path", "added", "held_out")),
    *(("vocab", "path"), ("model", "pretrained")),
)
"""Leaves that are always a DVC dependency, whatever else is set: DVC fails if the path does not exist."""

_LEAVES = ", ".join(
    f"{section}.{leaf}: {value}" for section, leaves in FROM_NOTHING.items() for leaf, value in leaves.items()
)


class _Shared(Section):
    hardware: Hardware
    runtime: Runtime


def check_params(path: Path) -> None:
    """Validate every section of every task, and check that the paths in them exist (relative to the current folder).

    Raises UserError at the first error, one line that says where.
    """
    content = read_params(path)
    validate(_Shared, {name: content.get(name) for name in SHARED_SECTIONS}, where=path, prefix="")
    for task in task_names():
        declared = open_task(task)
        known: set[str] = set()
        for stage in STAGES:
            schema_of_stage = declared.family.stage(stage).Params
            stage_params(content, task, schema_of_stage, where=path)
            known |= schema_of_stage.model_fields.keys()
        combinations = declared.family.combinations()
        together = stage_params(content, task, combinations.Params, where=path)
        try:
            combinations.check(declared, together)
        except ValueError as error:
            raise UserError(f"{path}: `{task}`: {error}") from error
        if content[task]["download"]["source"] != "sample" and starts_from_samples(content, task):
            raise UserError(
                f"{path}: `{task}.model.init`: it starts from a language model that has read only generated texts; for"
                f" {task}.download.source {content[task]['download']['source']} set {_LEAVES}"
            )
        _refuse_unknown(content[task], known, f"{task}.", path)
        for section, leaf in _WATCHED:
            if leaf in content[task][section]:
                _refuse_missing(content[task][section][leaf], f"{task}.{section}.{leaf}", path)
    _refuse_unknown(content, {*SHARED_SECTIONS, *task_names()}, "", path)


def _is_made(path: str) -> bool:
    """True if a relative path is, or lies in, a folder that the stages of a task write."""
    root, task = (*Path(path).parts[:2], "", "")[:2]
    return root in ("data", "models", "reports") and task in task_names()


def _refuse_missing(given: str, name: str, path: Path) -> None:
    if _is_made(given):  # DVC runs the stage that writes it first
        return
    if not os.path.exists(given):  # noqa: PTH110  # `Path.exists` raises for a name that is too long
        raise UserError(f"{path}: `{name}`: {reprlib.repr(given)} does not exist: create it or set another path")
    try:
        refuse_other_repository(Path(given))
        refuse_around_project(Path(given))
    except UserError as error:
        raise UserError(f"{path}: `{name}`: {error}") from error


def _refuse_unknown(content: dict[str, object], known: set[str], prefix: str, path: Path) -> None:
    for name in content:
        if name not in known:
            raise UserError(f"{path}: `{prefix}{name}` is not a section; known here: {', '.join(sorted(known))}")
