"""Pre-tokenizers: raw text to tokens separated by single spaces."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from transformer.core.errors import UserError
from transformer.core.files import read_json, write_json
from transformer.core.observer import check_deadline
from transformer.core.validation import Section, validate
from transformer.data.spacy_rules import RuleTokenizer, rules_of
from transformer.data.text import composed, cut_words, lowercased

PRETOKENIZERS = "pretokenizer.json"
RULES = "rules.json"
_BREAKS = re.compile(r"(?<!\s)\s*(?:<br\s*/?>\s*)+", re.IGNORECASE)  # without the first part, quadratic in spaces
SPACE = "\u2581"
"""Replaces a space inside a token: spaCy makes a second space a token, and tokens are separated by spaces."""


class PreTokenizerParams(Section):
    """How one side's raw text is split."""

    kind: Literal["spacy", "whitespace", "none"]
    """spaCy's rule-based tokenizer for the language (words longer than 500 characters are split), white space, or raw
    text for subword vocabularies."""
    language: str | None
    """The language code for spaCy's rules and for lowercasing, such as `de`; may be null for the other kinds."""
    lowercase: bool
    """Lowercase the text by the rules of its language, so that answers are lowercase as well."""
    html_breaks: Literal["keep", "space"]
    """`space` reads HTML's `<br />`, which would otherwise be glued to the words beside it, as a space."""

    def check_joined(self, leaf: str) -> None:
        """Raise ValueError, naming the `leaf`, if the tokens of answers cannot be joined to texts again."""
        if self.kind == "spacy" and self.language == "zh":
            raise ValueError(
                f"{leaf} `spacy` splits Chinese into characters, and words in Latin letters too, so answers cannot be"
                " joined again: set it to `none`"
            )

    @model_validator(mode="after")
    def _spacy_needs_a_language(self) -> Self:
        if self.kind == "spacy" and not self.language:
            raise ValueError("kind `spacy` needs a language, such as `de`")
        return self


def read_pretokenizers(folder: Path, *sides: str) -> dict[str, PreTokenizerParams]:
    """Read the pre-tokenizer parameters by side, from `pretokenizer.json` of the tokenize stage or a bundle.

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


def read_rules(folder: Path) -> dict[str, Any]:
    """Read the tokenizer rules by language, from `rules.json` of a bundle; `{}` if it has none, and needs spaCy.

    Raises UserError when the file is invalid.
    """
    path = folder / RULES
    if not path.exists():
        return {}
    content = read_json(path)
    if not isinstance(content, dict):
        raise UserError(f"{path} does not contain tokenizer rules by language: export the model again")
    return content


def write_rules(folder: Path, pretokenizers: Iterable[PreTokenizerParams]) -> None:
    """Write spaCy's tokenizer rules to `rules.json`, so that they need no spaCy; no file if there are no rules."""
    languages = {params.language for params in pretokenizers if params.kind == "spacy" and params.language}
    rules = {language: found for language in sorted(languages) if (found := rules_of(language))}
    if rules:
        write_json(folder / RULES, rules)


class PreTokenizer:
    """Reads text as `params` say, in training as in asking: in normal form NFC, split, and lowercased if asked.

    Splitting never changes, adds or drops a character other than spaces and, if asked, HTML's line breaks.
    """

    def __init__(self, params: PreTokenizerParams, rules: dict[str, Any] | None = None) -> None:
        """rules: of the language, for kind `spacy` without spaCy; None to load spaCy.

        Raises UserError when the rules are malformed, or spaCy has none for the language.
        """
        self.params = params
        self._rules = rules
        self._split = _splitter(params, rules)

    def __call__(self, texts: list[str]) -> list[str]:
        """Tokenize: one string per text, its tokens separated by single spaces; with kind `none`, the text itself."""
        return [self._tokenized(text) for text in texts]

    def _tokenized(self, text: str) -> str:
        check_deadline()
        text = composed(text)
        if self.params.html_breaks == "space":
            text = _BREAKS.sub(" ", text).strip()
        split = self._split(text)
        return lowercased(split, self.params.language) if self.params.lowercase else split

    def __reduce__(self) -> tuple[type[Self], tuple[PreTokenizerParams, dict[str, Any] | None]]:
        """Pickle only the parameters and rules: the tokenizer is recreated on unpickling."""
        return type(self), (self.params, self._rules)


def open_pretokenizer(folder: Path, params: PreTokenizerParams) -> PreTokenizer:
    """Open a pre-tokenizer with the language's rules in `folder`, if any. Raises UserError."""
    return PreTokenizer(params, read_rules(folder).get(params.language or ""))


