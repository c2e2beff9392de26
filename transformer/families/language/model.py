"""Language model on raw texts, independent of the backend: fills, continues, scores and embeds."""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers.models import WordPiece

from transformer.core.errors import UserError
from transformer.core.observer import Observer, check_deadline
from transformer.data.store import Ids, padded, sorted_batches
from transformer.data.text import given_texts, one_line
from transformer.data.tokenization import detokenize, open_pretokenizer, read_pretokenizers
from transformer.data.vocabulary import SPACE, Vocabulary
from transformer.families.language.interface import MASK, mask_id
from transformer.families.language.scoring import AnswerParams, Engine, Floats, TextScore, framed, score, windows
from transformer.inference.decode import Rows, decode, search
from transformer.inference.notes import Notes, in_column, unknown_words
from transformer.inference.search import Generator, Hypothesis, Sources
from transformer.inference.stepwise import best_first


def continue_texts(
    generator: Generator, prompts: Sequence[Ids], vocabulary: Vocabulary, params: AnswerParams, first: int = 0
) -> list[list[Hypothesis]]:
    """Return the continuations of each prompt, which starts with the begin token and has no end token.

    Results do not depend on the batch size. If a prompt leaves less room in the context than `max_length` tokens or
    half the context, whichever is less, its first tokens are dropped. first: number of the first prompt, for sampling
    seeds.
    """
    positions = generator.positions
    longest = longest_prompt(positions, params)
    kept = [ids if len(ids) <= longest else np.concatenate((ids[:1], ids[1 - longest :])) for ids in prompts]

    def batch(rows: Rows) -> Sources:
        ids = np.stack([kept[row] for row in rows])
        room = min(params.max_length, positions + 1 - ids.shape[1])
        return Sources(ids[:, :-1], ids[:, -1], [room] * len(rows), [(first + row,) for row in rows])

    def searched(given: Iterable[Sources]) -> Iterator[list[list[Hypothesis]]]:
        for each in given:
            check_deadline()
            yield search(generator, each, vocabulary, params)

    found = decode(_batches([len(ids) for ids in kept], params.batch_size), batch, searched, Observer())
    return [best_first(each) for each in found] if params.method == "sample" else found


