"""train: trains a language model on windows of the encoded texts."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Self, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import model_validator
from torch import Tensor

from transformer.core.errors import UserError
from transformer.core.files import sha256
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.data.store import Ids, sorted_batches
from transformer.data.vocabulary import read_vocabularies
from transformer.families.language.interface import AnyLanguageParams, LanguageConfig, TransformerXLParams, mask_id
from transformer.families.language.network import LanguageNetwork
from transformer.families.language.networks import build_network
from transformer.families.language.streams import EncodedStreams
from transformer.families.language.training_params import LanguageTrainParams
from transformer.families.language.transformer_xl import TransformerXL
from transformer.families.language.windows import Batch, EncodedWindows, Masking
from transformer.nn.device import prepare
from transformer.nn.kernels.cross_entropy import r_drop
from transformer.nn.kernels.packing import gather
from transformer.nn.objective import SecondPass, next_token_objective
from transformer.training.batches import BatchLoss, CorpusTraining, Opened
from transformer.training.stage import TrainStageParams, train_and_write

CorpusT = TypeVar("CorpusT", EncodedWindows, EncodedStreams)
_PLACES = 8192  # positions whose logits are in memory at a time in validation


class Params(TrainStageParams):
    """The stage's parameters."""

    model: AnyLanguageParams
    train: LanguageTrainParams

    @model_validator(mode="after")
    def _streams_are_read_once(self) -> Self:
        if isinstance(self.model, TransformerXLParams):
            if self.train.batch_unit != "rows":
                raise ValueError("train.batch_unit must be `rows` for a transformer_xl: the number of parallel streams")
            if self.train.r_drop:
                raise ValueError("train.r_drop reads a batch twice, a transformer_xl its streams once: set it to 0")
            if self.runtime.trainers > 1:
                raise ValueError("runtime.trainers must be 1 for a transformer_xl, whose memory is in one process")
        return self


