"""The parameters of a vocabulary."""

import re
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from transformer.core.schema import Section

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
