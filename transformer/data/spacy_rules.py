"""spaCy's rule-based tokenizers as plain data, and a tokenizer that follows such rules without spaCy."""

import hashlib
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

_SPACYS = """
    016e1645162c39ee 05af2d0dcd162034 0772815b40d826d6 0d06dcdff16d48fa 0d2bf9991716ef3a 11faa1202b0e35d2
    12a36c0362981a69 139f7094d01172bf 1f7df20cf5dea67d 20084d42d32489ee 208684593e934296 249048c017aa141b
    2b33ce05d2b951d3 2bab2e3007a99ad2 30d1f93981d0ee91 340a4b97f8a45ab7 39abffb59b5f72e8 3fb1a2e4a8d7e6ed
    41d65d58d3d1d9c0 44ad6f0514ff0497 454226ba3925161a 45bad44a8208e889 461947e0e35e3920 489b99a3b0bfd283
    4f1e622015b6f656 50a5eed5f4668de9 541964bc5fa41c13 551ebe6231554c13 568ba62423d17c2a 56f7be676989fb32
    58896dd46b5572ab 58eeb2cef2e9d307 59aa6e1cc9190480 59b4f57a6744a0b3 654d6a76abd85509 65c6962ad7fe6660
    6b29694a0211e2c4 6f08f8324fe7cead 7582f0c007b6240c 7dbb850812953213 83b7617708d5ebc3 8cd9a4b2bb21a982
    8dc9dcf7ddd17587 8ee79d74246f00e6 8f22b080275d826c 97d05308f3dd4bdb 9e34c91727f75ff7 a0bb72319662782d
    a8d0c35dd103d0d6 a9d57dc57eddb98c aaa19e9ff0bde866 ae41b4960a100491 b66fda5c871dd16a ba85cf7248e6041c
    bcbe478c8561911d c2876b2af867524b cbbcb028e30607fc ccbf33394a965d43 cddda106ff241906 ce057871b09fb34d
    ce86e35cb931f483 d3db3762dbe32294 d737b346b6d88140 da9f2df7651fe008 dbfee8587fc87192 dd74fd54cafe4fe5
    de83b96358652f81 dfdca44e79a66e74 e520ed0492aef51f e61f09f50e534037 ea9a2983fd67f92c eba92450215b40cb
    f141a8d796931c24 f73c0890b2ef3c17 fcae7d455c6d3972 fd6c1cf251233fdd
"""
"""Digests of the patterns and flags of spaCy 3.8: any other could keep a text from ever being split."""

_NEVER = re.compile(r"(?!)")
_MOST_CHUNKS = 32_768  # whose tokens are kept in memory

_Exceptions = Mapping[str, tuple[str, ...]]


def rules_of(language: str) -> dict[str, Any] | None:
    """Return a language's spaCy tokenizer rules as JSON values, or None unless they consist of spaCy 3.8's patterns.

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
        if pattern and not _is_spacys(pattern.pattern, pattern.flags):
            return None
    exceptions = {text: [token[ORTH] for token in tokens] for text, tokens in sorted(tokenizer.rules.items())}
    return {"patterns": patterns, "exceptions": exceptions}


class RuleTokenizer:
    """Tokenizes texts exactly like the spaCy tokenizer that the rules come from."""

    def __init__(self, rules: Mapping[str, Any]) -> None:
        """rules: from `rules_of`. Raises UserError when they are malformed, or have patterns that are not spaCy's."""
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
    if pattern is None:
        return _NEVER
    text, flags = pattern["pattern"], pattern["flags"]
    if not _is_spacys(text, flags):
        raise ValueError(f"{str(text)[:40]!r} with flags {str(flags)[:10]} is not a pattern of spaCy 3.8")
    return re.compile(text, flags)


def _is_spacys(pattern: object, flags: object) -> bool:
    return hashlib.sha256(f"{flags} {pattern}".encode(errors="replace")).hexdigest()[:16] in _SPACYS


def _exception(text: Any, tokens: Any) -> tuple[str, tuple[str, ...]]:
    if not text or not isinstance(tokens, list) or "".join(tokens) != text or "" in tokens:
        raise ValueError(f"the tokens of {text!r} are not its parts")
    return text, tuple(tokens)


def _length(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return len(found[0]) if found else 0
