"""spaCy's rules as data, and the tokenizer that follows them without spaCy."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.sentences import sample_sentences
from transformer.core.errors import UserError
from transformer.core.files import json_bytes
from transformer.data.spacy_rules import RuleTokenizer, rules_of
from transformer.data.tokenization import PreTokenizer, PreTokenizerParams, read_rules, write_rules

Tokenize = Callable[[str], list[str]]

HARD = (
    " ",
    " vorn und hinten ",
    "a \t b\n\nc \n d\r\n",
    "z.B. ca. 3 km/h, d.h. 5,5kg. S. 12ff. Nr.7 u.s.w...",
    "I'm sure you don't; they'll've gone, couldn't've. 'Twas y'all's.",
    "I’m sure you don’t … it’s 'em",
    "(e.g.:-)) :-( :) ;-) 8-) <3 xD :'-( (: o.O ^_^ (╯°□°)╯︵┻━┻ ¯\\(ツ)/¯",
    "http://example.com/a?b=c#d, www.example.de. (https://x.org/(y)) ftp://a.b:8080/",
    "Mail an max.muster@example.com, <a.b@c.de>; @name #tag mailto:a@b.de!",
    "A-B well-known 1990-2000 a--b a---b – — - -a a- Haupt- und Neben-",
    "'s’n :-):} x/dont :-):}",  # exceptions that overlap
    "„deutsch“ ‚einfach‘ “english” ‘single’ «fr» ‹fr› 'a' \"b\" ``c''",
    "😀 😀😀 👨‍👩‍👧 a😀b 🇩🇪 ❤️ © ® ™",
    "a\u0301 \u0301 x\u0301\u0301 \u200b\u200d \ufeff",
    'C++ C# .NET a. b. (a.) A. U.S.A. U.S. USA. \\n \\t \\") <space>',
    "Hund.Katze Hund,Katze Hund:Katze Hund/Katze a=b a>b a_b a*b [x]{y}",
    f"({'ab-' * 200})",
    "¿Qué? EE. UU. ¡No! c'est-à-dire aujourd'hui qu'il Αγ. Γρ. в т.ч. вед. науч. сотр. 1 Kor. ق. م",
    "हिन्दी। السلام؟ 日本語、中文。 한국어",
)


@cache
def rules(language: str) -> dict[str, Any]:
    found = rules_of(language)
    assert found
    return found


@cache
def ours(language: str) -> Tokenize:
    return RuleTokenizer(json.loads(json.dumps(rules(language))))


@cache
def spacys(language: str) -> Tokenize:
    tokenizer = spacy.blank(language).tokenizer
    return lambda text: [token.text for token in tokenizer(text)]


def differing(language: str, texts: list[str]) -> list[tuple[str, list[str], list[str]]]:
    found = ((text, ours(language)(text), spacys(language)(text)) for text in texts)
    return [(text, own, expected) for text, own, expected in found if own != expected]


@pytest.mark.parametrize("language", ["de", "en", "es", "ru", "hi", "ar", "el", "hu", "tr", "fi", "fa"])
def test_hard_sentences_and_all_exceptions_are_split_as_spacy_does(language: str) -> None:
    exceptions = list(rules(language)["exceptions"])
    joined = [f"({a}{b}) {b} {a}. {' '.join(a)}" for a, b in zip(exceptions, exceptions[::-1], strict=True)]
    assert differing(language, [*HARD, " ".join(HARD), *joined, *sample_sentences()]) == []


@cache
def dangerous(language: str) -> st.SearchStrategy[list[str]]:
    """Texts made of exceptions, their tokens, and characters that patterns look for."""
    exceptions = list(rules(language)["exceptions"])
    parts = [token for tokens in rules(language)["exceptions"].values() for token in tokens]
    pieces = [*" \t\n\u00a0.,;:!?'\"()[]<>-–—…_*+=/&%$€£°#@’‘“”„«»\u0301😀", "  ", "..", "...", "--", "'s", "n't", "km"]
    words = ["a", "B", "ß", "Ж", "abc", "Hund", "1", "23", "http://a.bc", "www.x.de", "a@b.com"]
    usual = st.sampled_from(pieces) | st.sampled_from(words) | st.sampled_from(exceptions) | st.sampled_from(parts)
    text = st.lists(usual | st.characters(exclude_categories=["Cs"]), max_size=12).map("".join)
    return st.lists(text, min_size=1, max_size=10)


@pytest.mark.parametrize("language", ["de", "en", "hi"])
@settings(deadline=None)
@given(data=st.data())
def test_dangerous_texts_are_split_as_spacy_does(language: str, data: st.DataObject) -> None:
    assert differing(language, data.draw(dangerous(language))) == []


def test_rules_are_the_same_in_every_process(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from transformer.data.spacy_rules import rules_of; "
    code += "from transformer.core.files import write_json; write_json(Path(sys.argv[1]), rules_of('en'))"
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "en.json")], check=True, env=environment)
    assert (tmp_path / "en.json").read_bytes() == json_bytes(rules("en"))


NOTHING: dict[str, Any] = dict.fromkeys(("prefix", "suffix", "infix", "token_match", "url_match"))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ([], "TypeError"),
        ({"patterns": {"prefix": None}}, "KeyError: 'suffix'"),
        ({"patterns": NOTHING | {"infix": {"pattern": "(a+)+$", "flags": 32}}}, "is not a pattern of spaCy 3.8"),
        *(({"exceptions": {"ab": parts}}, "the tokens of 'ab' are not") for parts in ("ab", ["a", "c"], ["ab", ""])),
        ({"exceptions": {"1": [1]}}, "TypeError"),
    ],
)
def test_malformed_rules_are_refused_in_one_line(changes: Any, fault: str) -> None:
    given = {"patterns": NOTHING, "exceptions": {}} | changes if changes else changes
    with pytest.raises(UserError, match=rf"^the rules .* are malformed \(.*{fault}.*\): export the model again$"):
        RuleTokenizer(given)


def params(**changes: Any) -> PreTokenizerParams:
    base: dict[str, Any] = {"kind": "spacy", "language": "de", "lowercase": True, "html_breaks": "keep"}
    return PreTokenizerParams(**(base | changes))


def test_the_pretokenizer_gives_the_same_with_rules_also_when_pickled() -> None:
    split = PreTokenizer(params(), rules("de"))
    for each in (split, pickle.loads(pickle.dumps(split))):
        assert each([*HARD]) == PreTokenizer(params())([*HARD])
    invented = PreTokenizer(params(), {"patterns": NOTHING, "exceptions": {"Hund": ["Hu", "nd"]}})
    assert pickle.loads(pickle.dumps(invented))(["Hund."]) == ["hund."]
    assert pickle.loads(pickle.dumps(invented))(["ein Hund"]) == ["ein hu nd"]


def test_rules_are_written_for_the_languages_that_have_some(tmp_path: Path) -> None:
    assert read_rules(tmp_path) == {}
    write_rules(tmp_path, [params(kind="none"), params(language="zh"), params(language="qqq")])
    assert list(tmp_path.iterdir()) == []
    write_rules(tmp_path, [params(language="en"), params(language="zh"), params(), params(lowercase=False)])
    assert read_rules(tmp_path) == {"de": rules("de"), "en": rules("en")}


def test_a_damaged_file_of_rules_is_reported(tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text("[]")
    with pytest.raises(UserError, match=rf"^{tmp_path}/rules.json .*again"):
        read_rules(tmp_path)
