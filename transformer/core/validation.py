"""Validate plain values against a section; report errors in one line."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from transformer.core.errors import UserError

SHARED_SECTIONS = ("hardware", "runtime")
"""Top-level sections of params.yaml, shared by all tasks."""

_KIND = "kind"
"""Key that selects one of several section types."""

_ALIKE = 0.8  # of a misspelt key to the right one, from 0 to 1

Model = TypeVar("Model", bound=BaseModel)


def validate(schema: type[Model], sections: dict[str, Any], *, where: Path | str, prefix: str) -> Model:
    """Validate plain values against a schema; raise UserError with the first error's dotted path."""
    try:
        return schema.model_validate(sections)
    except ValidationError as error:
        faults = error.errors()
        fault = _of_kind(_misspelt(faults) or faults[0])
        parts = _without_kinds(fault, sections)
        path = ".".join(parts if parts and parts[0] in SHARED_SECTIONS else [prefix, *parts])
        given = "" if fault["type"] in ("missing", "value_error") else f", not {_short(fault['input'])}"
        message = fault["msg"].removeprefix("Value error, ")
        raise UserError(f"{where}: `{path}`: {message}{given}") from error


def _misspelt(faults: Sequence[ErrorDetails]) -> ErrorDetails | None:
    """Return the error of a key that resembles a missing one, which alone would be reported otherwise."""
    for fault in (fault for fault in faults if fault["type"] == "extra_forbidden"):
        *section, name = fault["loc"]
        missing = [
            str(each["loc"][-1]) for each in faults if each["type"] == "missing" and [*each["loc"][:-1]] == section
        ]
        if close := get_close_matches(str(name), missing, n=1, cutoff=_ALIKE):
            return {**fault, "type": "value_error", "msg": f"is not a parameter: `{close[0]}` is missing here"}
    return None


def _of_kind(fault: ErrorDetails) -> ErrorDetails:
    """Report an error of the discriminator key (`kind`) like one of any other key."""
    if fault["type"] == "union_tag_not_found":
        return {**fault, "type": "missing", "loc": (*fault["loc"], _KIND), "msg": "Field required"}
    if fault["type"] == "union_tag_invalid":
        message = f"Input should be one of {fault['ctx']['expected_tags']}"
        return {**fault, "loc": (*fault["loc"], _KIND), "msg": message, "input": fault["input"][_KIND]}
    return fault


def _without_kinds(fault: ErrorDetails, content: Any) -> list[str]:
    """Return an error's path in params.yaml, without the chosen kinds that pydantic adds to it."""
    parts: list[str] = []
    for part in fault["loc"]:
        if isinstance(content, Mapping) and part not in content and part == content.get(_KIND):
            continue
        parts.append(str(part))
        content = content.get(part) if isinstance(content, Mapping) else None
    return parts


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
