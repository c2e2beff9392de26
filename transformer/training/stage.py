"""The training stage, shared by all tasks."""

from typing import Any, Protocol, Self

import torch
from pydantic import model_validator

from transformer.core.errors import UserError
from transformer.core.files import write_json, write_table
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.core.validation import Hardware, StageParams
from transformer.nn.device import Compute, loses_by_bf16, shared_cores
from transformer.nn.layers import count_parameters
from transformer.nn.trained import save_trained
from transformer.training.batches import Opened
from transformer.training.distributed import join, process_group, rank
from transformer.training.history import CURVE, training_key
from transformer.training.loop import Fitted, fit
from transformer.training.resume import resumable
from transformer.training.schedule import TrainParams

_DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")


class TrainStageParams(StageParams):
    """Parameters of every training stage besides the model's."""

    train: TrainParams
    hardware: Hardware

    @model_validator(mode="after")
    def _parts_for_all(self) -> Self:
        if self.train.shards % self.runtime.trainers:
            raise ValueError(
                f"runtime.trainers ({self.runtime.trainers}) must divide train.shards ({self.train.shards})"
            )
        return self

    @model_validator(mode="after")
    def _two_passes_differ(self) -> Self:
        model = getattr(self, "model", None)
        shares = [getattr(model, name) for name in _DROPOUTS if hasattr(model, name)]
        if self.train.r_drop and model is not None and not any([*shares, self.train.word_dropout]):
            raise ValueError(
                "train.r_drop compares two passes with different dropout, and the model has none: set model.dropout, or"
                " r_drop to 0"
            )
        return self


class OpenTraining(Protocol):
    """A family's function that opens a training run."""

    def __call__(self, task: Task, params: Any, paths: Paths, observer: Observer) -> Opened:
        """Build the model and open its data. Raises UserError when an input is missing or incompatible."""


def train_and_write(
    open_training: OpenTraining, task: Task, params: TrainStageParams, paths: Paths, observer: Observer
) -> dict[str, float]:
    """Train, or resume an interrupted run, and write the results. Return the metrics of the kept weights."""
    if rank():
        join()
    opened = open_training(task, params, paths, observer)
    compute = opened.compute
    if not compute.repeatable:
        observer.say(
            f"warning: {compute.device.type} kernels may sum in a different order each time, so weights may differ in"
            " their last bits; on CUDA, hardware.deterministic makes them reproducible, but slower"
        )
    if compute.device.type == "cpu" and compute.precision == "bf16" and loses_by_bf16():
        observer.say("warning: this CPU is slower in bf16 than in fp32; hardware.precision: fp32 is another result")
    counts = {"parameters": count_parameters(opened.trainable.model), "truncated": opened.truncated}
    key = training_key(params, compute, (paths.encoded, paths.vocab, *opened.read), paths.code)
    if opened.left_out:
        counts["left_out"] = opened.left_out
    _require_processes(params, compute, observer)
    with (
        resumable(paths.states, key, params.runtime.save_every, observer) as resume,
        process_group(params.runtime.trainers, compute.device, key) as group,
    ):
        if params.train.shards % group.size:
            raise UserError(f"{group.size} training processes must divide train.shards ({params.train.shards})")
        fitted = fit(
            opened.trainable,
            params.train,
            compute,
            log_every=params.runtime.log_every,
            observer=observer,
            resume=resume,
            group=group,
        )
        if group.rank == 0:
            _write(fitted, opened, counts, paths)
            resume.finish()
    return fitted.metrics


def _require_processes(params: TrainStageParams, compute: Compute, observer: Observer) -> None:
    """Raise UserError if this many training processes cannot run here; warn if they share cores."""
    size = params.runtime.trainers
    if size == 1 or rank():
        return
    if compute.device.type == "mps":
        raise UserError("runtime.trainers: an `mps` device is used by one process: set it to 1")
    if compute.device.type == "cpu" and (shared := shared_cores(params.runtime, params.hardware.threads)):
        observer.say(shared)
    if compute.device.type == "cuda" and size > (found := torch.cuda.device_count()):
        raise UserError(f"runtime.trainers is {size}, and this machine has {found} GPU{'s'[: found - 1]}: lower it")


def _write(fitted: Fitted, opened: Opened, counts: dict[str, int], paths: Paths) -> None:
    rows, compute = fitted.history.rows, opened.compute
    save_trained(paths.trained, opened.config, fitted.state)
    if opened.save_beside is not None:
        opened.save_beside(paths.trained)
    write_table(paths.history, list(rows[0]), (list(row.values()) for row in rows))
    curve = fitted.history.curve
    write_table(paths.updates, CURVE, (list(point.values()) for point in curve))
    where = {"device": compute.device.type, "precision": compute.precision}
    totals = {"best_epoch": fitted.history.best_row["epoch"], "epochs": len(rows), "steps": fitted.steps}
    totals |= {"skipped_updates": fitted.skipped, "batch_pieces": fitted.pieces}
    endings = ("_loss", "_perplexity", "_accuracy")
    final = {name: value for name, value in fitted.metrics.items() if name.endswith(endings)}
    write_json(paths.training, final | totals | counts | where)
