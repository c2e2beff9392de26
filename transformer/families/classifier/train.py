"""train: trains a classifier on the encoded texts."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from transformer.core.files import write_json, write_table
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.task import PRETRAINING, UNSUPERVISED, Task, with_labels
from transformer.data.bpe_dropout import BpeDropout
from transformer.data.store import Ids, sorted_batches
from transformer.data.vocabulary import read_vocabularies
from transformer.families.classifier.interface import ClassifierConfig, ClassifierModel
from transformer.families.classifier.network import build_model
from transformer.families.classifier.ngrams import on_cores
from transformer.families.classifier.pretrained import (
    AnyInitialisedParams,
    InitialisedParams,
    architecture,
    lr_scales,
    start_from,
)
from transformer.families.classifier.texts import EncodedTexts
from transformer.families.classifier.training_params import ClassifierTrainParams, class_weights
from transformer.nn.device import prepare
from transformer.nn.dropout import drop_tokens
from transformer.nn.objective import objective
from transformer.nn.trained import save_trained
from transformer.training.batches import BatchLoss, CorpusTraining, Opened
from transformer.training.history import CURVE
from transformer.training.stage import TrainStageParams, train_and_write


class Params(TrainStageParams):
    """The stage's parameters."""

    model: AnyInitialisedParams
    train: ClassifierTrainParams


class ClassifierTraining(CorpusTraining[EncodedTexts, ClassifierModel]):
    """Training on labelled texts."""

    params: ClassifierTrainParams
    weights: Tensor | None = None
    """(K,): class weights of the loss; None if all are 1."""

    def build(self) -> ClassifierModel:
        """Return a new model with weights drawn from torch's generator."""
        return build_model(self.train.config)

    def loss(self, rows: Ids) -> BatchLoss:
        """Return the summed cross-entropy of the labels."""
        ids, labels = self.epoch_rows.batch(rows, self.compute.device)
        pad_id, share = self.model.config.pad_id, self.params.word_dropout

        def predict() -> tuple[Tensor, Tensor]:
            return self._logits(drop_tokens(ids, pad_id, share)), labels

        smoothing = self.params.label_smoothing
        summed = objective(predict, smoothing=smoothing, r_drop=self.params.r_drop, weights=self.weights)
        return BatchLoss(*summed, tokens=self.tokens(rows))

    def validate(self) -> dict[str, float]:
        """Return mean loss per text and accuracy, in fp32."""
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


def run(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Train, and write the model and its metrics, final and per epoch. Returns the history row of the kept weights."""
    if params.model.kind == "ngrams":
        return _fit_and_write(task, params, paths, observer)
    return train_and_write(open_training, task, params, paths, observer)


def _fit_and_write(task: Task, params: Params, paths: Paths, observer: Observer) -> dict[str, float]:
    """Do what `run` does for a model fitted in one step: the history has one row, and there is nothing to resume."""
    from transformer.families.classifier.ngram_training import fit_ngrams  # imports scikit-learn

    prepare(params.hardware)
    config, train, validation, weights = _read(task, params, paths, torch.device("cpu"), observer)
    labels, further = np.asarray(train.labels), paths.encoded / UNSUPERVISED
    with on_cores(params.hardware.threads):
        model, logits = fit_ngrams(
            config,
            train.whole(),
            labels,
            unlabelled=EncodedTexts(further, config).whole() if further.exists() else None,
            factors=None if weights is None else weights.numpy().astype(np.float64)[labels],
            seed=params.train.seed,
            observer=observer,
        )
        answers = model.logits(validation.whole())
    right = (answers.argmax(axis=1) == validation.labels).sum() / max(len(validation), 1)
    figures = {"train_loss": _mean_loss(logits, labels), "validation_loss": _mean_loss(answers, validation.labels)}
    figures["validation_accuracy"] = float(right)
    observer.metrics(0, figures)
    state = {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in model.state().items()}
    save_trained(paths.trained, config, state)
    (paths.trained / PRETRAINING).unlink(missing_ok=True)  # left by an earlier manual run
    row = {"epoch": 0, "step": 0, **figures}
    write_table(paths.history, list(row), [list(row.values())])
    write_table(paths.updates, CURVE, [])
    counts = {"ngrams": len(model.keys), "parameters": model.parameters}
    write_json(paths.training, figures | counts | {"device": "cpu", "precision": "fp32"})
    return figures | counts


def _mean_loss(logits: NDArray[np.float64], labels: NDArray[np.int8]) -> float:
    summed = F.cross_entropy(torch.from_numpy(logits), torch.from_numpy(labels.astype("int64")), reduction="sum")
    return summed.item() / max(len(labels), 1)


def _read(
    task: Task, params: Params, paths: Paths, device: torch.device, observer: Observer
) -> tuple[ClassifierConfig, EncodedTexts, EncodedTexts, Tensor | None]:
    """Return the model configuration, the training and validation texts, and the class weights."""
    task = with_labels(task, paths.encoded)
    vocabulary, model = read_vocabularies(paths.vocab, "text")["text"], architecture(params.model)
    classes = len(task.classes)
    config = ClassifierConfig(model=model, size=vocabulary.size, pad_id=vocabulary.pad_id, classes=classes)
    train, validation = (EncodedTexts(paths.encoded / split, config) for split in ("train", "validation"))
    train.report(task, observer)
    validation.report_classes(task, observer)
    weights = class_weights(params.train.class_weights, task.classes, train.labels, device)
    return config, train, validation, weights


def open_training(task: Task, params: Params, paths: Paths, observer: Observer) -> Opened:
    """Build the model and open its data. Raises UserError if an input is missing or does not fit."""
    compute = prepare(params.hardware)
    config, train, validation, weights = _read(task, params, paths, compute.device, observer)
    dropout = BpeDropout.open(paths.vocab, params.train.seed)
    training = ClassifierTraining(train, validation, params.train, compute, dropout)
    training.weights = weights
    record: dict[str, Any] | None = None
    if isinstance(params.model, InitialisedParams) and params.model.init == "pretrained":
        record = start_from(training.model, params.model, paths.vocab / "text" / "tokenizer.json")
        training.lr_scales = lr_scales(training.model, params.model)
        observer.say(f"starts from {params.model.pretrained}, SHA-256 {record['sha256'][:12]}")

    def save(trained: Path) -> None:
        (trained / PRETRAINING).unlink(missing_ok=True)  # left by an earlier manual run
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
