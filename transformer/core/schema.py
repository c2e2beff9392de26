"""What every section of params.yaml has in common, and the two sections that all tasks share."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_LARGEST = 2**53
"""Beyond it, floats and with them JSON and YAML readers no longer know every integer."""


class Section(BaseModel):
    """One typed, frozen section of params.yaml. An unknown key, a wrong type or a value out of range is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _whole_floats_are_integers(cls, values: Any) -> Any:
        # DVC takes 1 and 1.0 for the same value, and `-S train.warmup=4e3` arrives as a float.
        if not isinstance(values, dict):
            return values
        whole = {
            name: int(value)
            for name, value in values.items()
            if isinstance(value, float) and value.is_integer() and name in cls.model_fields
            if cls.model_fields[name].annotation in (int, int | None)
        }
        return values | whole

    @field_validator("*")
    @classmethod
    def _what_every_reader_knows(cls, value: Any) -> Any:
        for item in value if isinstance(value, list) else [value]:
            if type(item) is int and abs(item) > _LARGEST:
                raise ValueError(f"Integer should be at most {_LARGEST}")
            if isinstance(item, str) and ("\0" in item or any("\ud800" <= letter <= "\udfff" for letter in item)):
                raise ValueError("Text should hold neither NUL nor half of a surrogate pair")
        return value


class Hardware(Section):
    """Where and how the numbers are computed. Declared by the stages that compute: it can change numbers."""

    device: Literal["auto", "cpu", "cuda", "mps"]
    """`auto` takes CUDA, then Apple's MPS, then the CPU."""
    precision: Literal["auto", "fp32", "bf16"]
    """Of the training's matrix products: `auto` takes bf16 where the device has units for it, else fp32."""
    threads: int = Field(ge=1, le=1024)
    """CPU threads of torch. Another number sums in another order, so it can change the last bits."""
    deterministic: bool
    """On CUDA, take kernels that give the same bits each time, at the price of speed. CPUs always do."""


class Runtime(Section):
    """What cannot change a byte of any output. Declared by no stage."""

    workers: int = Field(ge=0, le=256)
    """Processes that tokenize in parallel; 0 works in the stage's own process."""
    log_every: int = Field(ge=1)
    """Training steps between two progress reports and live metric points."""
    progress: bool
    """Show progress bars, where the output is a terminal."""
    save_every: float = Field(ge=0)
    """Seconds between two saved states of a training, from which it goes on when it is killed; 0 saves none."""
    tracking: bool
    """Record runs in MLflow."""


class StageParams(Section):
    """All that one stage of one task reads. Its fields are the sections that the stage declares in dvc.yaml.

    `hardware` and `runtime` are top-level sections of params.yaml; every other field is a section of the task.
    """

    runtime: Runtime
