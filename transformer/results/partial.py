"""Detects a dvc.lock without a consistent result: stages that do not belong together, or parameters never run.

`dvc exp save` and `dvc commit --force` record the current parameters without a run.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transformer.core.code import code_path, ran_path
from transformer.core.digest import leaves, parameters_digest, signature, signed_output
from transformer.results.chain import STAGES, Chain

_PARAMS = "params.yaml"
_NAMED = 3
_TRAIN = STAGES.index("train")
_SPLIT = "models/{}/bundle/pretokenizer.json"


def in_words(chain: Chain, where: str) -> str:
    """Explain why a chain with stale stages is not a result, and what to run; where: a commit, the workspace, ..."""
    first = STAGES.index(chain.stale[0])
    if chain.stale[0] not in {stage.name for stage in chain.stages}:
        what = f"{chain.stale[0]} has not run"
    elif first > _TRAIN + 1:
        what = "the scores are newer than the exported model"
    elif first > _TRAIN:
        what = "the model is newer than its scores"
    else:
        what = f"{chain.stale[0]} has not read what the stages above it wrote"
    stages = ", ".join(chain.stale)
    return f"{chain.task}: {where} has no consistent result: {what}; run `dvc repro report@{chain.task}` ({stages})"


def claim_in_words(chain: Chain, stage: str, where: str) -> str:
    """Explain that a chain is not a result because `stage` never ran with its parameters, and what to run."""
    return (
        f"{chain.task}: {where} has no result: {stage} never ran with the parameters in dvc.lock (`dvc exp save` and"
        f" `dvc commit` record them without a run); run `dvc repro --force --single-item {stage}@{chain.task}`,"
        f" then `dvc repro`"
    )


def edited_in_words(chain: Chain, content: Mapping[str, Any]) -> str | None:
    """Say that the workspace's result is not one of params.yaml, as after a failed run; None if it is.

    content: the parsed params.yaml.
    """
    locked = chain.params.get(_PARAMS, {})
    was, now = leaves(locked), leaves({name: _at(content, name) for name in locked})
    edited = [
        f"{name} is {was.get(name, 'absent')} there and {now.get(name, 'absent')} in {_PARAMS}"
        for name in sorted({*was, *now})
        if was.get(name, ...) != now.get(name, ...)
    ]
    if not edited:
        return None
    shown = "; ".join(edited[:_NAMED]) + (f"; and {len(edited) - _NAMED} more" if len(edited) > _NAMED else "")
    return (
        f"{chain.task}: the workspace's result is not of its {_PARAMS}, which has not run to its end ({shown});"
        f" `dvc repro report@{chain.task}` makes the new one"
    )


def changed_in_words(chain: Chain, changed: Mapping[str, Sequence[str]], where: str) -> str | None:
    """Say that a result is not of the code and data that are there; None without changes, which are given by stage."""
    if not changed:
        return None
    named = [f"{stage}: {', '.join(what[:_NAMED])}" for stage, what in changed.items()]
    shown = "; ".join(named[:_NAMED]) + (f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else "")
    return (
        f"{chain.task}: the result of {where} is older than what has changed since ({shown});"
        f" `dvc repro report@{chain.task}` makes the new one"
    )


def _at(content: Mapping[str, Any], name: str) -> Any:
    found: Any = content
    for part in name.split("."):
        found = found.get(part, {}) if isinstance(found, Mapping) else {}
    return found


def never_run(chain: Chain, read: Callable[[str], bytes | None]) -> str | None:
    """The first stage whose output was made with other parameters than those in dvc.lock; None if all agree.

    read: returns the content of an output, or None if it is not available.
    """
    for stage in chain.stages:
        sections = {name: value for values in stage.params.values() for name, value in values.items()}
        path = _SPLIT.format(chain.task) if stage.name == "tokenize" else signed_output(stage.name, chain.task)
        content = path and read(path)
        if not content:
            continue
        if stage.name == "tokenize":
            ran = _split_as(sections[f"{chain.task}.tokenize"], json.loads(content))
        else:
            ran = signature(json.loads(content), stage.name) == parameters_digest(sections)
        if not ran:
            return stage.name
    return None


def accepted(chain: Chain, read: Callable[[str], bytes | None]) -> list[str]:
    """The stages for which dvc.lock has other code than what ran. read: as in `never_run`."""
    found = []
    for stage in chain.executed:
        record = read(ran_path(stage.name, chain.task))
        if record and json.loads(record)["code"] != stage.deps.get(code_path(stage.name, chain.task)):
            found.append(stage.name)
    return found


def accepted_in_words(chain: Chain, stages: Sequence[str], where: str) -> str | None:
    """Say that other code made a result than what dvc.lock has for these stages; None without any."""
    if not stages:
        return None
    return (
        f"{chain.task}: {', '.join(stages)} of {where} ran with other code than dvc.lock has (`transformer accept`,"
        f" `dvc exp save` and `dvc commit` record it without a run); `dvc repro --force report@{chain.task}` runs it"
    )


def _split_as(section: dict[str, Any], sides: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether these are the parameters of `tokenize` that wrote pretokenizer.json, which has them by side."""

    def asked(side: str, name: str) -> Any:
        """Of one side: its own value, or the section's. Of two languages each is named like its side."""
        value = section.get(name, "keep" if name == "html_breaks" else section.get(side))
        return value.get(side) if isinstance(value, Mapping) else value

    return all(asked(side, name) == value for side, found in sides.items() for name, value in found.items())
