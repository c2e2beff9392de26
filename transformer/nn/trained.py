"""Trained model folder: weights, and the configuration to rebuild the model."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from transformer.core.errors import UserError
from transformer.core.files import atomic_write, read_json, reading, write_json
from transformer.core.validation import Section, validate

WEIGHTS = "model.safetensors"
CONFIG = "config.json"
Config = TypeVar("Config", bound=Section)
Network = TypeVar("Network", bound=nn.Module)
_COMPUTED = 2**26  # maximum number of values that a model computes from its configuration, such as sinusoids


def unique_state(model: nn.Module) -> dict[str, Tensor]:
    """Return the model's state dict without duplicates: tied weights appear once, under their first name."""
    seen: set[int] = set()
    state = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            state[name] = tensor
    return state


def save_trained(folder: Path, config: Section, state: dict[str, Tensor]) -> None:
    """Write the weights (safetensors without metadata) and the configuration."""
    with atomic_write(folder / WEIGHTS) as stream:
        stream.write(save(state))
    write_json(folder / CONFIG, config.model_dump())


def load_config(folder: Path, schema: type[Config]) -> Config:
    """Load a trained model's configuration. Raises UserError when it is missing or not of this kind."""
    return validate(schema, read_json(folder / CONFIG), where=folder / CONFIG, prefix="config")


def put_state(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Load a state from `unique_state`. Raises RuntimeError when names or shapes do not match."""
    tied = model.state_dict().keys() - unique_state(model).keys()
    result = model.load_state_dict(state, strict=False)
    if result.unexpected_keys or set(result.missing_keys) != tied:
        raise RuntimeError(f"the weights do not match the model: {result}")


def load_model(folder: Path, build: Callable[[], Network]) -> Network:
    """Build a trained model with its weights. Raises UserError when the file is missing, corrupt or mismatched.

    build: makes a new model. Its sizes are compared with the file's before it takes memory: a configuration may name
    any.
    """
    shapes = _shapes(folder)
    try:
        with torch.device("meta"):
            _require_fit(build(), shapes)
    except (RuntimeError, TypeError) as error:  # torch raises these for sizes beyond 64 bits
        raise unfit(folder, error) from error
    model = build()
    load_weights(folder, model)
    return model


def load_weights(folder: Path, model: nn.Module) -> None:
    """Load a trained model's weights into `model`. Raises UserError when the file is missing, corrupt or mismatched."""
    try:
        put_state(model, read_weights(folder))
    except RuntimeError as error:
        raise unfit(folder, error) from error


def _shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return the weights' shapes by name, without reading the weights."""
    path = folder / WEIGHTS
    try:
        with reading(path), safe_open(path, framework="pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise unfit(folder, error) from error


def _require_fit(model: nn.Module, shapes: dict[str, tuple[int, ...]]) -> None:
    own = {name: tuple(tensor.shape) for name, tensor in unique_state(model).items()}
    for name in sorted(own.keys() | shapes.keys()):
        if own.get(name) != shapes.get(name):
            raise RuntimeError(f"`{name}` has shape {shapes.get(name)}, and by {CONFIG} {own.get(name)}")
    computed = sum(buffer.numel() for buffer in model.buffers())
    if computed > _COMPUTED:
        raise RuntimeError(f"{CONFIG} asks for {computed:,} values besides the weights")


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Return a trained model's weights by name. Raises UserError when the file is missing or corrupt."""
    try:
        with reading(folder / WEIGHTS):
            state = load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise unfit(folder, error) from error
    for name, tensor in state.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise unfit(folder, ValueError(f"`{name}` has values that are not finite"))
    return state


def unfit(folder: Path, error: Exception) -> UserError:
    """Return the error for weights that do not match the configuration next to them."""
    reason = " ".join(str(error).split())[:200]
    return UserError(
        f"{folder / WEIGHTS} is corrupt or belongs to another model ({reason}): run `dvc repro` to make it again"
    )
