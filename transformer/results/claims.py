"""Parameters in dvc.lock that were never run: `dvc exp save` and `dvc commit --force` take them as they lie."""

import json
from collections.abc import Callable

from transformer.core.digest import parameters_digest
from transformer.core.signing import signature, signed_output
from transformer.results.chain import Chain


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
