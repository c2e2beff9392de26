"""Turning plain values into a section, or into one line that says what is wrong with them."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from transformer.errors import UserError

SHARED_SECTIONS = ("hardware", "runtime")
"""The top-level sections of params.yaml that belong to no task."""

Model = TypeVar("Model", bound=BaseModel)


def validate(schema: type[Model], sections: dict[str, Any], *, where: Path | str, prefix: str) -> Model:
    """Validate plain values against a schema; raises UserError with the first fault's dotted path."""
    try:
        return schema.model_validate(sections)
    except ValidationError as error:
        fault = error.errors()[0]
        parts = [str(part) for part in fault["loc"]]
        path = ".".join(parts if parts and parts[0] in SHARED_SECTIONS else [prefix, *parts])
        given = "" if fault["type"] in ("missing", "value_error") else f", not {_short(fault['input'])}"
        message = fault["msg"].removeprefix("Value error, ")
        raise UserError(f"{where}: `{path}`: {message}{given}") from error


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
