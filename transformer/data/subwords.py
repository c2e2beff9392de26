"""Train BPE and Unigram vocabularies from word counts, deterministic to the byte."""

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from transformer.core.errors import UserError
from transformer.data.text import cut_words
from transformer.data.vocabulary import BYTES, SPACE, WORD_SPECIALS, Vocabulary, lossless, prepare_text
from transformer.data.vocabulary_training import count_spaced
from transformer.data.workers import OrderedMap

_AT_A_TIME = 1000  # copies of a word passed to the trainer together
_WORDS_A_LINE, _LONGEST_WORD = 20, 60  # of lines with several words: words per line, maximum bytes per word
_UNTRAINABLE = frozenset("\0\t\n\r\u2585")  # the sentencepiece trainer splits words at these, or skips them


class Words(NamedTuple):
    """Training data of a vocabulary."""

    counts: dict[str, int]
    """Word counts in alphabetical order. Words include their leading ▁, and are cut at rare characters or if long."""
    alphabet: list[str]
    """All characters that are not rare, ordered by code point."""


def train_bpe(
    texts: Iterable[str], *, min_frequency: int, max_size: int, byte_fallback: bool, ordered_map: OrderedMap = map
) -> Vocabulary:
    """Train byte-pair encoding with at most `max_size` entries (Sennrich, Haddow and Birch 2016, section 3.2).

    Characters and pairs to merge that are rarer than `min_frequency` are left out. With `byte_fallback`, 256 byte
    pieces spell the characters that are left out or unseen. Raises UserError when `max_size` has no room for the
    characters.
    """
    words = count_words(texts, min_frequency=min_frequency, ordered_map=ordered_map)
    fixed = _fixed_entries(byte_fallback=byte_fallback)
    trainer = trainers.BpeTrainer(
        vocab_size=_room(words, fixed, max_size) + len(words.alphabet),
        min_frequency=min_frequency,
        initial_alphabet=words.alphabet,
        show_progress=False,
    )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    tokenizer.train_from_iterator(_copies(words.counts), trainer)
    merges = [(left, right) for left, right in json.loads(tokenizer.to_str())["model"]["merges"]]
    pieces = dict.fromkeys((*fixed, *words.alphabet, *(left + right for left, right in merges)))
    entries = {piece: index for index, piece in enumerate(pieces)}
    model = models.BPE(entries, merges, unk_token=WORD_SPECIALS.unknown, byte_fallback=byte_fallback)
    return Vocabulary(lossless(model))


def train_unigram(
    texts: Iterable[str], *, min_frequency: int, max_size: int, byte_fallback: bool, ordered_map: OrderedMap = map
) -> Vocabulary:
    """Train a unigram language model of at most `max_size` pieces (Kudo 2018, section 3.2), with sentencepiece.

    Characters rarer than `min_frequency` are left out, to be spelled in bytes or unknown. The tokenizers library's own
    trainer sums in the order of a randomly seeded hash map, so its pieces differ between processes. Raises UserError
    when `max_size` has no room for the characters.
    """
    words = count_words(texts, min_frequency=min_frequency, ordered_map=ordered_map)
    fixed = _fixed_entries(byte_fallback=byte_fallback)
    scores = _unigram_scores(words, _room(words, fixed, max_size) + len(words.alphabet))
    entries = [(piece, 0.0) for piece in fixed] + list(scores.items())
    unknown = fixed.index(WORD_SPECIALS.unknown)
    return Vocabulary(lossless(models.Unigram(entries, unk_id=unknown, byte_fallback=byte_fallback)))


def count_words(texts: Iterable[str], *, min_frequency: int, ordered_map: OrderedMap = map) -> Words:
    """Split texts into words as the vocabulary will, and count them; memory grows only with the distinct words."""
    words = _split(count_spaced(texts, ordered_map))
    characters: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            characters[character] += count
    alphabet = sorted(character for character, count in characters.items() if count >= min_frequency)
    rare = {ord(character): " " for character in characters.keys() - set(alphabet)}
    whole: Counter[str] = Counter()
    for word, count in words.items():
        for part in cut_words(word.translate(rare)).split():
            whole[part] += count
    return Words(dict(sorted(whole.items())), alphabet)


