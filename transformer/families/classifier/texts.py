"""Encoded, labelled texts."""

from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor

from transformer.core.observer import Observer
from transformer.core.task import Task
from transformer.data.bpe_dropout import BpeDropout, Column
from transformer.data.store import EncodedColumn, Ids, padded, read_labels
from transformer.data.vocabulary import clip
from transformer.families.classifier.interface import ClassifierConfig
from transformer.nn.device import to_device


class EncodedTexts:
    """One split of the encoded store. Texts longer than the model's positions are truncated and counted."""

    def __init__(self, folder: Path, config: ClassifierConfig) -> None:
        self.text: Column = EncodedColumn(folder, "text")
        self.labels = read_labels(folder)
        self.config = config
        self.split = folder.name
        full = self.text.lengths
        self.lengths = full.clip(max=config.model.max_length)
        """(N,): number of tokens, including special ones."""
        self.truncated = int((full > config.model.max_length).sum())
        """Number of truncated texts."""

    def __len__(self) -> int:
        return len(self.text)

    def resegmented(self, dropout: BpeDropout | None, epoch: int) -> Self:
        """Return the texts in this epoch's BPE-dropout segmentation, or as stored if dropout is None."""
        if dropout is None:
            return self
        view = copy(self)
        view.text = dropout.column("text", self.text, epoch, longest=self.config.model.max_length)
        return view

    def sequence(self, row: int) -> Ids:
        """Return the ids of one text, truncated to the model's positions."""
        return clip(self.text[row], self.config.model.max_length)

    def whole(self) -> Iterator[Ids]:
        """Iterate over the ids of all texts, untruncated."""
        return (self.text[row] for row in range(len(self)))

    def batch(self, rows: Ids, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the padded ids (B, S) and the labels (B,) of the given rows."""
        ids = torch.from_numpy(padded([self.sequence(row) for row in rows], self.config.pad_id))
        labels = torch.from_numpy(self.labels[rows].astype("int64"))
        return to_device(ids, device), to_device(labels, device)

    def report(self, task: Task, observer: Observer) -> None:
        """Report the number of texts and of truncated ones."""
        observer.say(f"{self.split}: {len(self):,} {task.units}")
        if self.truncated:
            observer.say(
                f"warning: {self.truncated:,} {task.units} of {self.split} are longer than model.max_length"
                f" ({self.config.model.max_length}) and were cut"
            )
        self.report_classes(task, observer)

    def report_classes(self, task: Task, observer: Observer) -> None:
        """Warn about classes missing from the split, which its metrics cannot cover."""
        for label in sorted({*range(self.config.classes)} - {*np.unique(self.labels).tolist()}):
            name = f"{task.classes[label]} {task.unit}"
            observer.say(f"warning: {self.split} has no {name}: its metrics say nothing about that class")
