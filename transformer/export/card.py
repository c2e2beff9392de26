"""The model card: what a model is, what it was trained on, and how good it is."""

from collections.abc import Mapping
from typing import Any

from transformer.core.digest import KEY

_NOT_FOR_PEOPLE = (KEY, f"training.{KEY}", "signatures.parameters")


def model_card(
    title: str, use: str, *, provenance: Mapping[str, Any], params: Mapping[str, Any], figures: Mapping[str, Any]
) -> str:
    """Markdown with the data, the parameters and the metrics as tables.

    provenance: the corpus's provenance.json; params: sections of parameters by name; figures: metrics by name.
    """
    parts = [f"# {title}\n", use, "## Data\n", _table("property", "value", _flat(provenance)), "## Parameters\n"]
    parts += [_table("parameter", "value", _flat(params)), "## Metrics\n", _table("metric", "value", _flat(figures))]
    return "\n".join(parts)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in sorted(values.items()):
        path = f"{prefix}{name}"
        flat |= _flat(value, f"{path}.") if isinstance(value, Mapping) else {path: value}
    return flat


def _table(left: str, right: str, rows: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in rows.items() if name not in _NOT_FOR_PEOPLE}
    lines = [f"| {left} | {right} |", "|---|---|", *(f"| {name} | {value} |" for name, value in shown.items())]
    return "\n".join(lines) + "\n"
