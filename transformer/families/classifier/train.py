"""train: trains the classifier on the encoded texts."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
import torch.nn.functional as F
from pydantic import model_validator
from torch import Tensor

from transformer.checkpoint.device import prepare
from transformer.core.files import write_json
from transformer.core.observer import Observer
from transformer.core.task import PRETRAINING, UNSUPERVISED, Task, with_labels
from transformer.encoded.batching import Ids, sorted_batches
from transformer.encoded.bpe_dropout import BpeDropout
from transformer.encoded.vocabulary import read_vocabularies
from transformer.families.classifier.data.encoded import EncodedTexts
from transformer.families.classifier.nn.config import ClassifierConfig
from transformer.families.classifier.nn.interface import ClassifierModel
from transformer.families.classifier.nn.model import build_model
from transformer.families.classifier.nn.pretrained import (
    AnyInitialisedParams,
    InitialisedParams,
    architecture,
    lr_scales,
    start_from,
)
from transformer.families.classifier.nn.weights import ClassifierTrainParams, class_weights
from transformer.families.classifier.nn.wide import WIDE
from transformer.nn.dropout import drop_tokens
from transformer.nn.kernels.cross_entropy import smoothed_cross_entropy
from transformer.nn.objective import objective
from transformer.training.batches import CorpusTraining
from transformer.training.stage import TrainingPaths, TrainStageParams, train_and_write
from transformer.training.trainable import BatchLoss, Opened

if TYPE_CHECKING:  # a network alone is trained without scikit-learn
    from transformer.families.classifier.data.wide import FittedWide


class Params(TrainStageParams):
    """The stage's parameters."""

    model: AnyInitialisedParams
    train: ClassifierTrainParams

    @model_validator(mode="after")
    def _the_wide_branch_is_there_and_in_both_passes(self) -> Self:
        if self.train.r_drop and self.train.wide_dropout:
            raise ValueError("train.r_drop compares two passes of the network: train.wide_dropout must be 0")
        if (self.train.wide_dropout or self.train.network_loss) and not self.model.wide_ngrams:
            raise ValueError("train.wide_dropout and train.network_loss must be 0 where model.wide_ngrams is 0")
        return self


class ClassifierTraining(CorpusTraining[EncodedTexts, ClassifierModel]):
    """Training on labelled texts."""

    params: ClassifierTrainParams
    weights: Tensor | None = None
    """(K,) The factors of the loss by class; None if all are 1."""
    wide: "FittedWide | None" = None
    """The wide branch, whose logits are added to the network's."""

    def build(self) -> ClassifierModel:
        """As `CorpusTraining.build`."""
        return build_model(self.train.config)

    def loss(self, rows: Ids) -> BatchLoss:
        """The summed cross-entropy of the labels."""
        ids, labels = self.seen.batch(rows, self.compute.device)
        pad_id, share = self.model.config.pad_id, self.params.word_dropout
        alone: list[Tensor] = []
        """The network's logits of each pass."""

        def predict() -> tuple[Tensor, Tensor]:
            alone.append(self._logits(drop_tokens(ids, pad_id, share)))
            return self._beside_wide(alone[-1], rows), labels

        smoothing = self.params.label_smoothing
        summed = objective(predict, smoothing=smoothing, r_drop=self.params.r_drop, weights=self.weights)
        if self.wide is not None and self.params.network_loss:
            own = [smoothed_cross_entropy(each.float(), labels, smoothing, self.weights)[0] for each in alone]
            summed = summed._replace(total=summed.total + self.params.network_loss * torch.stack(own).mean())
        return BatchLoss(*summed, tokens=self.tokens(rows))

    def _beside_wide(self, logits: Tensor, rows: Ids) -> Tensor:
        """A pass's logits (B, K) on training texts plus those of the wide branch, which some texts go without."""
        if self.wide is None:
            return logits
        stays = torch.rand(len(rows), 1, device=logits.device) >= self.params.wide_dropout
        return logits.float() + stays * self.wide.train[rows].to(logits.device)

    def validate(self) -> dict[str, float]:
        """Mean loss per text and accuracy, in fp32."""
        loss, correct = 0.0, 0
        for rows in sorted_batches(self.validation.lengths, self.params.validation_rows):
            ids, labels = self.validation.batch(rows, self.compute.device)
            logits = self._logits(ids)
            if self.wide is not None:
                logits = logits + self.wide.validation[rows].to(logits.device)
            # Summed on the CPU: not every device has float64.
            loss += F.cross_entropy(logits, labels, reduction="none").cpu().double().sum().item()
            correct += int((logits.argmax(dim=-1) == labels).sum())
        count = max(len(self.validation), 1)
        return {"validation_loss": loss / count, "validation_accuracy": correct / count}

    def _logits(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.model(ids, packed=not self.pads)
        return logits


def run(task: Task, params: Params, *, paths: TrainingPaths, observer: Observer) -> dict[str, float]:
    """Train; write the model, its metrics and those of every epoch. Returns the history row of the kept weights."""
    return train_and_write(open_training, task, params, paths, observer)


def open_training(task: Task, params: Params, paths: TrainingPaths, observer: Observer) -> Opened:
    """As `OpenTraining`."""
    compute = prepare(params.hardware)
    task = with_labels(task, paths.encoded)
    vocabulary = read_vocabularies(paths.vocab, "text")["text"]
    classes = len(task.classes)
    model = architecture(params.model)
    config = ClassifierConfig(model=model, size=vocabulary.size, pad_id=vocabulary.pad_id, classes=classes)
    train, validation = (EncodedTexts(paths.encoded / split, config) for split in ("train", "validation"))
    dropout = BpeDropout.open(paths.vocab, params.train.seed)
    training = ClassifierTraining(train, validation, params.train, compute, dropout)
    training.weights = class_weights(params.train.class_weights, task.classes, train.labels, compute.device)
    train.report(task, observer)
    validation.report_classes(task, observer)
    if params.model.wide_ngrams:
        further = paths.encoded / UNSUPERVISED
        unlabelled = EncodedTexts(further, config) if params.model.wide_vectors and further.exists() else None
        training.wide = _fit_wide(train, validation, params, observer, unlabelled, training.weights)
    record: dict[str, Any] | None = None
    if isinstance(params.model, InitialisedParams) and params.model.init == "pretrained":
        record = start_from(training.model, params.model, paths.vocab / "text" / "tokenizer.json")
        training.lr_scales = lr_scales(training.model, params.model)
        observer.say(f"starts from {params.model.pretrained}, SHA-256 {record['sha256'][:12]}")

    def save(trained: Path) -> None:
        for name in (WIDE, PRETRAINING):
            (trained / name).unlink(missing_ok=True)  # of an earlier run by hand
        if training.wide is not None:
            training.wide.branch.save(trained)
        if record is not None:
            write_json(trained / PRETRAINING, record)

    return Opened(
        trainable=training,
        config=config,
        params=params.train,
        compute=compute,
        truncated=train.truncated,
        read=[Path(params.model.pretrained)] if record is not None else [],
        save_beside=save,
    )


def _fit_wide(
    train: EncodedTexts,
    validation: EncodedTexts,
    params: Params,
    observer: Observer,
    unlabelled: EncodedTexts | None,
    weights: Tensor | None,
) -> "FittedWide":
    from transformer.families.classifier.data.wide import fit_wide
    from transformer.families.classifier.nn.vectors import on_cores

    with on_cores(params.hardware.threads):
        return fit_wide(train, validation, params.model, params.train, observer, unlabelled, weights)
