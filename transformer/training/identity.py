"""Fingerprint of everything that determines a run's result: its checkpoints are valid for that result only."""

import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import torch

from transformer.checkpoint.device import Compute
from transformer.core.files import files_of, json_bytes, sha256
from transformer.core.schema import StageParams

_LIBRARIES = ("numpy", "tokenizers", "torch")


def training_key(params: StageParams, compute: Compute, inputs: Sequence[Path], code: Mapping[str, str]) -> str:
    """Return 24 hexadecimal digits that identify the parameters, the input content, the code, the libraries and the
    device.

    inputs: folders; file names inside and their content count. code: hashes by file. `runtime` is excluded: it changes
    no byte.
    """
    decides = {
        "params": params.model_dump(exclude={"runtime"}),
        "inputs": [_content(folder) for folder in inputs],
        "code": dict(code),
        "libraries": {name: version(name) for name in _LIBRARIES},
        "device": _device(compute.device),
    }
    return hashlib.sha256(json_bytes(decides)).hexdigest()[:24]


def _content(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): sha256(path) for path in files_of(folder)}


def _device(device: torch.device) -> list[str]:
    """Return the kind of device and whatever else determines which kernels are selected."""
    model = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return [device.type, model, torch.backends.cpu.get_cpu_capability()]