def _splitter(params: PreTokenizerParams, rules: dict[str, Any] | None) -> Callable[[str], str]:
    if params.kind == "none":
        return str
    if params.kind == "whitespace":
        return lambda text: " ".join(text.split())
    tokenize = _spacy_tokenizer(params.language or "") if rules is None else RuleTokenizer(rules)
    return lambda text: " ".join(token.replace(" ", SPACE) for token in tokenize(cut_words(text)))


def _spacy_tokenizer(language: str) -> Callable[[str], list[str]]:
    import spacy  # imported here: it takes a second, which rules and the other kinds need not wait for

    try:
        tokenizer = spacy.blank(language).tokenizer
        return lambda text: [token.text for token in tokenizer(text)]
    except (ImportError, OSError) as error:
        raise UserError(
            f"spaCy has no tokenizer for the language `{language}`: {str(error).splitlines()[0]}"
        ) from error


_WIDE = "\u3000-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U0003ffff"  # of Chinese and Japanese, with punctuation
_DECADE = re.compile(r"(?<!\S)' (?=\d\ds\b)")
_LONE = r" '(?!\w)"
_ATTACH_LEFT = re.compile(
    r" ([.,;:!?%)\]}…”]|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|’(?!\S)"
    rf"|(?<=[^'’\s]s )'(?!\S)(?!(?:(?!{_LONE}).)*[^s\s]{_LONE}))",  # no quotation mark, which another one would follow
    re.IGNORECASE,
)
_ATTACH_RIGHT = re.compile(r"(?<!\S)([(\[{$€£#„‚“‘]) ")
_ATTACH_BOTH = re.compile(r"(?<=\w) (-|/(?= [^\W\d_])|[\u00a0\u202f]) (?=\w)")
_SPACES = re.compile(f"{SPACE}+ ?")
_UNSEPARATED = re.compile(f"(?<=[{_WIDE}]) (?=[{_WIDE}])")
_QUOTED = re.compile(r'(?<![^\s(\[])" ([^"]*?) ?"')
_UNPAIRED = re.compile(r'^" (?=[^"]*$)|(?<=[.,!?…]) "(?= |$)| "$')
_GUILLEMETS = re.compile("([»«]) ([^»«]*?) ([»«])")  # German opens with »; Swiss German, with «
_SINGLE_QUOTED = re.compile(rf"(?<!\S)' ((?:(?!{_LONE}).)*?)(?:{_LONE}|(?<=s)'(?!\w))")
_EMPHASIS = re.compile(r"(?<!\S)([*_]) ([^*_]*?\S) \1(?!\w)")
_RUN = re.compile(r"(?<!\S)([*_])(?: \1)+(?!\S)")
_ONE_WORD = re.compile(
    r"\b(?:can (?=not\b)|gon (?=na\b)|got (?=ta\b)|y['’] (?=all\b)|\w+ (?=nt\b)"
    r"|(?:i|you|he|she|it|we|they|that|there|what|who|where|how|let) (?=(?:s|m|d|re|ve|ll)(?![\w.'’/-])))",
    re.IGNORECASE,
)
"""Words that spaCy's English rules split, with or without an apostrophe."""
_CLOSED = re.compile(r"(„[^“”]*) (“)|(‚[^‘]*) (‘)")  # English opens a quotation with the closing mark of German


def detokenize(tokens: str) -> str:
    """Detokenize space-separated tokens, as split by spaCy's rules for German or English.

    Punctuation and English contractions attach to their word, brackets and quotation marks to what they enclose, and
    hyphens and slashes to both sides. Letters of Chinese and Japanese join.
    """
    text = _UNSEPARATED.sub("", _SPACES.sub("", tokens))
    text = _ATTACH_LEFT.sub(r"\1", _DECADE.sub("'", text))
    for _ in range(2):  # a nested quotation
        text = _CLOSED.sub(lambda found: "".join(filter(None, found.groups())), text)
    text = _ATTACH_RIGHT.sub(r"\1", text)
    text = _ATTACH_BOTH.sub(r"\1", text)
    text = _ONE_WORD.sub(lambda found: found[0].rstrip(), text)
    text = _EMPHASIS.sub(r"\1\2\1", _RUN.sub(lambda found: found[0].replace(" ", ""), text))
    text = _SINGLE_QUOTED.sub(r"'\1'", _GUILLEMETS.sub(r"\1\2\3", text))
    return _UNPAIRED.sub('"', _QUOTED.sub(r'"\1"', text))
