"""spaCy's rule-based tokenizers as plain data, and a tokenizer that follows such rules without spaCy."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from transformer.core.errors import UserError

_SEARCHES = {
    "prefix": ("prefix_search", "search"),
    "suffix": ("suffix_search", "search"),
    "infix": ("infix_finditer", "finditer"),
    "token_match": ("token_match", "match"),
    "url_match": ("url_match", "match"),
}
"""Patterns of the rules: spaCy's name for each, and the method of `re.Pattern` that it calls."""

_CHUNK = re.compile(r"\S+|(?<!\S)\s+|[^\S ]\s*")
"""A word, or the white space after it without the one space that separates it from the next word."""

_NEVER = re.compile(r"(?!)")
_MOST_CHUNKS = 32_768  # whose tokens are kept in memory

_Exceptions = Mapping[str, tuple[str, ...]]


def rules_of(language: str) -> dict[str, Any] | None:
    """Return a language's spaCy tokenizer rules as JSON values, or None if it does not consist of patterns.

    `patterns`: by name, a regular expression and its flags, or null. `exceptions`: by text, the tokens it is split
    into, such as `{"don't": ["do", "n't"]}`.
    """
    import spacy  # imported here: RuleTokenizer works without it
    from spacy.symbols import ORTH
    from spacy.tokenizer import Tokenizer

    try:
        tokenizer: Any = spacy.blank(language).tokenizer
    except (ImportError, OSError):
        return None
    if type(tokenizer) is not Tokenizer:
        return None
    patterns: dict[str, dict[str, Any] | None] = {}
    for name, (attribute, method) in sorted(_SEARCHES.items()):
        search = getattr(tokenizer, attribute)
        pattern = getattr(search, "__self__", None)
        if search is not None and not (isinstance(pattern, re.Pattern) and search.__name__ == method):
            return None
        patterns[name] = pattern and {"pattern": pattern.pattern, "flags": pattern.flags}
    exceptions = {text: [token[ORTH] for token in tokens] for text, tokens in sorted(tokenizer.rules.items())}
    return {"patterns": patterns, "exceptions": exceptions}


class RuleTokenizer:
    """Tokenizes texts exactly like the spaCy tokenizer that the rules come from."""

    def __init__(self, rules: Mapping[str, Any]) -> None:
        """rules: from `rules_of`. Raises UserError when they are malformed."""
        try:
            patterns = {name: _compiled(rules["patterns"][name]) for name in _SEARCHES}
            self._exceptions: _Exceptions = dict(_exception(*item) for item in rules["exceptions"].items())
        except (AttributeError, KeyError, TypeError, ValueError, re.error) as error:
            fault = f"{type(error).__name__}: {error}".splitlines()[0]
            raise UserError(f"the rules for splitting texts are malformed ({fault}): export the model again") from error
        self._prefix, self._suffix, self._infix = patterns["prefix"], patterns["suffix"], patterns["infix"]
        self._token, self._url = patterns["token_match"], patterns["url_match"]
        self._of_chunk = lru_cache(_MOST_CHUNKS)(lambda chunk: tuple(self._split(chunk, self._exceptions)))
        self._sequences = set(self._split_exceptions())
        self._longest: dict[str, int] = {}
        for sequence in self._sequences:
            self._longest[sequence[0]] = max(len(sequence), self._longest.get(sequence[0], 0))

    def __call__(self, text: str) -> list[str]:
        """Tokenize; white space is a token too, except for one space after another token."""
        words = text.split()
        chunks = words if " ".join(words) == text else _CHUNK.findall(text)
        tokens = [token for chunk in chunks for token in self._of_chunk(chunk)]
        spans = list(self._matches(tokens))
        return self._join_exceptions(text, tokens, spans) if spans else tokens

    def _split(self, chunk: str, exceptions: _Exceptions) -> Iterator[str]:
        """Strip prefixes and suffixes until an exception or a word is left."""
        suffixes: list[str] = []
        rest, size = chunk, -1
        while rest and len(rest) != size and rest not in exceptions and not self._token.match(rest):
            size = len(rest)
            before, after = _length(self._prefix, rest), 0
            if rest[before:] not in exceptions:
                after = _length(self._suffix, rest[before:])
                if rest[: size - after] in exceptions:
                    before = 0
            if before:
                yield rest[:before]
            if after:
                suffixes.append(rest[size - after :])
            rest = rest[before : size - after]
        if rest:
            yield from exceptions.get(rest) or self._split_word(rest)
        yield from reversed(suffixes)

    def _split_word(self, word: str) -> list[str]:
        """Split a word at its infixes, unless it is a token or a URL."""
        if self._token.match(word) or self._url.match(word):
            return [word]
        tokens, end = [], 0
        for infix in self._infix.finditer(word):
            if infix.start() > 0:
                tokens += [word[end : infix.start()], infix[0]]
                end = infix.end()
        return [token for token in (*tokens, word[end:]) if token]

    def _split_exceptions(self) -> Iterator[tuple[str, ...]]:
        """Yield the tokens that exceptions would be split into otherwise: they may be adjacent to other tokens."""
        for text in self._exceptions:
            if _length(self._prefix, text) or _length(self._suffix, text) or self._infix.search(text) or " " in text:
                yield tuple(token for chunk in _CHUNK.findall(text) for token in self._split(chunk, {}))

    def _join_exceptions(self, text: str, tokens: list[str], spans: list[tuple[int, int]]) -> list[str]:
        """Merge adjacent tokens that spell an exception into the exception's tokens: longest first, then leftmost.

        As in spaCy, what only looks like an exception because of the spaces in it stays, but is not searched again.
        """
        starts = [start for chunk in _CHUNK.finditer(text) for start in self._starts(chunk)]
        taken: set[int] = set()
        ends: dict[int, int] = {}
        for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
            if start not in taken and end - 1 not in taken:
                ends[start] = end
            taken.update(range(start, end))
        joined: list[str] = []
        place = 0
        while place < len(tokens):
            end = ends.get(place, place + 1)
            found = text[starts[place] : starts[end - 1] + len(tokens[end - 1])] if place in ends else ""
            joined += self._exceptions.get(found, tokens[place:end])
            place = end
        return joined

    def _starts(self, chunk: re.Match[str]) -> Iterator[int]:
        start = chunk.start()
        for token in self._of_chunk(chunk[0]):
            yield start
            start += len(token)

    def _matches(self, tokens: list[str]) -> Iterator[tuple[int, int]]:
        for start in [place for place, token in enumerate(tokens) if token in self._longest]:
            for end in range(start + 1, min(start + self._longest[tokens[start]], len(tokens)) + 1):
                if tuple(tokens[start:end]) in self._sequences:
                    yield start, end


def _compiled(pattern: Any) -> re.Pattern[str]:
    return _NEVER if pattern is None else re.compile(pattern["pattern"], pattern["flags"])


def _exception(text: Any, tokens: Any) -> tuple[str, tuple[str, ...]]:
    if not text or not isinstance(tokens, list) or "".join(tokens) != text or "" in tokens:
        raise ValueError(f"the tokens of {text!r} are not its parts")
    return text, tuple(tokens)


def _length(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return len(found[0]) if found else 0
