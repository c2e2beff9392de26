"""The build_vocab stage: one vocabulary per side, the encoded store, and statistics."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from transformer.core.errors import UserError
from transformer.core.files import read_rows, write_json
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.core.unchanged import hint_of_clone, refuse_outside_of_clone
from transformer.core.validation import Runtime, Section
from transformer.data.store import ColumnWriter, Sequences, write_labels
from transformer.data.subwords import train_bpe, train_unigram
from transformer.data.text import LONGEST_WORD
from transformer.data.tokenization import PreTokenizerParams, read_pretokenizers
from transformer.data.vocabulary import Vocabulary, read_vocabularies, write_bpe_dropout
from transformer.data.vocabulary_training import (
    built_vocabulary,
    given_wordpiece,
    require_joiners,
    train_wordpiece,
    word_vocabulary,
)
from transformer.data.workers import OrderedMap, chunks, worker_processes

_BUILT = re.compile(r"data/[^/]+/vocab/?")
_BYTES = 260  # with the four special tokens


class Kind(NamedTuple):
    """The capabilities of a kind of vocabulary."""

    given: bool
    """It may be imported."""
    unlimited: bool
    """Its training terminates without `max_size`."""
    bytes: bool
    """It supports byte fallback for unknown characters."""
    dropout: bool
    """It supports BPE-dropout."""


KINDS = {
    "word": Kind(given=False, unlimited=True, bytes=False, dropout=False),
    "wordpiece": Kind(given=True, unlimited=False, bytes=False, dropout=False),
    "bpe": Kind(given=False, unlimited=False, bytes=True, dropout=True),
    "unigram": Kind(given=False, unlimited=False, bytes=True, dropout=False),
}


class VocabParams(Section):
    """`vocab` of a task."""

    kind: Literal["word", "wordpiece", "bpe", "unigram"]
    """`bpe` and `unigram` keep spaces, so decoding restores the exact text (Sennrich et al. 2016; Kudo 2018)."""
    source: Literal["trained", "path", "hub", "built"]
    """Trained on the training split; an existing WordPiece vocab.txt from a local path or the Hub; or `built`: what
    another task's build_vocab wrote into the folder `path`."""
    joint: bool
    """One vocabulary for all sides, trained on the text of all."""
    min_frequency: int = Field(ge=1)
    """Minimum frequency in the training split of words (`word`), of pairs to merge (`wordpiece`, `bpe`), and of single
    characters (`bpe`, `unigram`)."""
    max_size: int | None = Field(ge=8)
    """Maximum number of entries, including special tokens and bytes; null for no limit (words only)."""
    byte_fallback: bool
    """Spell unknown characters in UTF-8, with 256 byte pieces."""
    bpe_dropout: float = Field(ge=0, lt=1)
    """The probability of dropping a merge, each time that training reads a word (Provilkov et al. 2020)."""
    path: str
    """A vocab.txt or a folder that contains one; or, `built`, a folder such as data/language/vocab. DVC tracks it as a
    dependency."""
    repository: str
    """The model's name on the Hub whose vocab.txt is taken."""
    revision: str = Field(pattern=r"^[0-9a-f]{40}$")
    """The commit of that repository: unlike a branch or a tag it cannot move."""

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        kind, trained = KINDS[self.kind], self.source == "trained"
        if not (trained or kind.given or self.source == "built"):
            raise ValueError(f"vocab.source must be `trained` for kind `{self.kind}`; only `wordpiece` can be given")
        if self.source != "built" and _BUILT.fullmatch(self.path):
            raise ValueError(
                f"vocab.path is {self.path}, which only vocab.source `built` reads, and DVC would run that task first:"
                " set it to data/local/vocabulary"
            )
        if trained and self.max_size is None and not kind.unlimited:
            raise ValueError(f"vocab.max_size must be a number for a trained `{self.kind}` vocabulary")
        if self.byte_fallback and not kind.bytes:
            raise ValueError(f"vocab.byte_fallback must be false for kind `{self.kind}`: it needs `bpe` or `unigram`")
        if self.byte_fallback and self.max_size is not None and self.max_size <= _BYTES:
            raise ValueError(f"vocab.max_size must be over {_BYTES} with vocab.byte_fallback, whose bytes take 256")
        if self.bpe_dropout and not kind.dropout:
            raise ValueError(f"vocab.bpe_dropout must be 0 for kind `{self.kind}`: it needs `bpe`")
        return self


