"""Pre-tokenizers: raw text to tokens separated by one space."""

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
"""Stands for a space inside a token: spaCy makes a token of a second space, and tokens are separated by spaces."""


class PreTokenizerParams(Section):
    """How one side's raw text is split."""

    kind: Literal["spacy", "whitespace", "none"]
    """spaCy's rule tokenizer of the language (words longer than 500 characters are cut there), white space, or raw text
    for subword vocabularies."""
    language: str | None
    """The language code of spaCy's rules, such as `de`; null for the other kinds is fine."""
    lowercase: bool

    @model_validator(mode="after")
    def _spacy_needs_a_language(self) -> Self:
        if self.kind == "spacy" and not self.language:
            raise ValueError("kind `spacy` needs a language, such as `de`")
        return self


def read_pretokenizers(folder: Path, *sides: str) -> dict[str, PreTokenizerParams]:
    """What the tokenize stage did, by side: `pretokenizer.json` of its output, or of a bundle; all sides by default.

    Raises UserError when it is missing or broken, or lacks a side.
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
    """Splits text as `params` say. Splitting never changes, adds or drops a character that is no space."""

    def __init__(self, params: PreTokenizerParams) -> None:
        """Raises UserError when spaCy has no rules for the language."""
        self.params = params
        self._split = _splitter(params)

    def __call__(self, texts: list[str]) -> list[str]:
        """One string a text, its tokens separated by single spaces; with kind `none`, the text itself."""
        split = [self._split(text) for text in texts]
        return [text.lower() for text in split] if self.params.lowercase else split

    def __reduce__(self) -> tuple[type[Self], tuple[PreTokenizerParams]]:
        """Pickled as its parameters: spaCy's tokenizer is made again where it is unpickled."""
        return type(self), (self.params,)


def _splitter(params: PreTokenizerParams) -> Callable[[str], str]:
    if params.kind == "none":
        return str
    if params.kind == "whitespace":
        return lambda text: " ".join(text.split())
    tokenizer = _spacy_tokenizer(params.language or "")
    return lambda text: " ".join(token.text.replace(" ", SPACE) for token in tokenizer(cut_words(text)))


def _spacy_tokenizer(language: str) -> Any:
    import spacy  # here, since it takes a second that the other kinds need not wait

    try:
        return spacy.blank(language).tokenizer
    except (ImportError, OSError) as error:
        raise UserError(
            f"spaCy has no tokenizer for the language `{language}`: {str(error).splitlines()[0]}"
        ) from error
