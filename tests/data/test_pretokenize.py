"""Pre-tokenizing raw text."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.builders import small_runtime
from transformer.core.errors import UserError
from transformer.core.files import read_rows, write_json, write_rows
from transformer.core.observer import Observer
from transformer.data.tokenization import PreTokenizer, PreTokenizerParams, read_pretokenizers
from transformer.data.tokens import tokenize_corpus


def params(**changes: Any) -> PreTokenizerParams:
    base: dict[str, Any] = {"kind": "spacy", "language": "de", "lowercase": False, "html_breaks": "keep"}
    return PreTokenizerParams(**(base | changes))


@pytest.mark.parametrize(
    ("changes", "text", "tokens"),
    [
        ({}, "Ein Mann, z.B. Hans, schläft.", "Ein Mann , z.B. Hans , schläft ."),
        ({"lowercase": True}, "Ein MÄDCHEN!", "ein mädchen !"),
        ({"language": "en"}, "She doesn't.", "She does n't ."),
        ({}, "zwei  Hunde", "zwei \u2581 Hunde"),  # spaCy's second space is a token, and among the 7,853 words
        ({"kind": "whitespace"}, "a  b\tc ", "a b c"),
        ({"kind": "none", "lowercase": True}, "A  B.", "a  b."),
        ({"language": "en", "html_breaks": "space"}, "Bad.<br /><br />Worse. <BR> <br/>", "Bad . Worse ."),
        ({"kind": "none", "html_breaks": "space"}, "a <br /> b  c <br", "a b  c <br"),
    ],
)
def test_splitting(changes: dict[str, Any], text: str, tokens: str) -> None:
    assert PreTokenizer(params(**changes))([text]) == [tokens]


def test_a_run_of_spaces_takes_no_time_that_grows_with_its_square() -> None:
    """It would be minutes."""
    spaces = " " * 200_000
    split = PreTokenizer(params(kind="none", html_breaks="space"))
    assert split([f"a{spaces}b{spaces}<br>{spaces}c"]) == [f"a{spaces}b c"]


def test_spacy_sees_words_of_500_characters_at_most() -> None:
    split = PreTokenizer(params())
    assert split([f"{'a' * 500} {'b' * 1001}"]) == [f"{'a' * 500} {'b' * 500} {'b' * 500} b"]


def test_spacy_needs_a_language() -> None:
    with pytest.raises(ValidationError, match="needs a language"):
        params(language=None)


def corpus(folder: Path, rows: int) -> Path:
    write_rows(folder / "train.jsonl", ({"de": f"Der {i}. Hund schläft.", "label": i % 2} for i in range(rows)))
    write_json(folder / "provenance.json", {"rows": {"train": rows}})
    return folder


@pytest.mark.parametrize(("workers", "kind", "end"), [(0, "spacy", " ."), (2, "whitespace", ".")])
def test_any_number_of_workers_writes_the_same_bytes(workers: int, kind: str, end: str, tmp_path: Path) -> None:
    sides, given = {"text": ("de", params(kind=kind, lowercase=True))}, corpus(tmp_path / "corpus", 2345)
    counts = tokenize_corpus(
        given, tmp_path / "tokens", sides, runtime=small_runtime(workers=workers), observer=Observer()
    )
    rows = list(read_rows(tmp_path / "tokens" / "train.jsonl"))
    assert counts == {"train_rows": 2345}
    assert rows == [{"label": i % 2, "text": f"der {i}. hund schläft{end}"} for i in range(2345)]
    assert read_pretokenizers(tmp_path / "tokens") == {"text": params(kind=kind, lowercase=True)}


def test_a_language_that_spacy_lacks_is_one_line_with_workers_too(tmp_path: Path) -> None:
    sides, given = {"text": ("text", params(language="sw"))}, corpus(tmp_path / "corpus", 3)
    with pytest.raises(UserError, match=r"^spaCy has no tokenizer for the language `sw`: "):
        tokenize_corpus(given, tmp_path / "tokens", sides, runtime=small_runtime(workers=2), observer=Observer())
