"""The chain of one result: what DVC recorded about a task's stages, and the keys derived from it."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from transformer.core.code import code_path
from transformer.core.digest import leaves, plain
from transformer.core.task import STAGES as ALL_STAGES
from transformer.results.dvc_inside import declared_of
from transformer.results.lockfile import LOCK, parse_lock
from transformer.results.workspace import folder_md5, hashes


class View(NamedTuple):
    """A stage that shows a result, or gives it another form, without being part of it."""

    after: str
    """The last stage whose outputs it is made from."""
    root: str
    folder: str
    """It writes ROOT/TASK/FOLDER."""

    def path(self, task: str) -> str:
        """The folder that it writes for a task."""
        return f"{self.root}/{task}/{self.folder}"


FIGURES, CONVERT = "figures", "convert"
VIEWS = {FIGURES: View("train", "reports", "figures"), CONVERT: View("export", "models", "converted")}
"""By stage. Keys ignore them, and a result may lack them."""
REPORT = "report"
"""The stage that writes a result's report page. It has no output and no run of its own."""
STAGES = tuple(name for name in ALL_STAGES if name not in (*VIEWS, REPORT))
"""The stages that make a result."""
DATA_STAGES = STAGES[: STAGES.index("train")]
"""Their outputs are the same on every machine, whatever its processor and precision."""
_KEPT = 128  # dvc.lock files whose chains stay in memory: a command reads the same ones again and again
_SHORT = 8
EMPTY = folder_md5({})
"""The MD5 of an empty folder."""


@dataclass(frozen=True)
class Stage:
    """One stage of one result."""

    name: str
    params: Mapping[str, Mapping[str, Any]]
    """By file, then by the dotted name declared in dvc.yaml."""
    deps: Mapping[str, str]
    """Path to MD5, as DVC writes it (a folder's MD5 ends in `.dir`)."""
    outs: Mapping[str, str]
    """Without the record of what ran, so that other code with the same outputs has the same result."""
    ran: str | None = None
    """The MD5 of that record."""


@dataclass(frozen=True)
class Chain:
    """A task's stages in order, from `download` on; the last may still be running."""

    task: str
    stages: tuple[Stage, ...]
    views: tuple[Stage, ...] = ()
    """What was made of this result."""
    outs: dict[str, str] = field(init=False, compare=False)
    """The outputs of all stages: path to MD5."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "outs", {path: md5 for stage in self.executed for path, md5 in stage.outs.items()})

    @property
    def code(self) -> dict[str, str]:
        """The fingerprints of the stages' code: path to MD5."""
        paths = {code_path(stage.name, self.task): stage.deps for stage in self.stages}
        return {path: deps[path] for path, deps in paths.items() if path in deps}

    @property
    def executed(self) -> tuple[Stage, ...]:
        """The stages, then the views that the chain has."""
        return (*self.stages, *self.views)

    def view(self, name: str) -> Stage | None:
        """What view `name` wrote for this result; None if the chain lacks it."""
        return next((view for view in self.views if view.name == name), None)

    def view_md5(self, name: str) -> str | None:
        """The MD5 of the folder that view `name` wrote; if it wrote nothing, that of what it would be made from.

        So a row's model gets the newest bundle also under `convert.formats: []`.
        """
        view = self.view(name)
        written = None if view is None else view.outs.get(VIEWS[name].path(self.task))
        if view is None or written != EMPTY:
            return written
        return view.deps.get(bundle_path(self.task), written)

    @property
    def stale(self) -> tuple[str, ...]:
        """The first stage that is missing or did not read what the stages above it wrote, and all stages below it.

        A chain without stale stages is a result: complete and consistent.
        """
        by_name = {stage.name: stage for stage in self.stages}
        above: list[Stage] = []
        for number, name in enumerate(STAGES):
            stage = by_name.get(name)
            if stage is None or not fits(stage, above):
                return STAGES[number:]
            above.append(stage)
        return ()

    def holds(self, name: str) -> bool:
        """Whether stage `name` is present and, like the stages above it, read what those above wrote."""
        if name in VIEWS:
            view = self.view(name)
            return view is not None and self.holds(VIEWS[name].after) and fits(view, self.stages)
        return name not in self.stale

    @property
    def params(self) -> dict[str, dict[str, Any]]:
        """All declared parameters, by file, then by dotted name.

        Each comes from the stage that its section is named after, which is the first one to declare it.
        """
        merged: dict[str, dict[str, Any]] = {}
        for stage in reversed(self.stages):
            for file, values in stage.params.items():
                merged.setdefault(file, {}).update(values)
        return merged

    def row_key(self) -> str:
        """The result's key: 16 hexadecimal digits that identify its content.

        It hashes every stage's parameters and output hashes, except the output of `export`: that lock entry does not
        exist yet when the stage ends, and follows from the rest. Code does not count: other code that gives the same
        bytes gives the same result.
        """
        return _digest(self._content(upto="export"))

    def stage_key(self, name: str) -> str:
        """16 hexadecimal digits that identify what stage `name` starts from: its parameters and the chain above it."""
        if name in VIEWS:
            view = self.view(name)
            return _digest({**self._content(upto=VIEWS[name].after), name: {} if view is None else plain(view.params)})
        return _digest(self._content(upto=name))

    def stage_run_name(self, name: str) -> str:
        """The name of the child run for this execution of stage `name`."""
        return f"{name} {self.stage_key(name)[:_SHORT]}"

    def _content(self, *, upto: str) -> dict[str, Any]:
        content: dict[str, Any] = {"task": self.task}
        for stage in self.stages[: STAGES.index(upto) + 1]:
            outs = {} if stage.name == upto else dict(stage.outs)
            content[stage.name] = {"params": plain(stage.params), "outs": outs}
        return content