def _split(spaced: Counter[str]) -> Counter[str]:
    """Split into words. Splitting at spaces first, as here, gives the same words and saves much time."""
    tokenizer = Tokenizer(models.BPE())
    prepare_text(tokenizer)
    words: Counter[str] = Counter()
    for text, count in spaced.items():
        marked = tokenizer.normalizer.normalize_str(text) if text else SPACE
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(marked):
            words[word] += count
    return words


def _fixed_entries(*, byte_fallback: bool) -> list[str]:
    return [*WORD_SPECIALS, *(BYTES if byte_fallback else ())]


def _room(words: Words, fixed: list[str], max_size: int) -> int:
    """Return the number of multi-character pieces that fit."""
    room = max_size - len(fixed) - len(words.alphabet)
    if room < 0:
        raise UserError(
            f"vocab.max_size is {max_size}, but the special tokens, bytes and characters alone take"
            f" {max_size - room}: raise it, or raise vocab.min_frequency to leave out rare characters"
        )
    return room


def _copies(counts: dict[str, int]) -> Iterator[str]:
    for word, count in counts.items():
        for start in range(0, count, _AT_A_TIME):
            yield " ".join([word] * min(_AT_A_TIME, count - start))


def _unigram_scores(words: Words, size: int) -> dict[str, float]:
    """Return the log probabilities of at most `size` pieces, most probable first, including every character."""
    trainable = {word: count for word, count in words.counts.items() if _trainable(word)}
    skipped = sorted(set(words.alphabet) - set("".join(trainable)))
    scores = _by_sentencepiece(trainable, size - len(skipped)) if trainable else {}
    lowest = min(scores.values(), default=0.0)
    return scores | dict.fromkeys(skipped, lowest)


def _trainable(word: str) -> bool:
    return _UNTRAINABLE.isdisjoint(word)


def _weighted_lines(counts: dict[str, int]) -> Iterator[str]:
    """Yield lines with counts for the sentencepiece trainer: each word alone and, if repeated, once before a ▁.

    The trainer seeds its pieces with substrings that have at least two continuations, so a word that always ends its
    line, however frequent, would never become a piece: on Multi30k that costs a fifth more pieces per sentence.
    """
    inside = []
    for word, count in counts.items():
        if count > 1 and len(word.encode()) <= _LONGEST_WORD:
            inside.append(word)
            count -= 1
        yield f"{word}\t{count}"
    lines = [word for word in inside if word[0] != SPACE]
    spaced = [word for word in inside if word[0] == SPACE]
    lines += ["".join(spaced[start : start + _WORDS_A_LINE]) for start in range(0, len(spaced), _WORDS_A_LINE)]
    yield from (f"{line}{SPACE}\t1" for line in lines)


def _by_sentencepiece(counts: dict[str, int], size: int) -> dict[str, float]:
    import sentencepiece  # imported here: no other vocabulary needs it

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_weighted_lines(counts),
            input_format="tsv",
            model_writer=model,
            model_type="unigram",
            vocab_size=size + 1,  # sentencepiece counts its unknown token
            hard_vocab_limit=False,
            num_threads=1,  # more would sum in a different order
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            split_by_unicode_script=False,
            split_by_number=False,
            character_coverage=1.0,
            bos_id=-1,
            eos_id=-1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise UserError(f"the Unigram vocabulary cannot be trained: {' '.join(str(error).split())[:200]}") from error
    trained = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = (index for index in range(trained.get_piece_size()) if not trained.is_unknown(index))
    return {trained.id_to_piece(index): trained.get_score(index) for index in pieces}