_CHUNK = 2000  # texts encoded at a time
_UNKNOWN = 0.02  # of the training tokens; of IMDB's none is unknown to BERT's vocabulary
_UNKNOWN_WORDS = 0.1  # to a vocabulary of whole words; of IMDB's, 3 % are to its own 20,000 most frequent
_QUANTILES = (0.5, 0.95, 0.99, 1.0)


def build(
    paths: Paths,
    params: VocabParams,
    runtime: Runtime,
    *,
    labelled: bool,
    observer: Observer,
) -> dict[str, float]:
    """Write `<side>/tokenizer.json` under `paths.vocab`, the store and the statistics.

    Returns the vocabulary sizes. Raises UserError when a given vocabulary or the tokens cannot be read.
    """
    tokens, vocab, encoded = paths.tokens, paths.vocab, paths.encoded
    splits = sorted(path.stem for path in tokens.glob("*.jsonl"))
    metrics: dict[str, dict[str, int | dict[str, float]]] = {}
    vocabularies = _vocabularies(tokens, params, runtime, observer)
    for side, vocabulary in vocabularies.items():
        vocabulary.save(vocab / side / "tokenizer.json")
        with worker_processes(runtime, initializer=_open, arguments=(vocab, side)) as ordered_map:
            metrics[side] = {"size": vocabulary.size} | {
                split: _encode_split(tokens, encoded, split, side, vocabulary, ordered_map, observer)
                for split in splits
            }
        if line := _unfamiliar(metrics[side].get("train"), side, params):
            observer.say(line)
    write_bpe_dropout(vocab, params.bpe_dropout)
    if labelled:
        for split in splits:
            write_labels(encoded / split, (row["label"] for row in read_rows(tokens / f"{split}.jsonl")))
    write_json(paths.statistics, metrics)
    return {f"{side}_size": float(vocabulary.size) for side, vocabulary in vocabularies.items()}


def _unfamiliar(counts: int | dict[str, float] | None, side: str, params: VocabParams) -> str | None:
    """Return a warning if a vocabulary of fixed words lacks more of the tokens than it should; else None."""
    rate = counts["unknown_rate"] if isinstance(counts, dict) else 0.0
    trained = params.source == "trained"
    if rate <= (_UNKNOWN_WORDS if params.kind == "word" else _UNKNOWN) or (trained and params.kind != "wordpiece"):
        return None
    reason = (
        f"{LONGEST_WORD} characters without a space are one word, and an unknown one if they are more: set vocab.kind"
        " to `bpe`"
        if trained
        else "which is not of these texts: set vocab.source to `trained` (and model.init, where there is one, to"
        " `random`)"
    )
    return f"warning: {rate:.1%} of the tokens of {side} in train are unknown to this vocabulary, {reason}"


def _vocabularies(tokens: Path, params: VocabParams, runtime: Runtime, observer: Observer) -> dict[str, Vocabulary]:
    """Make one vocabulary per side; a joint one is the same for all."""
    pretokenizers = read_pretokenizers(tokens)
    groups = [tuple(pretokenizers)] if params.joint else [(side,) for side in pretokenizers]
    vocabularies: dict[str, Vocabulary] = {}
    for sides in groups:
        observer.say(f"{' and '.join(sides)}: {params.kind} vocabulary")
        if params.source == "built":
            vocabulary = built_vocabulary(Path(params.path), sides[0], params.kind, pretokenizers[sides[0]])
        else:
            with worker_processes(runtime, initializer=_nothing, arguments=()) as ordered_map:
                vocabulary = _vocabulary(tokens / "train.jsonl", sides, params, pretokenizers, ordered_map)
        if params.source != "trained" and params.kind == "wordpiece":
            require_joiners(vocabulary, _texts(tokens / "train.jsonl", sides))
        vocabularies |= dict.fromkeys(sides, vocabulary)
    return vocabularies


