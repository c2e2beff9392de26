"""train: trains the language model on windows of the encoded texts."""

import math
from functools import cached_property
from typing import Any, Self

import torch
import torch.nn.functional as F
from pydantic import model_validator
from torch import Tensor

from transformer.checkpoint.device import prepare
from transformer.core.errors import UserError
from transformer.core.files import sha256
from transformer.core.observer import Observer
from transformer.core.task import Task
from transformer.encoded.batching import Ids, sorted_batches
from transformer.encoded.vocabulary import Vocabulary, read_vocabularies
from transformer.families.language.data.masking import Masking
from transformer.families.language.data.windows import Batch, EncodedWindows
from transformer.families.language.nn.config import LanguageConfig, LanguageParams
from transformer.families.language.nn.hiding import LanguageTrainParams
from transformer.families.language.nn.mask_token import mask_id
from transformer.families.language.nn.model import LanguageTransformer
from transformer.families.language.nn.replaced import ReplacedTransformer, replaced, replacements
from transformer.nn.kernels.cross_entropy import linear_cross_entropy, r_drop
from transformer.nn.kernels.packing import gather
from transformer.nn.objective import SecondPass, next_token_objective
from transformer.training.batches import CorpusTraining
from transformer.training.stage import TrainingPaths, TrainStageParams, train_and_write
from transformer.training.trainable import BatchLoss, Opened

_PLACES = 8192  # whose logits are in memory at once in validation


class Params(TrainStageParams):
    """The stage's parameters."""

    model: LanguageParams
    train: LanguageTrainParams

    @model_validator(mode="after")
    def _two_passes_would_draw_two_texts(self) -> Self:
        if self.model.objective == "replaced" and self.train.r_drop:
            raise ValueError("train.r_drop compares two passes over one text: objective `replaced` needs 0")
        return self

    @model_validator(mode="after")
    def _accuracy_is_the_generators(self) -> Self:
        if self.model.objective == "replaced" and self.train.monitor == "accuracy":
            raise ValueError(
                "train.monitor `accuracy` is the generator's, not that of the discriminator: objective `replaced` needs"
                " `loss`, which is both's"
            )
        return self


class LanguageTraining(CorpusTraining[EncodedWindows, LanguageTransformer]):
    """Training on windows of texts."""

    def build(self) -> LanguageTransformer:
        """As `CorpusTraining.build`."""
        return LanguageTransformer(self.train.config)

    def loss(self, rows: Ids) -> BatchLoss:
        """The summed loss of the hidden tokens, or of the next ones; the output layer sees their places alone."""
        batch = self.seen.batch(rows, self.compute.device)

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
        """Loss, perplexity and accuracy per predicted token, in fp32; the hidden tokens are always the same."""
        total, right, count = 0.0, 0, 0
        for rows in sorted_batches(self.validation.lengths, self.params.validation_rows):
            batch = self.validation.batch(rows, self.compute.device)
            # In parts: the logits of a batch of long windows would take gigabytes.
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
        """The states (M, C) at the places to predict."""
        return _at_places(self.model, batch, packed=not self.pads)


