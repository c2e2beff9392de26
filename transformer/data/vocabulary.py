"""One interface to every vocabulary, stored as a tokenizer.json of the `tokenizers` library."""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from transformer.core.errors import UserError
from transformer.core.files import read_json, reading, write_json
from transformer.data.store import Sequences
from transformer.data.text import LONGEST_WORD

Ids = NDArray[np.int64]
_SAMPLING = "sampling.json"
_FRAME = (0,)  # a place for the first id of a text, and for the last

_INSIDE = re.compile(r"##|['’/%-]|n['’]t$")  # continues a word of WordPiece, or of spaCy
_OPENING = re.compile(r"[(\[{«„‘「『/-]$")
_CLOSING = re.compile(r"[.,;:!?…。！？、，；：)\]}»”’」』]")
_FULL_STOP = re.compile(r"[.!?…。！？।؟][\"'”’»)\]」』]*$")
_WIDE_FULL_STOP = re.compile(r"[。！？][”’」』]*$")  # no space follows


class Specials(NamedTuple):
    """The special tokens of a vocabulary, by role."""

    pad: str
    unknown: str
    begin: str
    end: str


WORD_SPECIALS = Specials("<pad>", "<unk>", "<bos>", "<eos>")
WORDPIECE_SPECIALS = Specials("[PAD]", "[UNK]", "[CLS]", "[SEP]")
SPACE = "\u2581"
"""▁, which represents a space in the pieces of lossless vocabularies."""
PREFIX = "##"
"""Begins the WordPiece pieces within a word."""
MASK = "[MASK]"
"""BERT's fifth special token; language models use it, and trained vocabularies look like given ones."""
_HIDDEN = r"[^\P{C}"
"""Begins the pattern of characters without a glyph, but for some."""
BYTES = tuple(f"<0x{value:02X}>" for value in range(256))
"""The UTF-8 byte pieces that spell characters unknown to a vocabulary with byte fallback."""

# A text may contain the character ▁ itself, so it is escaped with noncharacters, which Unicode reserves for internal
# use. They are escaped too, so that even a text that contains them is restored exactly.
_LOW_LINE, _ESCAPE = "\ufdd0", "\ufdd1"
_ESCAPES = ((_ESCAPE, f"{_ESCAPE}1"), (_LOW_LINE, f"{_ESCAPE}0"), (SPACE, _LOW_LINE))

# Letters with their marks, numbers, and everything else are separate pieces, each with the space before it: "dog" is
# the same piece in "dog", "dog." and "dog's", as in SentencePiece, whose pieces do not mix scripts. No piece can spell
# a special token or the name of a byte, since these mix classes.
_WORDS = Regex(rf"{SPACE}?(?:[\p{{L}}\p{{M}}]+|\p{{N}}+|[^\p{{L}}\p{{M}}\p{{N}}{SPACE}]+)|{SPACE}")