def _vocabulary(
    train: Path,
    sides: Sequence[str],
    params: VocabParams,
    pretokenizers: Mapping[str, PreTokenizerParams],
    ordered_map: OrderedMap,
) -> Vocabulary:
    texts = partial(_texts, train, sides)
    lowercase, limit, rare = pretokenizers[sides[0]].lowercase, params.max_size or 0, params.min_frequency
    if params.source != "trained":
        return given_wordpiece(_given(params), lowercase=lowercase)
    if params.kind == "word":
        return word_vocabulary(texts(), min_frequency=rare, max_size=params.max_size, ordered_map=ordered_map)
    if params.kind == "wordpiece":
        return train_wordpiece(texts, min_frequency=rare, max_size=limit, lowercase=lowercase)
    train_lossless = train_bpe if params.kind == "bpe" else train_unigram
    return train_lossless(
        texts(), min_frequency=rare, max_size=limit, byte_fallback=params.byte_fallback, ordered_map=ordered_map
    )


def _texts(train: Path, sides: Sequence[str]) -> Iterator[str]:
    return chain.from_iterable((row[side] for row in read_rows(train)) for side in sides)


def _given(params: VocabParams) -> Path:
    if params.source == "hub":
        return vocabulary_from_hub(params.repository, params.revision)
    path = Path(params.path)
    refuse_outside_of_clone(path)
    path = path / "vocab.txt" if path.is_dir() else path
    if not path.is_file():
        hint = hint_of_clone(path)
        raise UserError(
            f"no vocabulary at {path}: put a vocab.txt there, or set vocab.source to `hub` or `trained`{hint}"
        )
    return path


def _encode_split(
    tokens: Path,
    encoded: Path,
    split: str,
    side: str,
    vocabulary: Vocabulary,
    ordered_map: OrderedMap,
    observer: Observer,
) -> dict[str, float]:
    unknown = words = 0
    lengths: Counter[int] = Counter()

    def parts() -> Iterator[Sequences]:
        nonlocal unknown, words
        rows = observer.progress(read_rows(tokens / f"{split}.jsonl"), total=None, what=f"encode {split} {side}")
        for part in ordered_map(_encoded, chunks((row[side] for row in rows), _CHUNK)):
            unknown += int(np.isin(part.ids, vocabulary.unfamiliar_ids).sum())
            words += len(part.ids) - 2 * len(part.lengths)
            lengths.update(part.lengths.tolist())
            yield part

    ColumnWriter(encoded / split, side, vocabulary.size).write(parts())
    rate = round(unknown / max(words, 1), 6)
    return {"unknown_rate": rate, "coverage": round(1 - rate, 6), "tokens": words} | _quantiles(lengths)


_opened: dict[str, Vocabulary] = {}
"""Vocabularies opened by this process."""


def _open(vocab: Path, side: str) -> None:
    _opened["vocabulary"] = read_vocabularies(vocab, side)[side]


def _encoded(texts: list[str]) -> Sequences:
    return _opened["vocabulary"].encoded(texts)


def _nothing() -> None:
    """Initialize nothing, for counting."""


def _quantiles(lengths: Counter[int]) -> dict[str, float]:
    """Compute quantiles of the lengths; lengths: the frequency of each length."""
    if not lengths:
        return {}
    values = np.array(sorted(lengths))
    ends = np.cumsum([lengths[value] for value in values.tolist()])
    ranks = np.ceil(np.multiply(_QUANTILES, ends[-1] - 1))
    found: Sequence[float] = values[np.searchsorted(ends, ranks, side="right")].tolist()
    return {f"length_p{round(100 * q)}": value for q, value in zip(_QUANTILES, found, strict=True)}


def vocabulary_from_hub(repository: str, revision: str) -> Path:
    """Download (or find in the Hub's local cache) `vocab.txt` of a model repository at a revision.

    Raises UserError when the Hub cannot be reached or has no such file.
    """
    import httpx  # the Hub's client and its transport are imported here: only this kind needs them
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(repository, "vocab.txt", revision=revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError, httpx.HTTPError) as error:
        raise UserError(
            f"cannot get vocab.txt of {repository} at {revision[:12]} from the Hub ({type(error).__name__}):"
            " set vocab.source to `path` and vocab.path to a local vocab.txt, or check the network and HF_ENDPOINT"
        ) from error
