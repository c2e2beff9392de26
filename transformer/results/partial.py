"""Why dvc.lock may hold no whole result: stages that do not belong together, or parameters that were never run.

`dvc exp save` and `dvc commit --force` record parameters as they lie, without a run.
"""

import json
from collections.abc import Callable

from transformer.core.digest import parameters_digest, signature, signed_output
from transformer.results.chain import STAGES, Chain

_TRAIN = STAGES.index("train")


def in_words(chain: Chain, where: str) -> str:
    """Why what `where` holds of the chain's task is no result, and what to run; for a chain with stale stages."""
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
    return f"{chain.task}: {where} holds no whole result: {what}; run `dvc repro report@{chain.task}` ({stages})"


def claim_in_words(chain: Chain, stage: str, where: str) -> str:
    """Why what `where` holds is no result, for parameters of `stage` that were never run."""
    return (
        f"{chain.task}: {where} holds no result: {stage} never ran with the parameters that dvc.lock has (as `dvc exp"
        f" save` and `dvc commit` leave them); run `dvc repro --force --single-item {stage}@{chain.task}`,"
        f" then `dvc repro`"
    )


def never_run(chain: Chain, read: Callable[[str], bytes | None]) -> str | None:
    """The first stage whose output says that other parameters made it than dvc.lock has; None where all agree.

    read: the content of an output, None where it is not at hand. What older versions wrote says nothing.
    """
    for stage in chain.stages:
        path = signed_output(stage.name, chain.task)
        content = path and read(path)
        if not content:
            continue
        made_by = signature(json.loads(content), stage.name)
        sections = {name: value for values in stage.params.values() for name, value in values.items()}
        if made_by not in (None, parameters_digest(sections)):
            return stage.name
    return None