class ReplacedTraining(CorpusTraining[EncodedWindows, ReplacedTransformer]):
    """Training of a generator, and of a discriminator on the texts in which it replaced tokens."""

    params: LanguageTrainParams

    def build(self) -> ReplacedTransformer:
        """As `CorpusTraining.build`."""
        return ReplacedTransformer(self.train.config)

    def loss(self, rows: Ids) -> BatchLoss:
        """The generator's summed loss of the hidden tokens, and the discriminator's of all tokens times its weight.

        The weight is that of means per token (Clark et al. 2020, section 2), so a sum counts times the share of tokens
        that the training split hides: like this, losses of parts of an update add up.
        """
        batch, generator = self.seen.batch(rows, self.compute.device), self.model.generator
        states = generator.transform(_at_places(generator, batch, packed=not self.pads))
        total, nll = linear_cross_entropy(states, batch.targets, generator.output, self.params.label_smoothing)
        logits, labels = self._detected(batch, replacements(generator, states, batch.draws))
        detection = F.binary_cross_entropy_with_logits(logits.float(), labels, reduction="sum")
        weighted = self.model.config.model.detection_weight * self._hidden_share * detection
        return BatchLoss(total + weighted, nll + weighted.detach(), len(batch.targets), self.tokens(rows))

    @cached_property
    def _hidden_share(self) -> float:
        """Of the tokens that the discriminator judges; with whole words, about as many."""
        lengths = self.train.lengths
        return float(self.train.masking.wanted(lengths - 2).sum() / lengths.sum())

    def validate(self) -> dict[str, float]:
        """As `LanguageTraining.validate`, of the generator, and the discriminator's loss and accuracy per token.

        `validation_loss` is what is minimised, both losses with their weights. Hidden tokens and what they are replaced
        by are always drawn from the same numbers.
        """
        sums = torch.zeros(4, dtype=torch.float64)  # nats and right tokens of the generator, of the discriminator
        hidden, count = 0, 0
        generator = self.model.generator
        for rows in sorted_batches(self.validation.lengths, self.params.validation_rows):
            batch = self.validation.batch(rows, self.compute.device)
            states = generator.transform(_at_places(generator, batch, packed=not self.pads))
            predicted = generator.output(states)
            logits, labels = self._detected(batch, replacements(generator, states, batch.draws))
            losses = F.cross_entropy(predicted, batch.targets, reduction="none")
            detection = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
            right, found = predicted.argmax(dim=-1).eq(batch.targets), (logits > 0).eq(labels > 0)
            # Summed on the CPU: not every device has float64.
            sums += torch.stack([each.cpu().double().sum() for each in (losses, right, detection, found)])
            hidden, count = hidden + len(losses), count + len(labels)
        loss, accuracy = (sums[:2] / max(hidden, 1)).tolist()
        detection_loss, detection_accuracy = (sums[2:] / max(count, 1)).tolist()
        return {
            "validation_loss": loss + self.model.config.model.detection_weight * detection_loss,
            "validation_perplexity": math.exp(min(loss, 700.0)),
            "validation_accuracy": accuracy,
            "validation_detection_loss": detection_loss,
            "validation_detection_accuracy": detection_accuracy,
        }

    def _detected(self, batch: Batch, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The discriminator's logits (N,) of all real tokens, with `tokens` (M,) at the hidden places, and the labels.

        A token that the generator drew as it was is not a replaced one.
        """
        ids = replaced(batch.ids, batch.padded_places, tokens)
        labels = replaced(torch.zeros_like(ids), batch.padded_places, tokens.ne(batch.targets).long())
        real = batch.ids.ne(self.model.config.pad_id)
        if self.pads:
            logits = self.model.detected(self.model(ids))[real]
        else:
            logits = self.model.detected(self.model(ids, packed=True))
        return logits, labels[real].float()


def _at_places(model: Any, batch: Batch, *, packed: bool) -> Tensor:
    """The states (M, C) of a language model or a generator at the places to predict."""
    if packed:
        return gather(model(batch.ids, packed=True), batch.places)
    return gather(model(batch.ids).flatten(0, 1), batch.padded_places)


def run(task: Task, params: Params, *, paths: TrainingPaths, observer: Observer) -> dict[str, float]:
    """Train; write the model, its metrics and those of every epoch. Returns the history row of the kept weights."""
    return train_and_write(open_training, task, params, paths, observer)


def open_training(task: Task, params: Params, paths: TrainingPaths, observer: Observer) -> Opened:
    """As `OpenTraining`."""
    compute = prepare(params.hardware)
    vocabulary = read_vocabularies(paths.vocab, "text")["text"]
    config = LanguageConfig(
        model=params.model,
        size=vocabulary.size,
        pad_id=vocabulary.pad_id,
        mask_id=mask_id(vocabulary),
        vocabulary_sha256=sha256(paths.vocab / "text" / "tokenizer.json"),
    )
    masking = _masking(params.train, vocabulary, replaced=params.model.objective == "replaced")
    train, validation = (EncodedWindows(paths.encoded / split, config, masking) for split in ("train", "validation"))
    for split in (train, validation):
        split.report(task, observer)
        if not len(split):
            raise UserError(f"no text of {split.split} has a token to predict: give {task.name}.download other texts")
    kind = ReplacedTraining if params.model.objective == "replaced" else LanguageTraining
    training = kind(train, validation, params.train, compute, None)
    return Opened(trainable=training, config=config, params=params.train, compute=compute, truncated=0)


def _masking(params: LanguageTrainParams, vocabulary: Vocabulary, *, replaced: bool) -> Masking:
    return Masking(
        vocabulary, share=params.mask_share, whole_words=params.whole_words, seed=params.seed, replaced=replaced
    )
