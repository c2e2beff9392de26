"""Digest of a stage's parameters, which ties its outputs to the parameters that DVC records for them.

`dvc commit --force` and `dvc exp save` can write a dvc.lock that claims outputs for parameters that were never run;
the digest in a stage's record (`unchanged.py`) covers the parameters that were run.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

RUNTIME = "runtime"
"""The section that no stage declares: it cannot change an output."""
_PLACES_AND_CHECKS = {"download": ("path", "added", "expected_sha256"), "vocab": ("path",)}
"""Parameters that are local paths or checks: results may be equal with different values."""


def parameters_digest(sections: Mapping[str, Any]) -> str:
    """Return 64 hexadecimal digits for the parameters that a stage declares, keyed by the dotted names of dvc.yaml.

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
    """Convert `value` to plain JSON types, whole floats to integers: DVC treats 1 and 1.0 as equal."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def leaves(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested mappings to dotted names, normalizing values with `plain`. An empty mapping has no leaf."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        path = f"{prefix}.{name}" if prefix else str(name)
        found |= leaves(value, path) if isinstance(value, Mapping) else {path: plain(value)}
    return found
