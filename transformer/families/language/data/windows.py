"""Texts cut into windows that fit the model's context; no window crosses the end of a text.

A masked model reads a window between begin and end token, as BERT does. A causal model reads all tokens but the last
and predicts each token from those before it; each window begins with the last token of the previous one, so that every
token of a text except its begin token is predicted once.
"""

from copy import copy
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.core.observer import Observer
from transformer.core.task import Task
from transformer.encoded.batching import Ids
from transformer.encoded.bpe_dropout import BpeDropout
from transformer.encoded.store import EncodedColumn
from transformer.encoded.tensors import pad, to_device
from transformer.families.language.data.masking import Masking
from transformer.families.language.nn.config import LanguageConfig


class Batch(NamedTuple):
    """Model inputs and prediction targets."""

    ids: Tensor
    """(B, T): input ids, padded at the end."""
    places: Tensor
    """(M,): indices of the predicting tokens among the real tokens of the batch."""
    padded_places: Tensor
    """(M,): indices of the same tokens in the flattened ids (B * T,)."""
    targets: Tensor
    """(M,): target tokens at these places."""


class EncodedWindows:
    """One split of the encoded store, in windows no longer than the model's context."""

    def __init__(self, folder: Path, config: LanguageConfig, masking: Masking) -> None:
        self.texts = EncodedColumn(folder, "text")
        self.config, self.split, self.masking, self.epoch = config, folder.name, masking, 0
        self.causal = config.model.objective == "causal"
        self.text, self.start, self.stop = cut(self.texts.lengths, config.model.max_length, causal=self.causal)
        self.lengths = self.stop - self.start + (-1 if self.causal else 2)
        """(N,): number of tokens that the model reads per window, including special ones."""

    def __len__(self) -> int:
        return len(self.text)

    def resegmented(self, dropout: BpeDropout | None, epoch: int) -> Self:
        """Return the windows with this epoch's masks. `dropout` must be None, which build_vocab ensures."""
        assert dropout is None
        view = copy(self)
        view.epoch = epoch
        return view

    def window(self, row: int) -> Ids:
        """Return the tokens of one window; for a masked model, between begin and end token."""
        ids = self.texts[int(self.text[row])]
        inner = ids[self.start[row] : self.stop[row]]
        return inner if self.causal else np.concatenate((ids[:1], inner, ids[-1:]))

    def batch(self, rows: Ids, device: torch.device) -> Batch:
        """Return the given windows as inputs and targets."""
        windows = [self.window(row) for row in rows]
        if self.causal:
            given, hidden = [each[:-1] for each in windows], [np.ones(len(each) - 1, bool) for each in windows]
            targets = np.concatenate([each[1:] for each in windows])
        else:
            masked = [self.masking(each, self.epoch, int(row)) for each, row in zip(windows, rows, strict=True)]
            given, hidden = [each.given for each in masked], [each.hidden for each in masked]
            targets = np.concatenate([each[chosen] for each, chosen in zip(windows, hidden, strict=True)])
        ids = pad(given, self.config.pad_id)
        places = np.flatnonzero(np.concatenate(hidden))
        within = np.concatenate([np.flatnonzero(each) + number * ids.shape[1] for number, each in enumerate(hidden)])
        tensors = (torch.from_numpy(each) for each in (places, within, targets))
        return Batch(to_device(ids, device), *(to_device(each, device) for each in tensors))

    def report(self, task: Task, observer: Observer) -> None:
        """Report the number of texts, windows and tokens."""
        tokens = int(self.lengths.sum())
        observer.say(f"{self.split}: {len(self.texts):,} {task.units} in {len(self):,} windows, {tokens:,} tokens")


def cut(lengths: NDArray[np.int64], context: int, *, causal: bool) -> tuple[Ids, Ids, Ids]:
    """Cut texts of `lengths` ids into N windows. Returns each one's text number, first id and the id after its last.

    The windows of a text differ in length by at most one token. They share one id if `causal`; otherwise they exclude
    begin and end token, and a text without any other token has no window.
    """
    first, tokens = (0, lengths - 1) if causal else (1, lengths - 2)
    size = context if causal else context - 2
    counts = -(-tokens // size)
    text = np.repeat(np.arange(len(lengths)), counts)
    number = np.arange(len(text)) - np.repeat(np.cumsum(counts) - counts, counts)
    start, stop = (first + tokens[text] * each // counts[text] for each in (number, number + 1))
    return text, start, stop + 1 if causal else stop


def first_texts(folder: Path, most: int | None) -> list[Ids]:
    """Return the first texts of a split, untruncated, from begin to end token; most: None for all."""
    column = EncodedColumn(folder, "text")
    return [column[row] for row in range(len(column) if most is None else min(most, len(column)))]
