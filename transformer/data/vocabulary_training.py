"""Word vocabularies by frequency, and WordPiece vocabularies, trained here or given."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from tokenizers import Regex, Tokenizer, normalizers, trainers

from transformer.core.errors import UserError
from transformer.core.unchanged import hint_of_clone, refuse_outside_of_clone
from transformer.data.text import cut_words
from transformer.data.tokenization import PRETOKENIZERS, PreTokenizerParams, read_pretokenizers
from transformer.data.vocabulary import MASK, PREFIX, WORD_SPECIALS, WORDPIECE_SPECIALS, Vocabulary, wordpiece, words
from transformer.data.workers import OrderedMap, chunks

_MODELS = {"word": "WordLevel", "wordpiece": "WordPiece", "bpe": "BPE", "unigram": "Unigram"}


def built_vocabulary(folder: Path, side: str, kind: str, pretokenizer: PreTokenizerParams) -> Vocabulary:
    """Open a side's vocabulary. Raises UserError if the folder has none, or its texts were split differently.

    pretokenizer: how the texts to encode were split.
    """
    refuse_outside_of_clone(folder)
    path = folder / side / "tokenizer.json"
    if not path.is_file():
        raise UserError(
            f"no vocabulary at {path}: set vocab.path to what a task's build_vocab wrote, such as data/language/vocab"
            f"{hint_of_clone(folder)}"
        )
    vocabulary = Vocabulary.load(path)
    found = json.loads(vocabulary.tokenizer.to_str())["model"]["type"]
    if found != _MODELS[kind]:
        raise UserError(f"{path} is a {found} vocabulary, and vocab.kind is `{kind}`: set it to the kind of the other")
    if (folder / PRETOKENIZERS).is_file():
        their = read_pretokenizers(folder, side)[side]
        for name, own in pretokenizer:
            given = getattr(their, name)
            if own != given:
                raise UserError(
                    f"tokenize.{name} is {own}, but the texts of the vocabulary {folder} were split with {given}: set"
                    " it to this value"
                )
    return vocabulary


_CHUNK = 2000  # texts counted at a time


def count_spaced(texts: Iterable[str], ordered_map: OrderedMap = map) -> Counter[str]:
    """Count the words between spaces, in order of first occurrence."""
    total: Counter[str] = Counter()
    for counts in ordered_map(_counted, chunks(texts, _CHUNK)):
        total.update(counts)
    return total


def _counted(texts: list[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text.split(" "))
    return counts


_SHOWN = normalizers.Sequence(
    [normalizers.Replace(Regex(r"\p{C}"), ""), normalizers.BertNormalizer(lowercase=False, strip_accents=False)]
)

Texts = Callable[[], Iterator[str]]
"""Starts a fresh pass over the training texts."""


def word_vocabulary(
    texts: Iterable[str], *, min_frequency: int, max_size: int | None, ordered_map: OrderedMap = map
) -> Vocabulary:
    """Build a vocabulary of words (separated by spaces) seen at least `min_frequency` times, most frequent first.

    max_size: maximum number of entries, including the four special ones; None for no limit.
    """
    counts = count_spaced(texts, ordered_map)
    for reserved in (*WORD_SPECIALS, MASK, ""):
        counts.pop(reserved, None)
    ranked = sorted((word for word, count in counts.items() if count >= min_frequency), key=lambda w: (-counts[w], w))
    if max_size is not None:
        ranked = ranked[: max_size - len(WORD_SPECIALS)]
    entries = {word: index for index, word in enumerate((*WORD_SPECIALS, *ranked))}
    return Vocabulary(words(entries))


def train_wordpiece(texts: Texts, *, min_frequency: int, max_size: int, lowercase: bool) -> Vocabulary:
    """Train a WordPiece vocabulary of at most `max_size` entries with `tokenizers` (Schuster and Nakajima 2012).

    Characters without a glyph, such as the joiners of Persian, are kept if the texts have them.

    Its trainer numbers single characters in the order of a randomly seeded hash map, so two runs would differ. Passing
    all of them as special tokens fixes their numbers.
    """
    characters = sorted(set(chain.from_iterable(texts())))
    hidden = "".join(character for character in characters if not _SHOWN.normalize_str(character))
    tokenizer = wordpiece({}, lowercase=lowercase, trained=True, hidden=hidden)
    alphabet = _alphabet(tokenizer, characters)
    fixed = [*WORDPIECE_SPECIALS, MASK, *alphabet, *(PREFIX + character for character in alphabet)]
    if len(fixed) > max_size:
        raise UserError(
            f"vocab.max_size {max_size} is too small: special tokens and the texts' {len(alphabet)} characters, each as"
            f" the beginning of a word and within one, need {len(fixed)}: raise it, or choose another vocab.kind"
        )
    trainer = trainers.WordPieceTrainer(
        vocab_size=max_size, min_frequency=min_frequency, special_tokens=fixed, show_progress=False
    )
    tokenizer.train_from_iterator(map(cut_words, texts()), trainer)
    return Vocabulary(wordpiece(tokenizer.get_vocab(), lowercase=lowercase, trained=True, hidden=hidden))


_JOINED = re.compile("[\u0600-\u1aff][\u200c\u200d]")  # Arabic, Indic and other scripts that a joiner belongs to
_FEW_JOINED = 0.01  # of the texts


def require_joiners(vocabulary: Vocabulary, texts: Iterable[str]) -> None:
    """Raise UserError if the texts' script needs the joiners U+200C and U+200D, and the vocabulary drops them."""
    joined = [found[0] if (found := _JOINED.search(text)) else "" for text in texts]
    lost = sum(vocabulary.tokenizer.normalizer.normalize_str(pair) != pair for pair in joined)
    if lost > _FEW_JOINED * len(joined):
        raise UserError(
            f"{lost:,} of {len(joined):,} training texts are spelt with joiners (U+200C, U+200D), and this vocabulary"
            " drops them: set vocab.source to `trained`"
        )


def given_wordpiece(path: Path, *, lowercase: bool) -> Vocabulary:
    """Read a WordPiece vocabulary from a vocab.txt in BERT's format: one piece per line, numbered from 0.

    Raises UserError when the file is missing, not UTF-8, names a piece twice or lacks a special token.
    """
    try:
        pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the vocabulary {path} cannot be read ({error}): use a vocab.txt in UTF-8") from error
    pieces = [piece.removesuffix("\r") for piece in pieces]
    if repeated := next((piece for piece, count in Counter(pieces).items() if count > 1), None):
        raise UserError(f"the vocabulary {path} names {repeated!r} more than once: each line must be a new piece")
    if absent := [special for special in WORDPIECE_SPECIALS if special not in pieces]:
        raise UserError(f"the vocabulary {path} lacks {', '.join(absent)}: add each on its own line")
    entries = {piece: index for index, piece in enumerate(pieces)}
    return Vocabulary(wordpiece(entries, lowercase=lowercase, trained=False))


def _alphabet(tokenizer: Tokenizer, characters: Iterable[str]) -> list[str]:
    words = tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str("".join(characters)))
    return sorted({character for word, _ in words for character in word})