class Vocabulary:
    """Text to ids and back. Every encoded text begins with `begin_id` and ends with `end_id`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Raises UserError when the tokenizer has neither known set of special tokens, or its ids have gaps."""
        self.tokenizer = tokenizer
        self.specials = _specials_of(tokenizer)
        entries = tokenizer.get_vocab()
        self.pad_id, self.unknown_id, self.begin_id, self.end_id = (entries[special] for special in self.specials)
        self.size: int = tokenizer.get_vocab_size()
        if {*entries.values()} != {*range(self.size)}:
            raise UserError(f"the vocabulary's {self.size} entries are not numbered from 0 to {self.size - 1}")
        # A text that spells out a special token is still text: it must not end a sentence or act as padding.
        tokenizer.encode_special_tokens = True
        self._reserved = np.array([self.pad_id, self.begin_id, self.end_id])
        has_bytes = all(piece in entries for piece in BYTES)
        self.unfamiliar_ids = np.array([self.unknown_id, *(entries[piece] for piece in BYTES if has_bytes)])
        """Ids that encode characters missing from the vocabulary: the unknown token and the byte pieces."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Open a tokenizer.json. Raises UserError when it is missing or not as `save` wrote it.

        Only its entries are used, with the components of this module: a file's own could be of any size, or never end.
        """
        with reading(path):
            text = path.read_bytes()
        try:
            content = json.loads(text)
            tokenizer = _with_own_components(content)
            if json.loads(tokenizer.to_str()) != content:
                raise ValueError("it has components that no vocabulary of this project has")
            return cls(tokenizer)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the tokenizers library raises bare Exception, and panics as BaseException
            raise UserError(f"{path} is not a valid tokenizer.json: {' '.join(str(error).split())[:200]}") from error

    def save(self, path: Path) -> None:
        """Write a tokenizer.json with sorted keys, atomically."""
        write_json(path, json.loads(self.tokenizer.to_str()))

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Return the ids of each text, between `begin_id` and `end_id`."""
        return self.encoded(texts).split()

    def encoded(self, texts: Sequence[str]) -> Sequences:
        """Encode texts as concatenated `Sequences`."""
        found = [each.ids for each in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
        lengths = np.array([len(each) + 2 for each in found], dtype=np.int64)
        ends = np.cumsum(lengths)
        framed = chain.from_iterable(chain(_FRAME, each, _FRAME) for each in found)
        ids = np.fromiter(framed, dtype=np.int64, count=int(lengths.sum()))
        ids[np.isin(ids, self._reserved)] = self.unknown_id
        ids[ends - lengths], ids[ends - 1] = self.begin_id, self.end_id
        return Sequences(ids, lengths)

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to text, without special tokens except the unknown one."""
        reserved = {self.pad_id, self.begin_id, self.end_id}
        text: str = self.tokenizer.decode([i for i in ids if i not in reserved], skip_special_tokens=False)
        return text

    def breaks(self, ids: Ids) -> NDArray[np.int64]:
        """Rank the places in ids (N,) of a text, (N + 1,): 2 at the end of a sentence, 1 before a word, else 0.

        Place k is before the k-th id. A script that does not separate words has sentences only.
        """
        entries = self.entries(ids)
        spaced = SPACE in self.tokenizer.get_vocab()
        ranks = np.zeros(len(ids) + 1, dtype=np.int64)
        for place, (before, after) in enumerate(pairwise(entries), start=1):
            word = after.startswith(SPACE) if spaced else not (_INSIDE.match(after) or _OPENING.search(before))
            ended = _FULL_STOP.search(before) if word else _WIDE_FULL_STOP.search(before)
            ranks[place] = 0 if _CLOSING.match(after.removeprefix(SPACE)) else 2 if ended else int(word)
        return ranks

    def unknown_words(self, text: str, ids: Ids) -> dict[str, None]:
        """Return what ids, an encoded text or its beginning, stand for as unknown: words, or characters of subwords."""
        places = np.flatnonzero(ids[1:-1] == self.unknown_id)
        if not len(places):
            return {}
        offsets = self.tokenizer.encode(text, add_special_tokens=False).offsets
        found = dict.fromkeys(text[slice(*offsets[place])].strip(f" {SPACE}") for place in places)
        found.pop("", None)  # spaces
        return found

    def entries(self, ids: Iterable[int]) -> list[str]:
        """Return the vocabulary entry of each id, including special tokens."""
        return [str(self.tokenizer.id_to_token(int(number))) for number in ids]


def words(entries: dict[str, int]) -> Tokenizer:
    """Make a tokenizer of whole words, which spaces separate. entries: numbers by word, with special tokens."""
    tokenizer = Tokenizer(models.WordLevel(entries, unk_token=WORD_SPECIALS.unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    tokenizer.add_special_tokens(list(WORD_SPECIALS))
    return tokenizer


def wordpiece(entries: dict[str, int], *, lowercase: bool, trained: bool, hidden: str = "") -> Tokenizer:
    """Make a tokenizer like BERT's. entries: numbers by piece, with any special tokens.

    trained: from texts, not given. Then it keeps accents when lowercasing, which texts in other languages need, and
    words are as long as those that the trainer learns from: scripts without spaces have long ones.
    hidden: characters without a glyph that are kept, such as joiners; BERT drops all of them.
    """
    unknown = WORDPIECE_SPECIALS.unknown
    tokenizer = Tokenizer(models.WordPiece(entries, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    if trained:
        tokenizer.model = models.WordPiece(entries, unk_token=unknown, max_input_chars_per_word=LONGEST_WORD)
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=False)
    if hidden:
        others = normalizers.Replace(Regex(rf"{_HIDDEN}{re.escape(hidden)}]"), "")
        kept = normalizers.BertNormalizer(clean_text=False, lowercase=lowercase, strip_accents=False)
        tokenizer.normalizer = normalizers.Sequence([others, kept])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=PREFIX)
    tokenizer.add_special_tokens([special for special in (*WORDPIECE_SPECIALS, MASK) if special in entries])
    return tokenizer


def lossless(model: models.Model) -> Tokenizer:
    """Make a tokenizer around a BPE or Unigram model that contains the four special tokens.

    decode(encode(text)) restores any text whose characters the model knows; with byte pieces, any text.
    """
    tokenizer = Tokenizer(model)
    prepare_text(tokenizer)
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1, right=0),
            *(decoders.Replace(escaped, character) for character, escaped in reversed(_ESCAPES)),
        ]
    )
    tokenizer.add_special_tokens(list(WORD_SPECIALS))
    return tokenizer


