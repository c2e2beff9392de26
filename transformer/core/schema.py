"""Base class of all sections of params.yaml, and the two sections shared by all tasks."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


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
        from transformer.core.validation import validate

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
