"""Sections of params.yaml as schemas, and their validation with errors of one line."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from transformer.core.errors import UserError


class Section(BaseModel):
    """One typed, frozen section of params.yaml. Unknown keys, wrong types and values out of range are rejected.

    The docstring below a field is its description (`transformer parameters`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _whole_floats_are_integers(cls, values: Any) -> Any:
        # DVC treats 1 and 1.0 as equal, and `-S train.warmup=4e3` arrives as a float.
        if not isinstance(values, dict):
            return values
        whole = {
            name: int(value)
            for name, value in values.items()
            if isinstance(value, float) and value.is_integer() and name in cls.model_fields
            if cls.model_fields[name].annotation in (int, int | None)
        }
        return values | whole

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with changes, which are validated, unlike pydantic's. Raises UserError, one line."""
        own = super().model_copy(deep=deep)
        if not update:
            return own
        return validate(type(self), dict(own) | dict(update), where="changed parameters", prefix=type(self).__name__)


class Hardware(Section):
    """Where and how the numbers are computed. Declared by the stages that compute: it can change numbers."""

    device: Literal["cpu", "cuda", "mps"]
    """`mps` is Apple's GPU."""
    precision: Literal["fp32", "bf16"]
    """Precision of matrix products in training: bf16 is faster on hardware that supports it."""
    threads: int = Field(ge=1, le=1024)
    """CPU threads of torch. A different number sums in a different order, so it can change the last bits."""
    deterministic: bool
    """On CUDA, use deterministic kernels, which are slower. CPU kernels always are deterministic."""
    portable: bool
    """In fp32 on a CPU, compute only with what every x86-64 processor with AVX2 has, so that all give the same bytes.

    Costs up to half the speed on some processors with AVX-512.
    """


class Runtime(Section):
    """Settings that cannot change a byte of any output. Declared by no stage."""

    workers: int = Field(ge=0, le=4096)
    """Processes that tokenize, count, encode and decode; 0 does so in the stage's own process."""
    trainers: int = Field(ge=1, le=1024)
    """Training processes of this machine, which compute the `train.shards` parts of an update, and divide their number;
    torchrun starts those of several machines."""
    engine: Literal["processes", "ray"]
    """Engine for workers: processes of this machine, or Ray, also on several machines (the extra `cluster`)."""
    address: str | None
    """HOST:PORT of a running Ray cluster to join; null: that of RAY_ADDRESS, else a private one on this machine."""
    retries: int = Field(ge=0)
    """How often a stage goes on after a worker was lost."""
    log_every: int = Field(ge=1)
    """Training steps between two live metric points."""
    progress: bool
    """Show progress: bars on a terminal, else now and then a line with the minutes left."""
    save_every: float = Field(ge=0)
    """Seconds between two checkpoints, from which an interrupted run resumes; 0 writes none."""
    tracking: bool
    """Record runs in MLflow."""
    tracking_seconds: float = Field(gt=0)
    """How long the last stage waits for MLflow; after that, `transformer sync` writes the run."""


class StageParams(Section):
    """All parameters that a stage of a task reads. Its fields but `runtime` are the sections it declares in dvc.yaml.

    `hardware` and `runtime` are top-level sections of params.yaml; every other field is a section of the task.
    """

    runtime: Runtime


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
