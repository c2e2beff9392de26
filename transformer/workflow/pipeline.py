"""A task's stages as recorded in a dvc.lock, and whether they form one consistent result."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from ruamel.yaml.error import YAMLError

from transformer.core.code import code_path, ran_path
from transformer.core.errors import UserError
from transformer.core.files import has_conflict
from transformer.core.params import parameters_digest, parse, plain
from transformer.core.task import STAGES as ALL_STAGES

LOCK = "dvc.lock"
RESOLVE = (
    "resolve the merge (`git checkout --ours dvc.lock params.yaml reports`, or --theirs), then run `dvc checkout` and"
    " `dvc repro`"
)
REPORT = "report"
"""The last stage. It records a result but is not part of it."""
STAGES = tuple(name for name in ALL_STAGES if name != REPORT)
OPTIONAL = ("figures", "convert")
"""Stages that a result may lack."""
REQUIRED = tuple(name for name in STAGES if name not in OPTIONAL)
DATA_STAGES = REQUIRED[: REQUIRED.index("train")]
_PARAMS = "params.yaml"
_KEPT = 512  # parsed dvc.lock files: one takes 0.1 s, and a command reads the same ones again and again


@dataclass(frozen=True)
class Stage:
    """A stage's entry in a dvc.lock."""

    params: Mapping[str, Any]
    """Sections of params.yaml, by the dotted name declared in dvc.yaml."""
    deps: Mapping[str, str]
    """Path to MD5, as DVC writes it (a folder's MD5 ends in `.dir`)."""
    outs: Mapping[str, str]
    """Path to MD5, without the record of what ran, which is not part of a result."""
    ran: str | None = None
    """MD5 of that record."""


@dataclass(frozen=True)
class Pipeline:
    """A task's stages in execution order."""

    task: str
    stages: Mapping[str, Stage]

    @cached_property
    def outs(self) -> dict[str, str]:
        """Outputs of all stages: path to MD5."""
        return {path: md5 for stage in self.stages.values() for path, md5 in stage.outs.items()}

    @cached_property
    def records(self) -> dict[str, str]:
        """The stages' records of what they ran with: path to MD5."""
        return {ran_path(name, self.task): stage.ran for name, stage in self.stages.items() if stage.ran}

    @property
    def code(self) -> dict[str, str]:
        """Fingerprints of the stages' code: path to MD5."""
        paths = {code_path(name, self.task): stage.deps for name, stage in self.stages.items()}
        return {path: deps[path] for path, deps in paths.items() if path in deps}

    @cached_property
    def params(self) -> dict[str, Any]:
        """All declared sections by dotted name, each from the first stage that declares it."""
        return {name: value for stage in [*self.stages.values()][::-1] for name, value in stage.params.items()}

    def section(self, name: str) -> dict[str, Any]:
        """Return a section of the task, such as `download`."""
        return dict(self.params[f"{self.task}.{name}"])

    @cached_property
    def stale(self) -> tuple[str, ...]:
        """The first required stage that is missing or did not read the outputs of earlier ones, and all later
        stages.

        If empty, the pipeline is a result: complete and consistent.
        """
        for number, name in enumerate(REQUIRED):
            above = [self.stages[each] for each in REQUIRED[:number]]
            if name not in self.stages or not _fits(self.stages[name], above):
                return REQUIRED[number:]
        return ()

    @property
    def complete(self) -> bool:
        """True for a result that includes all optional stages."""
        return not self.stale and all(name in self.stages for name in OPTIONAL)

    @cached_property
    def key(self) -> str:
        """16 hexadecimal digits that identify the result: a hash of the stages' parameters and outputs.

        Other code with the same bytes gives the same result, and so do other figures.
        """
        stages = {name: [parameters_digest(stage.params), dict(stage.outs)] for name, stage in self.stages.items()}
        stages.pop("figures", None)
        canonical = json.dumps([self.task, stages], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    def why_partial(self, where: str) -> str:
        """Explain why a pipeline with stale stages is not a result, and what to run; where: a commit, the workspace."""
        first = self.stale[0]
        what = "has not read what the stages above it wrote" if first in self.stages else "has not run"
        run = f"`dvc repro report@{self.task}` ({', '.join(self.stale)})"
        return f"{self.task}: {where} has no consistent result: {first} {what}; run {run}"


def bundle_path(task: str) -> str:
    """Return the folder of a task's exported model."""
    return f"models/{task}/bundle"


def converted_path(task: str) -> str:
    """Return the folder of a task's converted models for other engines."""
    return f"models/{task}/converted"


@lru_cache(maxsize=_KEPT)
def pipelines(lock: bytes, name: str) -> tuple[Pipeline, ...]:
    """Return the pipelines of all tasks in the dvc.lock of `name`, with the optional stages that fit.

    Raises UserError when it has conflict markers or is no valid lock file.
    """
    if has_conflict(lock):
        raise UserError(f"{LOCK} of {name} has conflict markers: {RESOLVE}")
    entries = stages_in_lock(lock, name)
    tasks = sorted({each.partition("@")[2] for each in entries if "@" in each})
    return tuple(_pipeline(task, entries) for task in tasks)


def stages_in_lock(lock: bytes, name: str) -> dict[str, Stage]:
    """Return the stages in the dvc.lock of `name`, by DVC's name, such as `train@translation`. Raises UserError."""
    try:
        entries = (parse(lock.decode()) or {}).get("stages") or {}
        return {stage: _stage(entry) for stage, entry in entries.items()}
    except (YAMLError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise UserError(
            f"{LOCK} of {name} is broken ({' '.join(str(error).split())}): `git checkout {LOCK}` restores the committed"
            " one"
        ) from error


def _stage(entry: Mapping[str, Any]) -> Stage:
    deps, outs = (
        {item["path"]: item["md5"] for item in entry.get(kind) or () if item.get("md5")} for kind in ("deps", "outs")
    )
    record = next((path for path in outs if path.split("/")[2:3] == ["ran"]), "")
    params = (entry.get("params") or {}).get(_PARAMS, {})
    return Stage(dict(params), deps, ran=outs.pop(record, None), outs=outs)


def _pipeline(task: str, entries: Mapping[str, Stage]) -> Pipeline:
    found = {name: entries[f"{name}@{task}"] for name in STAGES if f"{name}@{task}" in entries}
    required = [stage for name, stage in found.items() if name in REQUIRED]
    fitting = {name: stage for name, stage in found.items() if name in REQUIRED or _fits(stage, required)}
    return Pipeline(task, fitting)


def _fits(reader: Stage, stages: Iterable[Stage]) -> bool:
    """True if `reader` read what `stages` wrote, with equal values for the parameters that both declare."""
    return all(reader.deps.get(path, md5) == md5 for stage in stages for path, md5 in stage.outs.items()) and all(
        plain(reader.params.get(name, value)) == plain(value)
        for stage in stages
        for name, value in stage.params.items()
    )
