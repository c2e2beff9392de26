"""The parameters of a vocabulary."""

from typing import Literal, Self

from pydantic import Field, model_validator

from transformer.params.schema import Section


class VocabParams(Section):
    """`vocab` of a task."""

    kind: Literal["word", "wordpiece"]
    source: Literal["trained", "path", "hub"]
    """Trained on the training split, or a given vocab.txt of WordPiece from a local path or the Hub."""
    min_frequency: int = Field(ge=1)
    """Words (or, for WordPiece, pairs to merge) that are rarer in the training split are left out."""
    max_size: int | None = Field(ge=8)
    """Most entries, special tokens included; null for no limit (words only)."""
    path: str
    """A vocab.txt or a folder that holds one. DVC watches it."""
    repository: str
    revision: str
    """The Hub's model repository that holds a vocab.txt, and the commit to take it from."""

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind == "word" and self.source != "trained":
            raise ValueError("vocab.source must be `trained` for kind `word`; only `wordpiece` can be given")
        if self.kind == "wordpiece" and self.source == "trained" and self.max_size is None:
            raise ValueError("vocab.max_size must be a number for a trained `wordpiece` vocabulary")
        return self
