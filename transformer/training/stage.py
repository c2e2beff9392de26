"""What the train stages of all tasks share."""

from dataclasses import dataclass
from pathlib import Path

from transformer.checkpoint.device import Compute
from transformer.checkpoint.trained import save_trained
from transformer.core.files import write_json, write_table
from transformer.core.observer import Observer
from transformer.core.schema import Hardware, Section, StageParams
from transformer.nn.layers import count_parameters
from transformer.training.config import TrainParams
from transformer.training.loop import Fitted, Trainable, fit
from transformer.training.resume import resumable


class TrainStageParams(StageParams):
    """What every train stage reads besides the model's parameters."""

    train: TrainParams
    hardware: Hardware


@dataclass(frozen=True, kw_only=True)
class TrainingPaths:
    """What the train stages read and write."""

    encoded: Path
    vocab: Path
    trained: Path
    """The folder of the kept weights and their configuration."""
    metrics: Path
    """The metrics of the kept weights."""
    history: Path
    """One row per epoch."""
    states: Path | None = None
    """A folder for the checkpoints of interrupted runs; None for no checkpoints."""


def train_and_write(
    trainable: Trainable,
    config: Section,
    params: TrainStageParams,
    compute: Compute,
    paths: TrainingPaths,
    *,
    truncated: int,
    observer: Observer,
) -> dict[str, float]:
    """Train, or resume an interrupted run, and write the results. Returns the metrics of the kept weights.

    config: the model's, written beside its weights; truncated: the number of training texts cut, for the metrics.
    """
    if not compute.repeatable:
        observer.say(
            f"warning: {compute.device.type} kernels may sum in a different order each time, so weights may differ in"
            " their last bits; on CUDA, hardware.deterministic makes them reproducible, but slower"
        )
    counts = {"parameters": count_parameters(trainable.model), "truncated": truncated}
    with resumable(paths.states, params, compute, (paths.encoded, paths.vocab), observer) as resume:
        log_every = params.runtime.log_every
        fitted = fit(trainable, params.train, compute, log_every=log_every, observer=observer, resume=resume)
        _write(fitted, config, compute, counts, paths)
        resume.finish()
    return fitted.figures


def _write(fitted: Fitted, config: Section, compute: Compute, counts: dict[str, int], paths: TrainingPaths) -> None:
    rows = fitted.history.rows
    save_trained(paths.trained, config, fitted.state)
    write_table(paths.history, list(rows[0]), (list(row.values()) for row in rows))
    where = {"device": compute.device.type, "precision": compute.precision}
    totals = {"best_epoch": fitted.history.best_row["epoch"], "epochs": len(rows), "steps": fitted.steps}
    totals["skipped_updates"] = fitted.skipped
    endings = ("_loss", "_perplexity", "_accuracy")
    final = {name: value for name, value in fitted.figures.items() if name.endswith(endings)}
    write_json(paths.metrics, final | totals | counts | where)