def prepare_text(tokenizer: Tokenizer) -> None:
    """Set the normalizer and the word splitter of a lossless tokenizer."""
    tokenizer.normalizer = normalizers.Sequence(
        [
            *(normalizers.Replace(character, escaped) for character, escaped in _ESCAPES),
            normalizers.Prepend(SPACE),
            normalizers.Replace(" ", SPACE),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(_WORDS, "isolated")


def _with_own_components(content: dict[str, Any]) -> Tokenizer:
    """Make a tokenizer of the entries in a tokenizer.json."""
    model, normalizer = content["model"], content["normalizer"]
    kind, entries = model["type"], model["vocab"]
    if kind == "WordLevel":
        return words(entries)
    if kind == "WordPiece":
        hidden = ""
        if normalizer["type"] == "Sequence":
            others, normalizer = normalizer["normalizers"]
            hidden = re.sub(r"\\(.)", r"\1", others["pattern"]["Regex"].removeprefix(_HIDDEN)[:-1], flags=re.DOTALL)
        trained = normalizer["strip_accents"] is not None
        return wordpiece(entries, lowercase=normalizer["lowercase"], trained=trained, hidden=hidden)
    fallback = model["byte_fallback"]
    if kind == "Unigram":
        pieces = [(piece, score) for piece, score in entries]
        return lossless(models.Unigram(pieces, unk_id=model["unk_id"], byte_fallback=fallback))
    merges = [(left, right) for left, right in model["merges"]]
    return lossless(models.BPE(entries, merges, unk_token=WORD_SPECIALS.unknown, byte_fallback=fallback))


def read_vocabularies(folder: Path, *sides: str) -> dict[str, Vocabulary]:
    """Read the vocabularies in a folder, `<side>/tokenizer.json`, by side; by default all of them.

    Raises UserError when one is missing or invalid.
    """
    wanted = sides or sorted(path.parent.name for path in folder.glob("*/tokenizer.json"))
    return {side: Vocabulary.load(folder / side / "tokenizer.json") for side in wanted}


def require_size(vocabulary: Vocabulary, size: int, where: Path) -> None:
    """Raise UserError if a model with `size` embeddings was not trained with this vocabulary."""
    if vocabulary.size != size:
        raise UserError(
            f"{where}: the vocabulary has {vocabulary.size} tokens, but the model {size}: run `dvc repro`, or export"
            " again"
        )


def write_bpe_dropout(folder: Path, dropout: float) -> None:
    """Record the merge dropout probability for training next to the vocabularies."""
    write_json(folder / _SAMPLING, {"bpe_dropout": dropout})


def read_bpe_dropout(folder: Path) -> float:
    """Read the BPE-dropout probability recorded next to the vocabularies."""
    return float(read_json(folder / _SAMPLING)["bpe_dropout"])


def clip(ids: Ids, max_length: int) -> Ids:
    """Truncate to `max_length` ids, keeping the last id, the end token."""
    return ids if len(ids) <= max_length else np.concatenate((ids[: max_length - 1], ids[-1:]))


def _specials_of(tokenizer: Tokenizer) -> Specials:
    for specials in (WORD_SPECIALS, WORDPIECE_SPECIALS):
        if all(tokenizer.token_to_id(special) is not None for special in specials):
            return specials
    raise UserError(f"the vocabulary has neither {WORD_SPECIALS} nor {WORDPIECE_SPECIALS} as special tokens")
