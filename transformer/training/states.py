"""Checkpoint files for resuming: no pickle, and corruption is detected.

One safetensors file holds the tensors, and the rest as JSON in its header. Its name holds the SHA-256 of its content:
so one rename publishes a whole state or none, and a byte that changes later is noticed.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from transformer.core.files import atomic_write, sha256

Tree = Any
"""Mappings with text as keys, lists, numbers, text, None and tensors, one in another."""

_SUFFIX = ".safetensors"
_TENSOR = "\0tensor"
"""The key that stands where a tensor was; no name of a parameter holds it."""


class BrokenStateError(Exception):
    """A state's file is not as it was written."""


def saved_states(folder: Path) -> list[Path]:
    """The states in a folder, the newest first."""
    return sorted(folder.glob(f"*{_SUFFIX}"), reverse=True)


def write_state(folder: Path, state: Tree) -> Path:
    """Write a state as the folder's newest, atomically. Raises UserError when the operating system refuses."""
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_take_out(state, tensors))
    content = save(tensors, {"state": text})
    newest = next((int(path.name.partition(".")[0]) for path in saved_states(folder)), 0)
    path = folder / f"{newest + 1:08d}.{hashlib.sha256(content).hexdigest()}{_SUFFIX}"
    with atomic_write(path) as stream:
        stream.write(content)
    return path


def read_state(path: Path) -> Tree:
    """What `write_state` wrote, the tensors on the CPU. Raises BrokenStateError."""
    try:
        if sha256(path) != path.name.split(".")[1]:
            raise BrokenStateError(f"{path} is broken")
        with safe_open(path, framework="pt") as file:
            # Copies: what is read lies in the file's own pages.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  # no mapping
            return _put_back(json.loads(file.metadata()["state"]), tensors)
    except (OSError, SafetensorError) as error:
        raise BrokenStateError(f"{path} cannot be read ({error})") from error


def _take_out(value: Tree, tensors: dict[str, Tensor]) -> Tree:
    """`value` with a name for each tensor, which go to `tensors`."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().contiguous()
        return {_TENSOR: name}
    if isinstance(value, Mapping):
        return {key: _take_out(item, tensors) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_take_out(item, tensors) for item in value]
    return value


def _put_back(value: Tree, tensors: Mapping[str, Tensor]) -> Tree:
    if isinstance(value, dict):
        return tensors[value[_TENSOR]] if _TENSOR in value else {k: _put_back(v, tensors) for k, v in value.items()}
    if isinstance(value, list):
        return [_put_back(item, tensors) for item in value]
    return value


def random_state(device: torch.device) -> Tree:
    """The state of the CPU's generator and of the device's."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state


def set_random_state(state: Tree, device: torch.device) -> None:
    """Draw on from what `random_state` gave on the same device."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"], device)
    if device.type == "mps":
        torch.mps.set_rng_state(state["mps"])
