"""Corpora with hostile texts, through all stages from the files to the report."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Clone, make_clone
from tests.kit import STAGES
from transformer.data.vocabulary import WORD_SPECIALS, WORDPIECE_SPECIALS

HOSTILE = {
    "letters without a space": "a" * 1_000_000,
    "words": "word " * 200_000,
    "punctuation without a space": "!" * 1_000_000,
    "right to left": "\u202b\u05e9\u05dc\u05d5\u05dd \u0639\u0627\u0644\u0645\u202c mixed \u2067\u0645\u2069",
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f44d\U0001f3fd",
    "combining marks": "e" + "\u0301" * 1000,
    "specials": " ".join([*WORD_SPECIALS, *WORDPIECE_SPECIALS, "\u2581 \u2581\u2581 ## @@"]),
    "separators": "one\u2028two\u2029three\u0085four\x0bfive\x0csix\x1cseven",
    "byte order mark": "\ufeffone",
    "nothing to see": "\u200b\u200d",
    "tab": "one\ttwo",
}
ORDINARY = {"de": "Ein Hund l\u00e4uft \u00fcber die Wiese Nummer", "en": "A dog runs across the meadow number"}


def translation(folder: Path) -> None:
    """Plain text with Windows line endings, every hostile text on either side, and many duplicate lines."""
    lines = [{**ORDINARY, side: text} for text in HOSTILE.values() for side in ORDINARY]
    lines += [{side: f"{text} {number % 40}." for side, text in ORDINARY.items()} for number in range(120)]
    for split in ("train", "val", "test"):
        for side in ORDINARY:
            (folder / f"{split}.{side}").write_bytes("".join(f"{line[side]}\r\n" for line in lines).encode())


def sentiment(folder: Path) -> None:
    """JSON lines with every hostile text under both labels."""
    texts = [*HOSTILE.values(), *(f"A film {number % 40}, good or not." for number in range(120))]
    rows = [{"label": label, "text": text} for text in texts for label in (0, 1)]
    for split in ("train", "val", "test"):
        (folder / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


CORPORA = {"translation": translation, "sentiment": sentiment}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "translation of BPE's bytes": (
        "translation",
        {"tokenize.kind": "none", "vocab.kind": "bpe", "vocab.max_size": 600, "vocab.byte_fallback": True},
    ),
    "translation of Unigram's pieces": (
        "translation",
        {"tokenize.kind": "none", "vocab.kind": "unigram", "vocab.max_size": 600},
    ),
    "sentiment of words by spaCy": ("sentiment", {"tokenize.kind": "spacy", "vocab.kind": "word"}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_stage_takes_them(case: str, tmp_path: Path) -> None:
    task, changes = CASES[case]
    clone: Clone = make_clone(tmp_path / "clone")
    (tmp_path / "corpus").mkdir()
    CORPORA[task](tmp_path / "corpus")
    clone.change({"runtime.tracking": False, f"{task}.download.source": "files", f"{task}.download.bad_rows": "skip"})
    clone.change({f"{task}.download.path": str(tmp_path / "corpus")})
    clone.change({f"{task}.{leaf}": value for leaf, value in changes.items()})
    assert sorted(clone.repro(f"report@{task}")) == sorted(f"{stage}@{task}" for stage in STAGES)
    assert (clone.root / "reports" / task / "report.html").stat().st_size < 2_000_000, "a text of a megabyte is cut"
