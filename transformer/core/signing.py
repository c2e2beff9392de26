"""Writing into one of a stage's outputs the digest of the parameters that made it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer.core.digest import KEY, parameters_digest
from transformer.core.files import read_json, write_json

_SIGNED = {
    "download": ("data/{}/corpus/provenance.json", (KEY,)),
    "build_vocab": ("reports/{}/vocabulary.json", (KEY,)),
    "train": ("reports/{}/training.json", (KEY,)),
    "evaluate": ("reports/{}/evaluation.json", ("signatures", "parameters")),
    "export": ("models/{}/bundle/config.json", (KEY,)),
}
"""By stage, the output that the fewest later stages read, and the place in it.

`tokenize` has its parameters themselves in pretokenizer.json. `figures` and `report` only show a result.
"""


def sign(stage: str, task: str, sections: Mapping[str, Any]) -> None:
    """Put the digest of the declared `sections`, by dotted name, into the stage's output."""
    if stage not in _SIGNED:
        return
    path, place = _SIGNED[stage]
    output = Path(path.format(task))
    content = read_json(output)
    *above, key = place
    inner = content
    for name in above:
        inner = inner.setdefault(name, {})
    inner[key] = parameters_digest(sections)
    write_json(output, content)


def signed_output(stage: str, task: str) -> str | None:
    """The path of the stage's output that has the digest; None for a stage that writes none."""
    return _SIGNED[stage][0].format(task) if stage in _SIGNED else None


def signature(content: Mapping[str, Any], stage: str) -> str | None:
    """The digest in a stage's output, given the output's JSON; None where an older version wrote it."""
    found: Any = content
    for name in _SIGNED[stage][1]:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else None
