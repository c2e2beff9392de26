"""Texts as parallel streams, for models that remember: each stream is read in segments, one after the other.

The texts of a split are joined, from begin to end token each, and cut into streams of equal length. No begin token is
a target: it always follows an end token.
"""

from copy import copy
from pathlib import Path
from typing import Self

import numpy as np
import torch

from transformer.core.observer import Observer
from transformer.core.task import Task
from transformer.data.bpe_dropout import BpeDropout
from transformer.data.store import EncodedColumn, Ids
from transformer.families.language.interface import LanguageConfig
from transformer.families.language.windows import Batch
from transformer.nn.device import to_device


class EncodedStreams:
    """One split of the encoded store, in segments of streams; row `stream * segments + k` is a stream's k-th one."""

    def __init__(self, folder: Path, config: LanguageConfig, *, streams: int, begin_id: int, seed: int) -> None:
        """streams: at most this many, of one segment or more; seed: of the order of the texts in an epoch."""
        self.texts, self.config, self.split = EncodedColumn(folder, "text"), config, folder.name
        self._begin, self._seed = begin_id, seed
        self._ids = self._joined(np.arange(len(self.texts)))
        total, size = max(len(self._ids) - 1, 0), config.model.max_length
        self.streams = max(1, min(streams, total // size))
        self._length = total // self.streams
        self.segments = -(-self._length // size)
        """Segments of each stream."""
        ends = np.minimum(np.arange(1, self.segments + 1) * size, self._length)
        self.lengths = np.tile(np.diff(ends, prepend=0), self.streams)
        """(N,): tokens of each segment."""

    def __len__(self) -> int:
        return len(self.lengths)

    def resegmented(self, dropout: BpeDropout | None, epoch: int) -> Self:
        """Return the streams of an epoch, whose texts are in another order. `dropout` must be None."""
        assert dropout is None
        view = copy(self)
        view._ids = self._joined(np.random.default_rng((self._seed, epoch)).permutation(len(self.texts)))
        return view

    def batches(self) -> list[Ids]:
        """Return the rows of each batch: the next segment of every stream."""
        first = np.arange(self.streams) * self.segments
        return [first + number for number in range(self.segments)]

    def batch(self, rows: Ids, device: torch.device) -> Batch:
        """Return segments, with the same number in their streams, as inputs and targets."""
        stream, number = np.divmod(rows, self.segments)
        start = stream * self._length + number * self.config.model.max_length
        ids = self._ids[start[:, None] + np.arange(self.lengths[rows[0]] + 1)]
        targets = ids[:, 1:].ravel()
        places = np.flatnonzero(targets != self._begin)
        given, at, wanted = (torch.from_numpy(each) for each in (ids[:, :-1].copy(), places, targets[places]))
        places_on_device = to_device(at, device)
        return Batch(to_device(given, device), places_on_device, places_on_device, to_device(wanted, device))

    def report(self, task: Task, observer: Observer) -> None:
        """Report the number of texts, streams and tokens."""
        streams = f"{self.streams:,} streams of {self.segments:,} segments"
        observer.say(f"{self.split}: {len(self.texts):,} {task.units} in {streams}, {len(self._ids):,} tokens")

    def _joined(self, order: Ids) -> Ids:
        return np.concatenate([np.empty(0, dtype=np.int64), *(self.texts[row] for row in order)])
