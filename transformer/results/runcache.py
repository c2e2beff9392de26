"""Rebuilds chains from DVC's run cache, which has one unnamed entry per stage run on this machine."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.core.digest import plain
from transformer.results.chain import STAGES, VIEWS, Chain, Stage, declared, stage_from_entry, with_view
from transformer.results.lockfile import parse_lock

# A stage is identified by an output that only it writes (docs/design.md).
_KNOWN_BY = {
    "download": re.compile(r"data/(\w+)/corpus"),
    "tokenize": re.compile(r"data/(\w+)/tokens"),
    "build_vocab": re.compile(r"data/(\w+)/vocab"),
    "train": re.compile(r"models/(\w+)/trained"),
    "evaluate": re.compile(r"reports/(\w+)/evaluation\.json"),
    "export": re.compile(r"models/(\w+)/bundle"),
} | {name: re.compile(view.path(r"(\w+)")) for name, view in VIEWS.items()}


@dataclass(frozen=True)
class _Entry:
    task: str
    stage: Stage
    time: int


def chains_in_run_cache(folder: Path) -> Iterator[tuple[Chain, int]]:
    """Every complete chain in the run cache, with the time (seconds) at which its export ran, oldest first.

    Chains are followed backwards from each export's entry: a stage belongs to a chain if it wrote what a stage below
    read, with the same values for the parameters that both declare. If several stages do, each gives a chain: DVC
    would restore any of these chains without running a stage.
    """
    entries: dict[tuple[str, str], list[_Entry]] = defaultdict(list)
    for entry in _entries(folder):
        entries[entry.task, entry.stage.name].append(entry)
    exports = [entry for (_, name), found in entries.items() if name == "export" for entry in found]
    for export in sorted(exports, key=lambda entry: (entry.time, entry.task)):
        for stages in _above(entries, export.task, [export.stage]):
            chain = Chain(export.task, tuple(stages))
            if chain.stale:  # two stages below read different outputs of one above
                continue
            for name in VIEWS:
                for view in entries.get((export.task, name), ())[::-1]:  # the first that was made of it
                    chain = with_view(chain, view.stage)
            yield chain, export.time


def _entries(folder: Path) -> Iterator[_Entry]:
    seen = set()
    # Of equal entries the oldest counts: it has the time when the outputs were first made.
    for path in sorted(folder.glob("*/*/*"), key=lambda path: path.stat().st_mtime):
        try:
            content = parse_lock(path.read_bytes())
        except (ValueError, OSError):
            continue
        for name, pattern in _KNOWN_BY.items():
            match = next(filter(None, (pattern.fullmatch(out["path"]) for out in content.get("outs") or ())), None)
            if match is None:
                continue
            stage = stage_from_entry(name, content)
            identity = repr((plain(stage.params), stage.deps, stage.outs))
            if identity not in seen:
                seen.add(identity)
                yield _Entry(match.group(1), stage, int(path.stat().st_mtime))


def _above(entries: Mapping[tuple[str, str], Sequence[_Entry]], task: str, below: list[Stage]) -> Iterator[list[Stage]]:
    """`below`, completed in every possible way with matching stages above it."""
    depth = len(STAGES) - len(below)
    if depth == 0:
        yield below
        return
    known = set()
    for entry in entries.get((task, STAGES[depth - 1]), ()):
        content = repr((plain(entry.stage.params), entry.stage.outs))
        if content not in known and _fits(entry.stage, below):
            known.add(content)
            yield from _above(entries, task, [entry.stage, *below])


def _fits(stage: Stage, below: Sequence[Stage]) -> bool:
    reads: dict[str, str] = {}
    params: dict[tuple[str, str], Any] = {}
    for other in below:
        reads |= other.deps
        params |= declared(other)
    used = [path for path in stage.outs if path in reads]
    return (
        bool(used)
        and all(stage.outs[path] == reads[path] for path in used)
        and all(params.get(name, value) == value for name, value in declared(stage).items())
    )
