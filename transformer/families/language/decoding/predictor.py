"""Language model on raw texts, independent of the backend: fills, continues, scores and embeds."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transformer.core.errors import UserError
from transformer.core.observer import Observer, check_deadline
from transformer.encoded.batching import Ids, padded, sorted_batches
from transformer.encoded.vocabulary import Vocabulary
from transformer.families.language.decoding.config import AnswerParams
from transformer.families.language.decoding.continuing import continue_texts
from transformer.families.language.decoding.filling import Filling, around_gaps, encode_gaps, fillings
from transformer.families.language.decoding.interface import Engine
from transformer.families.language.decoding.scoring import TextScore, framed, score, windows
from transformer.families.language.nn.mask_token import MASK, mask_id
from transformer.generation.detokenize import detokenize
from transformer.text.clean import given_texts, one_line
from transformer.text.pretokenize import open_pretokenizer, read_pretokenizers


class LanguageModel:
    """A language model on raw text."""

    family = "language"

    def __init__(self, engine: Engine, vocabulary: Vocabulary, pretokenizer: Path, decoding: AnswerParams) -> None:
        """pretokenizer: the folder with `pretokenizer.json`. Raises UserError if that is missing or broken."""
        self.engine, self.vocabulary = engine, vocabulary
        self._spec = read_pretokenizers(pretokenizer, "text")["text"]
        self._pretokenize = open_pretokenizer(pretokenizer, self._spec)
        self.decoding = decoding
        """May be replaced; takes effect with the next call."""

    def fill(self, text: str, n_best: int = 5) -> list[Filling]:
        """Return the `n_best` most probable fillings of a text's gaps, each written [MASK]; without gaps, the text.

        A text longer than the model's context is cropped around its gaps. Raises UserError if the model is causal, the
        gaps are too far apart, or `n_best` is below 1.
        """
        if n_best < 1:
            raise UserError(f"n_best ({n_best}) must be 1 or more")
        if self.engine.causal:
            raise UserError("this is a causal model, which continues texts: use `generate`, or a masked model")
        text = one_line(given_texts([text])[0])
        if MASK not in text:
            return [Filling(text, 1.0, ())]
        mask = self.engine.mask_id
        ids = around_gaps(self.encode_gaps(text), mask, self.engine.positions, text)
        found = self.engine.log_probabilities(ids[None], np.flatnonzero(ids == mask)).astype(np.float64)
        found[:, self._never] = -np.inf
        return fillings(text, found, self.vocabulary, n_best)

    def generate(self, prompt: str) -> str:
        """Return the prompt with its best or a sampled continuation, as set by `decoding`."""
        return self.generate_n_best([prompt])[0][0]

    def generate_n_best(self, prompts: Iterable[str], first: int = 0) -> list[list[str]]:
        """Return up to `decoding.n_best` continuations of each prompt, best first. An empty prompt starts a new text.

        first: number of the first prompt in the whole input, for sampling seeds. A prompt that fills the model's
        context loses its beginning. Raises UserError if the model is masked.
        """
        if not self.engine.causal:
            raise UserError(f"this is a masked model, which fills {MASK}: use `fill`, or a causal model")
        prompts = [one_line(prompt) for prompt in given_texts(prompts)]
        encoded = [ids[:-1] for ids in self.vocabulary.encode(self._pretokenize(prompts))]
        found = continue_texts(self.engine.generator, encoded, self.vocabulary, self.decoding, first)
        return [
            [self._continued(prompt, ids, each.ids) for each in hypotheses]
            for prompt, ids, hypotheses in zip(prompts, encoded, found, strict=True)
        ]

    def score(self, texts: Iterable[str], *, stride: int | None = None) -> list[TextScore]:
        """Return the log probability of each text, or its pseudo-log-likelihood if masked (`decoding/scoring.py`).

        stride: tokens between the windows of a text longer than the model's context; default: as evaluated.
        """
        params = self.decoding if stride is None else self.decoding.model_copy(update={"stride": stride})
        return score(self.engine, self.encode(texts), params, Observer()).texts

    def embed(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return one vector per text, (N, C): the mean of its last-layer states, including begin and end token.

        A text longer than the context is split into adjacent windows, framed as in training.
        """
        parts = [(number, part) for number, ids in enumerate(self.encode(texts)) for part in self._parts(ids)]
        if not parts:
            return np.zeros((0, 0), dtype=np.float32)
        sums, counts = None, np.zeros(parts[-1][0] + 1)
        for rows in sorted_batches(np.array([len(ids) for _, ids in parts]), self.decoding.batch_size):
            ids = padded([parts[row][1] for row in rows], self.engine.pad_id)
            states = np.where((ids != self.engine.pad_id)[:, :, None], self.engine.states(ids), 0)
            sums = np.zeros((len(counts), states.shape[2])) if sums is None else sums
            owners = np.array([parts[row][0] for row in rows])
            np.add.at(sums, owners, states.sum(axis=1))
            np.add.at(counts, owners, [len(parts[row][1]) for row in rows])
        assert sums is not None
        embedded: NDArray[np.float32] = (sums / counts[:, None]).astype(np.float32)
        return embedded

    def _parts(self, ids: Ids) -> Iterator[Ids]:
        size = self.engine.positions
        if self.engine.causal or len(ids) <= size:
            yield from (ids[start:stop] for start, stop, _ in windows(len(ids), size, None))
        else:
            yield from (framed(ids, start, stop) for start, stop, _ in windows(len(ids) - 2, size - 2, None))

    def table(self, texts: Iterable[str]) -> dict[str, list[str]]:
        """Return the continued or filled texts as a column of a data frame."""
        if self.engine.causal:
            return {"answer": [found[0] for found in self.generate_n_best(texts)]}
        return {"answer": [self._filled(text) for text in given_texts(texts)]}

    def _filled(self, text: str) -> str:
        check_deadline()
        return self.fill(text, 1)[0].text

    def encode(self, texts: Iterable[str]) -> list[Ids]:
        """Return the ids of raw texts, from begin to end token."""
        return self.vocabulary.encode(self.pretokenize(texts))

    def encode_gaps(self, text: str) -> Ids:
        """Return the ids of a raw text with its gaps, from begin to end token; causal models have no gaps."""
        if self.engine.causal or MASK not in text:
            return self.encode([text])[0]
        return encode_gaps(one_line(text), self.vocabulary, self._pretokenize, self.engine.mask_id)

    def pretokenize(self, texts: Iterable[str]) -> list[str]:
        """Return the pre-tokenized texts, tokens separated by spaces, as input to the vocabulary."""
        return self._pretokenize([one_line(text) for text in given_texts(texts)])

    @property
    def _never(self) -> list[int]:
        """Return the tokens that never fill a gap."""
        vocabulary, mask = self.vocabulary, self.engine.mask_id
        special = [vocabulary.pad_id, vocabulary.unknown_id, vocabulary.begin_id, vocabulary.end_id, mask]
        return [*special, *vocabulary.unfamiliar_ids.tolist()]  # byte tokens are not words

    def _continued(self, prompt: str, given: Ids, new: Sequence[int]) -> str:
        """Append the text of the new tokens to the prompt, which stays as written."""
        before, whole = (self._text(ids) for ids in (given.tolist(), [*given.tolist(), *new]))
        added = _after(before, whole)
        return f"{prompt} {self._text(new)}" if added is None else prompt + added

    def _text(self, ids: Sequence[int]) -> str:
        decoded = one_line(self.vocabulary.decode(ids))
        return detokenize(decoded) if self._spec.kind == "spacy" else decoded


def _after(before: str, whole: str) -> str | None:
    """Return the rest of `whole` after `before`, ignoring spaces in the match; None if their letters differ."""
    place = 0
    for letter in before.replace(" ", ""):
        while whole[place : place + 1] == " ":
            place += 1
        if whole[place : place + 1] != letter:
            return None
        place += 1
    return whole[place:]


def never_generated(vocabulary: Vocabulary) -> tuple[int, ...]:
    """Return the tokens that are never generated: padding, begin token and [MASK]."""
    mask = mask_id(vocabulary)
    return (vocabulary.pad_id, vocabulary.begin_id, *((mask,) if mask < vocabulary.size else ()))