def trained_path(task: str) -> str:
    """The folder of a task's trained model."""
    return f"models/{task}/trained"


def bundle_path(task: str) -> str:
    """The folder of a task's exported model."""
    return f"models/{task}/bundle"


def conversion_path(task: str) -> str:
    """What `convert` reports: for each engine the bytes of its model, and how many rows it was verified on."""
    return f"reports/{task}/conversion.json"


def _digest(content: Any) -> str:
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def stage_from_entry(name: str, entry: Mapping[str, Any]) -> Stage:
    """Parse the entry of one stage, from a dvc.lock or from the run cache."""
    deps, outs = (
        {item["path"]: item["md5"] for item in entry.get(kind) or () if item.get("md5")} for kind in ("deps", "outs")
    )
    record = next((path for path in outs if path.split("/")[2:3] == ["ran"]), "")
    return Stage(name=name, params=entry.get("params") or {}, deps=deps, ran=outs.pop(record, None), outs=outs)


def chains_in_lock(text: str | bytes) -> Iterator[Chain]:
    """The results in a dvc.lock, at most one per task: complete chains whose stages belong together.

    A file that cannot be parsed has none.
    """
    return (chain for chain in all_chains(text) if not chain.stale)


@lru_cache(maxsize=_KEPT)
def all_chains(text: str | bytes) -> tuple[Chain, ...]:
    """The chain of every task in a dvc.lock; one with `stale` stages is not a result."""
    try:
        entries = parse_lock(text).get("stages") or {}
    except ValueError:
        return ()
    tasks = sorted({name.partition("@")[2] for name in entries if "@" in name})
    return tuple(_with_locked_views(_chain(entries, task, STAGES), entries) for task in tasks)


def _with_locked_views(chain: Chain, entries: Mapping[str, Any], names: Iterable[str] = VIEWS) -> Chain:
    for name in names:
        if entry := entries.get(f"{name}@{chain.task}"):
            chain = with_view(chain, stage_from_entry(name, entry))
    return chain


def with_view(chain: Chain, view: Stage) -> Chain:
    """The chain with this view, in place of an earlier one, if it is of its result.

    That is, made from its outputs with the same parameters.
    """
    if not fits(view, chain.stages):
        return chain
    found = {each.name: each for each in (*chain.views, view)}
    return replace(chain, views=tuple(found[name] for name in VIEWS if name in found))


def fits(reader: Stage, stages: Sequence[Stage]) -> bool:
    """Whether `reader` read what `stages` wrote, with the same values for the parameters that both declare."""
    wrote = {path: md5 for stage in stages for path, md5 in stage.outs.items()}
    params = {name: value for stage in stages for name, value in declared(stage).items()}
    return all(wrote.get(path, md5) == md5 for path, md5 in reader.deps.items()) and all(
        params.get(name, value) == value for name, value in declared(reader).items()
    )


def declared(stage: Stage) -> dict[tuple[str, str], Any]:
    """The stage's parameter values by file and dotted name, and each whole section that it declares.

    A section counts as a whole too, because a parameter may be a word in one stage and a mapping, with names of its
    own, in another.
    """
    return {
        (file, name): value
        for file, values in stage.params.items()
        for name, value in (leaves(values) | {name: plain(section) for name, section in values.items()}).items()
    }


def running_chain(directory: Path, task: str, stage: str) -> Chain:
    """The chain up to the stage that DVC is running in `directory`, whose own lock entry does not exist yet.

    The stages above come from dvc.lock, which DVC writes after each stage. The running stage's parameters are read
    from dvc.yaml and params.yaml by DVC itself, so they are the values that it will record. Its dependencies are
    hashed as they are in `directory`; `stale` tells whether they match the stages above.
    Raises ValueError when dvc.lock lacks a stage above.
    """
    above = STAGES[: STAGES.index(VIEWS[stage].after) + 1] if stage in VIEWS else STAGES[: STAGES.index(stage)]
    path = directory / LOCK
    entries = parse_lock(path.read_bytes()).get("stages") or {} if path.exists() else {}
    chain = _chain(entries, task, above)
    if len(chain.stages) != len(above):
        raise ValueError(f"{LOCK} lacks a stage above {stage}@{task}")
    running = _running_stage(directory, task, stage)
    if stage in VIEWS:
        return replace(chain, views=(running,))
    made = [name for name, view in VIEWS.items() if view.after in above]  # not of what the stage is about to write
    return _with_locked_views(Chain(task, (*chain.stages, running)), entries, made)


def _running_stage(directory: Path, task: str, name: str) -> Stage:
    from dvc.repo import Repo

    with Repo(str(directory)) as repo:
        params, paths = declared_of(repo, f"{name}@{task}")
        read = hashes(repo, paths)
    return Stage(name=name, params=params, deps={path: md5 for path, md5 in read.items() if md5}, outs={})


def _chain(entries: Mapping[str, Any], task: str, names: tuple[str, ...]) -> Chain:
    found = ((name, entries.get(f"{name}@{task}")) for name in names)
    return Chain(task, tuple(stage_from_entry(name, entry) for name, entry in found if entry))
