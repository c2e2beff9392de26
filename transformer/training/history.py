"""Metrics of a training run: one row per epoch, and the loss curve over the updates."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import torch

from transformer.core.files import files_of, json_bytes, sha256
from transformer.core.validation import StageParams
from transformer.nn.device import Compute

Row = dict[str, float]
CURVE_POINTS = 100
CURVE = ("step", "learning_rate", "train_loss")


class Monitor(NamedTuple):
    """Validation metric that selects the best epoch; ties go to the lower loss."""

    name: str
    higher_is_better: bool = False

    def rank(self, row: Row) -> tuple[float, float]:
        """Return the sort key of a row: best first, NaN last."""
        metric, loss = row[self.name], row["validation_loss"]
        if math.isnan(metric) or math.isnan(loss):
            return math.inf, math.inf
        return (-metric if self.higher_is_better else metric), loss

    def better(self, new: Row, old: Row) -> bool:
        """True if `new` is strictly better than `old`."""
        return self.rank(new) < self.rank(old)


MONITORS = {
    "loss": Monitor("validation_loss"),
    "accuracy": Monitor("validation_accuracy", higher_is_better=True),
}


@dataclass
class History:
    """Metrics per epoch, and the best epoch."""

    rows: list[Row] = field(default_factory=list)
    best: int = -1
    """Index into `rows`."""
    curve: list[Row] = field(default_factory=list)
    """Step, learning rate and mean training loss since the previous point, at about `CURVE_POINTS` steps."""

    def add(self, row: Row, better: Callable[[Row, Row], bool]) -> None:
        """Append an epoch's metrics; better: True if the first row is better than the second."""
        self.rows.append(row)
        if self.best < 0 or better(row, self.best_row):
            self.best = len(self.rows) - 1

    @property
    def best_row(self) -> Row:
        """Metrics of the best epoch."""
        return self.rows[self.best]

    def since_best(self) -> int:
        """Return the epochs since the best one."""
        return len(self.rows) - 1 - self.best

    def line(self, epochs: int) -> str:
        """Format the progress line after an epoch; epochs: the total number."""
        best = "  (best)" if self.since_best() == 0 else ""
        row = self.rows[-1]
        return f"epoch {row['epoch']:.0f}/{epochs}  {in_words(row)}{best}"


def in_words(row: Row) -> str:
    """Format the losses, perplexities and accuracies of an epoch."""
    return "  ".join(
        f"{name} {value:.4f}" for name, value in row.items() if name.endswith(("loss", "perplexity", "accuracy"))
    )


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
