"""Checkpoint files for resuming: no pickle, with corruption detection.

Each is one safetensors file: the tensors, and everything else as JSON in one more, since a header may have no more than
100 MB. The file name contains the SHA-256 of the content, so a rename publishes the complete checkpoint or nothing, and
any later change of a byte is detected.
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
"""Nested mappings with string keys, lists, numbers, strings, None and tensors."""

_SUFFIX = ".safetensors"
_REST = "rest"
_TENSOR = "\0tensor"
"""Key of the placeholder for a tensor; it cannot occur in a parameter's name."""


class BrokenStateError(Exception):
    """A checkpoint file is corrupt."""


def saved_states(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, newest first."""
    return sorted(folder.glob(f"*{_SUFFIX}"), reverse=True)


def write_state(folder: Path, state: Tree) -> Path:
    """Write a state as the folder's newest checkpoint, atomically. Raises UserError when it cannot be written."""
    tensors: dict[str, Tensor] = {}
    rest = json.dumps(_take_out(state, tensors)).encode()
    content = save({**tensors, _REST: torch.frombuffer(bytearray(rest), dtype=torch.uint8)})
    newest = next((int(path.name.partition(".")[0]) for path in saved_states(folder)), 0)
    path = folder / f"{newest + 1:08d}.{hashlib.sha256(content).hexdigest()}{_SUFFIX}"
    with atomic_write(path) as stream:
        stream.write(content)
    return path


def read_state(path: Path) -> Tree:
    """Read a checkpoint, with tensors on the CPU. Raises BrokenStateError."""
    try:
        if sha256(path) != path.name.split(".")[1]:
            raise BrokenStateError(f"{path} is corrupt")
        with safe_open(path, framework="pt") as file:
            # Clone: the tensors are views of the memory-mapped file.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  # not a mapping
            return _put_back(json.loads(tensors.pop(_REST).numpy().tobytes()), tensors)
    except (OSError, SafetensorError, KeyError) as error:
        raise BrokenStateError(f"{path} cannot be read ({error})") from error


def _take_out(value: Tree, tensors: dict[str, Tensor]) -> Tree:
    """Return `value` with each tensor replaced by a name and moved to `tensors`."""
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
