"""train: trains the classifier on the encoded texts."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.checkpoint.device import Compute, prepare
from transformer.core.observer import Observer
from transformer.core.task import Task
from transformer.encoded.batching import Ids, sorted_batches
from transformer.encoded.bpe_dropout import BpeDropout
from transformer.encoded.vocabulary import read_vocabularies
from transformer.families.classifier.data.encoded import EncodedTexts
from transformer.families.classifier.nn.config import AnyClassifierParams, ClassifierConfig
from transformer.families.classifier.nn.model import build_model
from transformer.nn.dropout import drop_tokens
from transformer.training.batches import pieces_of_like_length, random_batches
from transformer.training.config import TrainParams
from transformer.training.objective import objective
from transformer.training.stage import TrainingPaths, TrainStageParams, train_and_write
from transformer.training.update import BatchLoss


class Params(TrainStageParams):
    """The stage's parameters."""

    model: AnyClassifierParams


class ClassifierTraining:
    """What the training loop needs: batches, their loss and validation."""

    def __init__(
        self,
        config: ClassifierConfig,
        train: EncodedTexts,
        validation: EncodedTexts,
        params: TrainParams,
        compute: Compute,
        dropout: BpeDropout | None,
    ) -> None:
        self.train, self.validation, self.params, self.compute = train, validation, params, compute
        self.dropout, self.seen = dropout, train
        torch.manual_seed(params.seed)
        self.model = build_model(config).to(compute.device)
        self.d_model = self.model.d_model

    def batches(self, epoch: int) -> Sequence[Ids]:
        """All texts in a random order."""
        self.seen = self.train.resegmented(self.dropout, epoch)
        return random_batches(self.train.lengths, self.params, epoch)

    def pieces(self, rows: Ids) -> Sequence[Ids]:
        """As `Learner.pieces`."""
        pads = self.model.pads(self.compute.device)
        return pieces_of_like_length(rows, self.train.lengths, self.params) if pads else [rows]

    def loss(self, rows: Ids) -> BatchLoss:
        """The summed cross-entropy of the labels."""
        ids, labels = self.seen.batch(rows, self.compute.device)
        pad_id, share = self.model.config.pad_id, self.params.word_dropout
        summed = objective(lambda: (self._logits(drop_tokens(ids, pad_id, share)), labels), self.params)
        return BatchLoss(*summed, tokens=int(self.train.lengths[rows].sum()))

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
        logits: Tensor = self.model(ids, packed=not self.model.pads(self.compute.device))
        return logits


def run(task: Task, params: Params, *, paths: TrainingPaths, observer: Observer) -> dict[str, float]:
    """Train; write the model, its metrics and those of every epoch. Returns the history row of the kept weights."""
    compute = prepare(params.hardware)
    vocabulary = read_vocabularies(paths.vocab, "text")["text"]
    classes = len(task.classes)
    config = ClassifierConfig(model=params.model, size=vocabulary.size, pad_id=vocabulary.pad_id, classes=classes)
    train, validation = (EncodedTexts(paths.encoded / split, config) for split in ("train", "validation"))
    dropout = BpeDropout.open(paths.vocab, params.train.seed)
    training = ClassifierTraining(config, train, validation, params.train, compute, dropout)
    train.report(task, observer)
    validation.report_classes(task, observer)
    return train_and_write(training, config, params, compute, paths, truncated=train.truncated, observer=observer)
