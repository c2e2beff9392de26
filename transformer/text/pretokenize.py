"""Pre-tokenizers: raw text to tokens separated by single spaces."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.core.schema import Section
from transformer.core.validation import validate
from transformer.text.clean import cut_words

PRETOKENIZERS = "pretokenizer.json"
SPACE = "\u2581"
"""Replaces a space inside a token: spaCy makes a second space a token, and tokens are separated by spaces."""


class PreTokenizerParams(Section):
    """How one side's raw text is split."""

    kind: Literal["spacy", "whitespace", "none"]
    """spaCy's rule-based tokenizer for the language (words longer than 500 characters are split), white space, or raw
    text for subword vocabularies."""
    language: str | None
    """The language code for spaCy's rules, such as `de`; may be null for the other kinds."""
    lowercase: bool
    """Lowercase the text, so that answers are lowercase as well."""

    @model_validator(mode="after")
    def _spacy_needs_a_language(self) -> Self:
        if self.kind == "spacy" and not self.language:
            raise ValueError("kind `spacy` needs a language, such as `de`")
        return self


def read_pretokenizers(folder: Path, *sides: str) -> dict[str, PreTokenizerParams]:
    """The pre-tokenizer parameters by side, from `pretokenizer.json` of the tokenize stage or a bundle.

    sides: by default all. Raises UserError when the file is missing or invalid, or lacks a side.
    """
    path = folder / PRETOKENIZERS
    content = read_json(path)
    if not isinstance(content, dict) or (missing := [side for side in sides if side not in content]):
        lacking = f" (`{missing[0]}` is missing)" if isinstance(content, dict) else ""
        raise UserError(f"{path} does not say how texts are split{lacking}: run `dvc repro` to make it again")
    return {
        side: validate(PreTokenizerParams, content[side], where=path, prefix=side) for side in sides or sorted(content)
    }


class PreTokenizer:
    """Splits text as `params` say. Splitting never changes, adds or drops a character other than spaces."""

    def __init__(self, params: PreTokenizerParams) -> None:
        """Raises UserError when spaCy has no rules for the language."""
        self.params = params
        self._split = _splitter(params)

    def __call__(self, texts: list[str]) -> list[str]:
        """One string per text, its tokens separated by single spaces; with kind `none`, the text itself."""
        split = [self._split(text) for text in texts]
        return [text.lower() for text in split] if self.params.lowercase else split

    def __reduce__(self) -> tuple[type[Self], tuple[PreTokenizerParams]]:
        """Pickle only the parameters: spaCy's tokenizer is recreated on unpickling."""
        return type(self), (self.params,)


def _splitter(params: PreTokenizerParams) -> Callable[[str], str]:
    if params.kind == "none":
        return str
    if params.kind == "whitespace":
        return lambda text: " ".join(text.split())
    tokenizer = _spacy_tokenizer(params.language or "")
    return lambda text: " ".join(token.text.replace(" ", SPACE) for token in tokenizer(cut_words(text)))


def _spacy_tokenizer(language: str) -> Any:
    import spacy  # imported here: the other kinds do not need to wait a second for it

    try:
        return spacy.blank(language).tokenizer
    except (ImportError, OSError) as error:
        raise UserError(
            f"spaCy has no tokenizer for the language `{language}`: {str(error).splitlines()[0]}"
        ) from error
