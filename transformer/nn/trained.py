"""Trained model folder: weights, and the configuration to rebuild the model."""

from pathlib import Path
from typing import TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from transformer.core.errors import UserError
from transformer.core.files import atomic_write, read_json, reading, write_json
from transformer.core.validation import Section, validate

WEIGHTS = "model.safetensors"
CONFIG = "config.json"
Config = TypeVar("Config", bound=Section)


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


def load_weights(folder: Path, model: nn.Module) -> None:
    """Load a trained model's weights into `model`. Raises UserError when the file is missing, corrupt or mismatched."""
    try:
        put_state(model, read_weights(folder))
    except RuntimeError as error:
        raise unfit(folder, error) from error


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Return a trained model's weights by name. Raises UserError when the file is missing or corrupt."""
    try:
        with reading(folder / WEIGHTS):
            return load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise unfit(folder, error) from error


def unfit(folder: Path, error: Exception) -> UserError:
    """Return the error for weights that do not match the configuration next to them."""
    reason = " ".join(str(error).split())[:200]
    return UserError(
        f"{folder / WEIGHTS} is corrupt or belongs to another model ({reason}): run `dvc repro` to make it again"
    )