def longest_prompt(positions: int, params: AnswerParams) -> int:
    """Return the maximum number of ids read of a prompt, including the begin token."""
    return positions + 1 - min(params.max_length, positions // 2)


def _batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Batch rows of equal length: a padded prompt would be continued after its padding."""
    by_length = defaultdict(list)
    for row, length in enumerate(lengths):
        by_length[length].append(row)
    return [rows[start : start + size] for rows in by_length.values() for start in range(0, len(rows), size)]


_PREFIX = "##"
_WORD = ("qu", "x", "wjz")
"""Parts of a placeholder word (the middle is repeated as needed) whose end never overlaps its beginning, so that it is
found unambiguously between other letters."""
_SHOWN = 60  # characters of a text shown in an error message


class _Filled(NamedTuple):
    text: str
    probability: float
    """Product of the words' probabilities, each with all other gaps masked."""
    words: tuple[str, ...]
    """The word in each gap."""


class Filling(_Filled):
    """A text with its gaps filled, which unpacks to `text`, `probability` and `words`."""

    notes: Notes = ()
    """What was not read of the text; one line each."""


class Continuation(NamedTuple):
    """A prompt with what was written after it."""

    text: str
    notes: Notes
    """What was not read of the prompt, and whether the continuation stops short; one line each."""


_NO_GAP = f"a text without {MASK} has no gap: it stays as it is"
_UNFINISHED = "the continuation reached its maximum length and stops there"


def encode_gaps(text: str, vocabulary: Vocabulary, split: Callable[[list[str]], list[str]], mask: int) -> Ids:
    """Return the ids of a text, from begin to end token, with `mask` for each [MASK]; split: the pre-tokenizer."""
    parts: list[Ids] = []
    for number, piece in enumerate(_around(text, split)):
        attached = number > 0 and piece[:1] not in ("", " ")
        before = _of_another_class(piece) if attached and _keeps_spaces(vocabulary) else ""
        skipped = len(vocabulary.encode([before])[0]) - 2 if before else 0
        inside: list[int] = []
        if attached and isinstance(vocabulary.tokenizer.model, WordPiece):
            inside, piece = _rest_of_word(piece, vocabulary)
        ids = vocabulary.encode([before + piece.strip()])[0]
        parts += [np.array(inside, dtype=np.int64), ids[1 + skipped : -1], np.array([mask])]
    return np.concatenate(([vocabulary.begin_id], *parts[:-1], [vocabulary.end_id])).astype(np.int64)


def _around(text: str, split: Callable[[list[str]], list[str]]) -> list[str]:
    """Return the pre-tokenized pieces around the gaps; a piece preceded by a space begins with one."""
    begin, middle, end = _WORD
    word = begin + middle + end  # a word, so that the pre-tokenizer splits its neighbours as usual
    while word in text.lower():
        middle += _WORD[1]
        word = begin + middle + end
    (whole,) = split([text.replace(MASK, word)])
    pieces, given = whole.split(word), text.split(MASK)
    if len(pieces) == len(given):
        return pieces
    # The pre-tokenizer split the placeholder, as Chinese ones do.
    return [" " * each.startswith(" ") + piece for each, piece in zip(given, split(given), strict=True)]


def _rest_of_word(piece: str, vocabulary: Vocabulary) -> tuple[list[int], str]:
    """Return the ##... pieces that continue the word of a gap, by WordPiece's longest match, and the remaining text."""
    tokenizer = vocabulary.tokenizer
    text = tokenizer.normalizer.normalize_str(f"a{piece}")  # a letter replaces the gap
    (word, (_, end)), *_ = tokenizer.pre_tokenizer.pre_tokenize_str(text)
    ids, start = [], 1
    while start < len(word):
        found = ((stop, tokenizer.token_to_id(f"{_PREFIX}{word[start:stop]}")) for stop in range(len(word), start, -1))
        start, number = next((each for each in found if each[1] is not None), (len(word), None))
        if number is None:
            return [vocabulary.unknown_id], text[end:]
        ids.append(number)
    return ids, text[end:]


def _of_another_class(piece: str) -> str:
    """Return a character of another class, split off from a piece that must not get a leading space."""
    return "." if unicodedata.category(piece[0])[0] in "LMN" else "a"


def _keeps_spaces(vocabulary: Vocabulary) -> bool:
    return SPACE in vocabulary.tokenizer.get_vocab()


def around_gaps(ids: Ids, mask: int, positions: int, text: str) -> Ids:
    """Return the part of a `text` around its gaps that fits the context, between begin and end token.

    Raises UserError if the gaps are too far apart.
    """
    inner, size = ids[1:-1], positions - 2
    if len(inner) <= size:
        return ids
    gaps = np.flatnonzero(inner == mask)
    if gaps[-1] - gaps[0] >= size:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        apart = gaps[-1] - gaps[0] + 1
        raise UserError(f"in {shown!r} the gaps lie {apart} tokens apart, and the model reads {size}: fill fewer")
    start = min(max(int(gaps[0] + gaps[-1]) // 2 - size // 2, 0), len(inner) - size)
    start = min(max(start, int(gaps[-1]) - size + 1), int(gaps[0]))
    return np.concatenate((ids[:1], inner[start : start + size], ids[-1:]))


def fillings(text: str, log_probabilities: Floats, vocabulary: Vocabulary, count: int) -> list[Filling]:
    """Return the `count` most probable fillings of a text with M gaps; log_probabilities: (M, V), -inf if not allowed.

    Gaps are independent, so the most probable combinations consist of the most probable words of each gap.
    """
    found: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for row in log_probabilities:
        best = [token for token in np.argsort(-row, kind="stable")[:count] if np.isfinite(row[token])]
        longer = [(total + float(row[token]), (*ids, int(token))) for total, ids in found for token in best]
        found = sorted(longer, key=lambda each: -each[0])[:count]
    return [_filled(text, ids, float(np.exp(total)), vocabulary) for total, ids in found]


def _filled(text: str, ids: Sequence[int], probability: float, vocabulary: Vocabulary) -> Filling:
    names = vocabulary.entries(ids)
    words = tuple(name.replace(SPACE, "") for name in names)
    for name, word in zip(names, words, strict=True):
        start, _, rest = text.partition(MASK)
        if word.startswith(_PREFIX) or (_keeps_spaces(vocabulary) and not name.startswith(SPACE)):
            start = start.rstrip()
        text = start + word.removeprefix(_PREFIX) + rest
    return Filling(text, round(probability, 6), words)


def _noted(found: list[Filling], notes: Iterable[str]) -> list[Filling]:
    for each in found:
        each.notes = tuple(notes)
    return found


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
            return _noted([Filling(text, 1.0, ())], [_NO_GAP])
        mask, whole = self.engine.mask_id, self.encode_gaps(text)
        ids = around_gaps(whole, mask, self.engine.positions, text)
        cropped = len(ids) < len(whole)
        notes = [f"only {len(ids) - 2} tokens around the gaps were read"] if cropped else []
        (rest,) = self.pretokenize([text.replace(MASK, " ")])
        notes += unknown_words(self.vocabulary, rest, self.vocabulary.encode([rest])[0])
        found = self.engine.log_probabilities(ids[None], np.flatnonzero(ids == mask)).astype(np.float64)
        found[:, self._never] = -np.inf
        return _noted(fillings(text, found, self.vocabulary, n_best), notes)

    def generate(self, prompt: str) -> str:
        """Return the prompt with its best or a sampled continuation, as set by `decoding`."""
        return self.generate_n_best([prompt])[0][0]

    def generate_n_best(self, prompts: Iterable[str], first: int = 0) -> list[list[str]]:
        """Return the texts of `continuations`."""
        return [[each.text for each in found] for found in self.continuations(prompts, first)]

    def continuations(self, prompts: Iterable[str], first: int = 0) -> list[list[Continuation]]:
        """Return up to `decoding.n_best` continuations of each prompt, best first. An empty prompt starts a new text.

        first: number of the first prompt in the whole input, for sampling seeds. A prompt that fills the model's
        context loses its beginning. Raises UserError if the model is masked.
        """
        if not self.engine.causal:
            raise UserError(f"this is a masked model, which fills {MASK}: use `fill`, or a causal model")
        prompts = [one_line(prompt) for prompt in given_texts(prompts)]
        tokens = self._pretokenize(prompts)
        whole = self.vocabulary.encode(tokens)
        encoded = [ids[:-1] for ids in whole]
        found = continue_texts(self.engine.generator, encoded, self.vocabulary, self.decoding, first)
        notes = [tuple(self._read(*each)) for each in zip(tokens, whole, strict=True)]
        return [
            [
                Continuation(self.continued(prompt, ids, each.ids), (*own, *([] if each.finished else [_UNFINISHED])))
                for each in hypotheses
            ]
            for prompt, ids, hypotheses, own in zip(prompts, encoded, found, notes, strict=True)
        ]

    def _read(self, tokens: str, ids: Ids) -> Iterator[str]:
        """Yield notes about what is read of a prompt."""
        longest = longest_prompt(self.engine.positions, self.decoding)
        if len(ids) - 1 > longest:
            yield f"only the last {longest - 1} tokens of the prompt were read"
        yield from unknown_words(self.vocabulary, tokens, ids)

    def score(self, texts: Iterable[str], *, stride: int | None = None) -> list[TextScore]:
        """Return the log probability of each text, or its pseudo-log-likelihood if masked (`scoring.py`).

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
        """Return the continued or filled texts, and their notes, as columns of a data frame."""
        answers: list[Continuation] | list[Filling]
        if self.engine.causal:
            answers = [found[0] for found in self.continuations(texts)]
        else:
            answers = [self._filled(text) for text in given_texts(texts)]
        return {"answer": [each.text for each in answers], "notes": [in_column(each.notes) for each in answers]}

    def _filled(self, text: str) -> Filling:
        check_deadline()
        return self.fill(text, 1)[0]

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

    def continued(self, prompt: str, given: Ids, new: Sequence[int]) -> str:
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
