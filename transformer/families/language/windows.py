"""Texts cut into windows that fit the model's context; no window crosses the end of a text.

A masked model reads a window between begin and end token, as BERT does. A causal model reads all tokens but the last
and predicts each token from those before it; each window begins with the last token of the previous one, so that every
token of a text except its begin token is predicted once.
"""

import json
import unicodedata
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.core.errors import UserError
from transformer.core.observer import Observer
from transformer.core.task import Task
from transformer.data.bpe_dropout import BpeDropout
from transformer.data.store import EncodedColumn, Ids, padded
from transformer.data.vocabulary import SPACE, Vocabulary
from transformer.families.language.interface import LanguageConfig, mask_id
from transformer.nn.device import to_device

_SHOWN, _RANDOM = 0.1, 0.1  # of the chosen tokens: kept, replaced by a random one; the rest become [MASK]
_PREFIX = "##"
_UNSEPARATED = (
    *("CJK", "HIRAGANA", "HENTAIGANA", "KATAKANA", "HALFWIDTH KATAKANA"),
    *("THAI", "LAO", "TIBETAN", "MYANMAR", "KHMER"),
)
"""Prefixes of the Unicode letter names of scripts without word separators, those of `data/text.py`."""


class Masked(NamedTuple):
    """A window after masking."""

    given: Ids
    """(T,): input ids."""
    hidden: NDArray[np.bool_]
    """(T,): True on the tokens to predict."""


class Masking:
    """Masks random tokens: of those chosen, 80 % become [MASK], 10 % a random token and 10 % stay.

    A window's mask depends only on the seed, the epoch and the window's number.
    """

    def __init__(self, vocabulary: Vocabulary, *, share: float, whole_words: bool, seed: int) -> None:
        """share: of the tokens between begin and end; whole_words: mask all pieces of a word or none.

        Raises UserError if the vocabulary has only special tokens.
        """
        self._share, self._seed, self._mask = share, seed, mask_id(vocabulary)
        special = {*_special_ids(vocabulary), self._mask}
        self._ordinary = np.array([number for number in range(vocabulary.size) if number not in special])
        if not len(self._ordinary):
            raise UserError("the vocabulary has special tokens alone: lower vocab.min_frequency")
        self._continues = continuations(vocabulary) if whole_words else None

    def __call__(self, window: Ids, epoch: int, number: int) -> Masked:
        """Mask at least one token of a window (T,), never its begin and end token."""
        draw = np.random.default_rng((self._seed, epoch, number))
        hidden = np.zeros(len(window), dtype=bool)
        hidden[1:-1] = self._chosen(window[1:-1], draw)
        fate = draw.random(len(window))
        given = np.where(hidden & (fate >= _SHOWN + _RANDOM), self._mask, window)
        swapped = hidden & (fate < _RANDOM)
        given[swapped] = draw.choice(self._ordinary, int(swapped.sum()))
        return Masked(given, hidden)

    def _chosen(self, tokens: Ids, draw: np.random.Generator) -> NDArray[np.bool_]:
        """Choose tokens at random, or whole words until they reach the share, rounded to the nearest word."""
        wanted = max(1, round(self._share * len(tokens)))
        if self._continues is None:
            ranks: NDArray[np.int64] = draw.permutation(len(tokens))
            return ranks < wanted
        words = np.cumsum(np.concatenate(([False], ~self._continues[tokens[1:]])))  # (T,) the word of each token
        sizes = np.bincount(words)
        order = draw.permutation(len(sizes))
        taken = np.zeros(len(sizes), dtype=bool)
        before = np.cumsum(sizes[order]) - sizes[order]
        taken[order] = (before + sizes[order] / 2 < wanted) | (before == 0)
        chosen: NDArray[np.bool_] = taken[words]
        return chosen


def continuations(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Return a mask (V,), True for pieces that continue a word: `##ing`, or a letter, mark or digit not after a space.

    A piece of a script without word separators is its own word, otherwise whole clauses would be one.
    """
    names = [*vocabulary.entries(range(vocabulary.size))]
    kind: dict[str, Any] = json.loads(vocabulary.tokenizer.to_str())["model"]
    if kind["type"] == "WordPiece":
        return np.array([name.startswith(_PREFIX) and _joins(name[len(_PREFIX) :]) for name in names])
    if kind["type"] == "WordLevel":
        return np.zeros(len(names), dtype=bool)
    found = np.array([_joins(name) and unicodedata.category(name[0])[0] in "LMN" for name in names])
    found[[*_special_ids(vocabulary)]] = False
    return found


def _joins(piece: str) -> bool:
    """True unless the piece begins with a space, or with a letter of a script without word separators.

    Combining marks and vowel lengtheners belong to the previous letter in every script.
    """
    if not piece or piece.startswith(SPACE):
        return False
    mark = unicodedata.category(piece[0]) in ("Mn", "Mc", "Me", "Lm")
    return mark or not unicodedata.name(piece[0], "").startswith(_UNSEPARATED)


def _special_ids(vocabulary: Vocabulary) -> tuple[int, ...]:
    return vocabulary.pad_id, vocabulary.unknown_id, vocabulary.begin_id, vocabulary.end_id


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
        ids = torch.from_numpy(padded(given, self.config.pad_id))
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
