"""train: trains a language model on windows of the encoded texts."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.core.errors import UserError
from transformer.core.files import sha256
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import Task
from transformer.data.store import Ids, sorted_batches
from transformer.data.vocabulary import read_vocabularies
from transformer.families.language.interface import LanguageConfig, LanguageParams, mask_id
from transformer.families.language.network import LanguageTransformer
from transformer.families.language.training_params import LanguageTrainParams
from transformer.families.language.windows import Batch, EncodedWindows, Masking
from transformer.nn.device import prepare
from transformer.nn.kernels.cross_entropy import r_drop
from transformer.nn.kernels.packing import gather
from transformer.nn.objective import SecondPass, next_token_objective
from transformer.training.batches import BatchLoss, CorpusTraining, Opened
from transformer.training.stage import TrainStageParams, train_and_write

_PLACES = 8192  # positions whose logits are in memory at a time in validation


class Params(TrainStageParams):
    """The stage's parameters."""

    model: LanguageParams
    train: LanguageTrainParams


class LanguageTraining(CorpusTraining[EncodedWindows, LanguageTransformer]):
    """Training on windows of texts."""

    def build(self) -> LanguageTransformer:
        """Return a new model with weights drawn from torch's generator."""
        return LanguageTransformer(self.train.config)

    def loss(self, rows: Ids) -> BatchLoss:
        """Return the summed loss of the masked or next tokens; the output layer runs only at their positions."""
        batch = self.epoch_rows.batch(rows, self.compute.device)

        def predict() -> tuple[Tensor, Tensor]:
            return self.model.transform(self._states(batch)), batch.targets

        summed = next_token_objective(
            predict,
            self.model.output,
            smoothing=self.params.label_smoothing,
            second=SecondPass(predict, r_drop(self.params.r_drop)) if self.params.r_drop else None,
        )
        return BatchLoss(*summed, tokens=self.tokens(rows))

    def validate(self) -> dict[str, float]:
        """Return loss, perplexity and accuracy per predicted token, in fp32; the masks are always the same."""
        total, right, count = 0.0, 0, 0
        for rows in sorted_batches(self.validation.lengths, self.params.validation_rows):
            batch = self.validation.batch(rows, self.compute.device)
            # Chunked: the logits of a batch of long windows would take gigabytes.
            parts = torch.split(self._states(batch), _PLACES), torch.split(batch.targets, _PLACES)
            for states, targets in zip(*parts, strict=True):
                logits = self.model.logits(states)
                # Summed on the CPU: not every device has float64.
                total += F.cross_entropy(logits, targets, reduction="none").cpu().double().sum().item()
                right += int(logits.argmax(dim=-1).eq(targets).sum())
            count += len(batch.targets)
        loss = total / max(count, 1)
        return {
            "validation_loss": loss,
            "validation_perplexity": math.exp(min(loss, 700.0)),
            "validation_accuracy": right / max(count, 1),
        }

    def _states(self, batch: Batch) -> Tensor:
        """Return the states (M, C) at the positions to predict."""
        if self.pads:
            return gather(self.model(batch.ids).flatten(0, 1), batch.padded_places)
        return gather(self.model(batch.ids, packed=True), batch.places)


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
    given = params.train
    masking = Masking(vocabulary, share=given.mask_share, whole_words=given.whole_words, seed=given.seed)
    train, validation = (EncodedWindows(paths.encoded / split, config, masking) for split in ("train", "validation"))
    for split in (train, validation):
        split.report(task, observer)
        if not len(split):
            raise UserError(f"no text of {split.split} has a token to predict: give {task.name}.download other texts")
    training = LanguageTraining(train, validation, params.train, compute, None)
    return Opened(trainable=training, config=config, params=params.train, compute=compute, truncated=0)