class LanguageTraining(CorpusTraining[CorpusT, LanguageNetwork]):
    """Training to predict tokens."""

    def build(self) -> LanguageNetwork:
        """Return a new model with weights drawn from torch's generator."""
        return build_network(self.train.config)

    def validate(self) -> dict[str, float]:
        """Return loss, perplexity and accuracy per predicted token, in fp32."""
        total, right, count = 0.0, 0, 0
        for found, wanted in self.validation_states():
            # Chunked: the logits of a batch of long windows would take gigabytes.
            for states, targets in zip(torch.split(found, _PLACES), torch.split(wanted, _PLACES), strict=True):
                logits = self.model.logits(states)
                # Summed on the CPU: not every device has float64.
                total += F.cross_entropy(logits, targets, reduction="none").cpu().double().sum().item()
                right += int(logits.argmax(dim=-1).eq(targets).sum())
            count += len(wanted)
        loss = total / max(count, 1)
        return {
            "validation_loss": loss,
            "validation_perplexity": math.exp(min(loss, 700.0)),
            "validation_accuracy": right / max(count, 1),
        }

    @abstractmethod
    def validation_states(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield states (M, C) and targets (M,) of the validation split, by batch."""

    def predicted(self, predict: Callable[[], tuple[Tensor, Tensor]], rows: Ids) -> BatchLoss:
        """Return the summed loss; predict: returns states (M, C) and targets (M,), the only ones with an output."""
        summed = next_token_objective(
            predict,
            self.model.output,
            smoothing=self.params.label_smoothing,
            second=SecondPass(predict, r_drop(self.params.r_drop)) if self.params.r_drop else None,
        )
        return BatchLoss(*summed, tokens=self.tokens(rows))


class WindowTraining(LanguageTraining[EncodedWindows]):
    """Training on windows of texts, of masked or next tokens; the masks of validation are always the same."""

    def loss(self, rows: Ids) -> BatchLoss:
        """Return the summed loss of the masked or next tokens."""
        batch = self.epoch_rows.batch(rows, self.compute.device)
        return self.predicted(lambda: (self.model.transform(self._states(batch)), batch.targets), rows)

    def validation_states(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield states (M, C) and targets (M,) of the validation split, by batch."""
        for rows in sorted_batches(self.validation.lengths, self.params.validation_rows):
            batch = self.validation.batch(rows, self.compute.device)
            yield self._states(batch), batch.targets

    def _states(self, batch: Batch) -> Tensor:
        """Return the states (M, C) at the positions to predict."""
        if self.pads:
            return gather(self.model(batch.ids).flatten(0, 1), batch.padded_places)
        return gather(self.model(batch.ids, packed=True), batch.places)


class StreamTraining(LanguageTraining[EncodedStreams]):
    """Training of a Transformer-XL, which remembers the segments before in each stream."""

    model: TransformerXL
    memory: list[Tensor] | None = None
    """For each stream, the states (layers, M, C) of its last segments."""

    def batches(self, epoch: int) -> Sequence[Ids]:
        """Return the segments of all streams, in order."""
        super().batches(epoch)
        return self.epoch_rows.batches()

    def loss(self, rows: Ids) -> BatchLoss:
        """Return the summed loss of the next tokens; remembers the segments."""
        batch = self.epoch_rows.batch(rows, self.compute.device)
        streams, number = np.divmod(rows, self.epoch_rows.segments)
        held = self.memory or [torch.empty(0)] * self.epoch_rows.streams
        states, kept = self.model.segment(
            batch.ids, torch.stack([held[stream] for stream in streams], dim=1).unbind() if number[0] else None
        )
        new = dict(zip(streams.tolist(), torch.stack([*kept]).unbind(dim=1), strict=True))
        # Another list: a step that fails puts the one before back.
        self.memory = [new.get(stream, before) for stream, before in enumerate(held)]
        return self.predicted(lambda: (self.model.transform(self._at(states, batch)), batch.targets), rows)

    def validation_states(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield states (M, C) and targets (M,) of the validation split, by batch."""
        memory = None
        for rows in self.validation.batches():
            batch = self.validation.batch(rows, self.compute.device)
            states, memory = self.model.segment(batch.ids, memory)
            yield self._at(states, batch), batch.targets

    def _at(self, states: Tensor, batch: Batch) -> Tensor:
        return gather(states.flatten(0, 1), batch.places)


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Train, and write the model and its metrics, final and per epoch. Returns the history row of the kept weights."""
    return train_and_write(open_training, task, params, paths, observer)


def open_training(task: Task, params: Params, paths: Paths, observer: Observer) -> Opened:
    """Build the model and open its data. Raises UserError if an input is missing or does not fit."""
    compute = prepare(params.hardware)
    vocabulary = read_vocabularies(paths.vocab, "text")["text"]
    config = LanguageConfig(
        model=params.model,
        size=vocabulary.size,
        pad_id=vocabulary.pad_id,
        mask_id=mask_id(vocabulary),
        vocabulary_sha256=sha256(paths.vocab / "text" / "tokenizer.json"),
    )
    given, folders = params.train, [paths.encoded / split for split in ("train", "validation")]
    training: StreamTraining | WindowTraining
    if isinstance(params.model, TransformerXLParams):
        how = {"streams": given.batch_size, "begin_id": vocabulary.begin_id, "seed": given.seed}
        streams = _reported([EncodedStreams(folder, config, **how) for folder in folders], task, observer)
        training = StreamTraining(*streams, given, compute, None)
    else:
        masking = Masking(vocabulary, share=given.mask_share, whole_words=given.whole_words, seed=given.seed)
        windows = _reported([EncodedWindows(folder, config, masking) for folder in folders], task, observer)
        training = WindowTraining(*windows, given, compute, None)
    return Opened(trainable=training, config=config, params=params.train, compute=compute, truncated=0)


def _reported(splits: list[CorpusT], task: Task, observer: Observer) -> tuple[CorpusT, CorpusT]:
    for split in splits:
        split.report(task, observer)
        if not len(split):
            raise UserError(f"no text of {split.split} has a token to predict: give {task.name}.download other texts")
    train, validation = splits
    return train, validation
