"""train: trains the classifier on the encoded texts."""

import torch.nn.functional as F
from torch import Tensor

from transformer.checkpoint.device import prepare
from transformer.core.observer import Observer
from transformer.core.task import Task, with_labels
from transformer.encoded.batching import Ids, sorted_batches
from transformer.encoded.bpe_dropout import BpeDropout
from transformer.encoded.vocabulary import read_vocabularies
from transformer.families.classifier.data.encoded import EncodedTexts
from transformer.families.classifier.nn.config import AnyClassifierParams, ClassifierConfig
from transformer.families.classifier.nn.interface import ClassifierModel
from transformer.families.classifier.nn.model import build_model
from transformer.families.classifier.nn.weights import ClassifierTrainParams, class_weights
from transformer.nn.dropout import drop_tokens
from transformer.nn.objective import objective
from transformer.training.batches import CorpusTraining
from transformer.training.stage import TrainingPaths, TrainStageParams, train_and_write
from transformer.training.trainable import BatchLoss, Opened


class Params(TrainStageParams):
    """The stage's parameters."""

    model: AnyClassifierParams
    train: ClassifierTrainParams


class ClassifierTraining(CorpusTraining[EncodedTexts, ClassifierModel]):
    """Training on labelled texts."""

    weights: Tensor | None = None
    """(K,) The factors of the loss by class; None if all are 1."""

    def build(self) -> ClassifierModel:
        """As `CorpusTraining.build`."""
        return build_model(self.train.config)

    def loss(self, rows: Ids) -> BatchLoss:
        """The summed cross-entropy of the labels."""
        ids, labels = self.seen.batch(rows, self.compute.device)
        pad_id, share = self.model.config.pad_id, self.params.word_dropout
        summed = objective(
            lambda: (self._logits(drop_tokens(ids, pad_id, share)), labels),
            smoothing=self.params.label_smoothing,
            r_drop=self.params.r_drop,
            weights=self.weights,
        )
        return BatchLoss(*summed, tokens=self.tokens(rows))

    def validate(self) -> dict[str, float]:
        """Mean loss per text and accuracy, in fp32."""
        loss, correct = 0.0, 0
        for rows in sorted_batches(self.validation.lengths, self.params.validation_rows):
            ids, labels = self.validation.batch(rows, self.compute.device)
            logits = self._logits(ids)
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
    config = ClassifierConfig(model=params.model, size=vocabulary.size, pad_id=vocabulary.pad_id, classes=classes)
    train, validation = (EncodedTexts(paths.encoded / split, config) for split in ("train", "validation"))
    dropout = BpeDropout.open(paths.vocab, params.train.seed)
    training = ClassifierTraining(train, validation, params.train, compute, dropout)
    training.weights = class_weights(params.train.class_weights, task.classes, train.labels, compute.device)
    train.report(task, observer)
    validation.report_classes(task, observer)
    return Opened(trainable=training, config=config, params=params.train, compute=compute, truncated=train.truncated)
