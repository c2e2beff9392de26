"""The digest of an output's parameters, which ties the output to the parameters that DVC records for it.

`dvc commit --force` and `dvc exp save` can write a dvc.lock that claims outputs for parameters that were never run; the
digest that a stage writes into one of its outputs (`transformer/core/stage.py`) is of those that were run.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer.core.files import read_json, write_json

KEY = "parameters_sha256"
"""The key of the digest in an output's JSON."""
RUNTIME = "runtime"
"""The section that no stage declares: it cannot change a byte."""
_PLACES_AND_CHECKS = {"download": ("path", "added", "expected_sha256"), "vocab": ("path",)}
"""Parameters that are locations on a machine or checks: the same result may have other values."""


def parameters_digest(sections: Mapping[str, Any]) -> str:
    """64 hexadecimal digits for the parameters that a stage declares, given by the dotted names of dvc.yaml.

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
    """`value` as plain JSON types, with whole floats as integers: DVC treats 1 and 1.0 as equal."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def leaves(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested mappings to dotted names, with values normalized by `plain`. An empty mapping has no leaf."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        path = f"{prefix}.{name}" if prefix else str(name)
        found |= leaves(value, path) if isinstance(value, Mapping) else {path: plain(value)}
    return found


_SIGNED = {
    "download": ("data/{}/corpus/provenance.json", (KEY,)),
    "build_vocab": ("reports/{}/vocabulary.json", (KEY,)),
    "train": ("reports/{}/training.json", (KEY,)),
    "evaluate": ("reports/{}/evaluation.json", ("signatures", "parameters")),
    "export": ("models/{}/bundle/config.json", (KEY,)),
}
"""Per stage, the output that the fewest later stages read, and the place in it.

`tokenize` stores its parameters in full in pretokenizer.json. `figures` and `report` only show a result.
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
    """The path of the output that contains the stage's digest; None for a stage that writes none."""
    return _SIGNED[stage][0].format(task) if stage in _SIGNED else None


def signature(content: Mapping[str, Any], stage: str) -> Any:
    """The digest in a stage's output, given the output's JSON."""
    found: Any = content
    for name in _SIGNED[stage][1]:
        found = found.get(name, {})
    return found
