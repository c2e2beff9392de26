"""A document is one text: nothing of it is lost, and its end is held out."""

from pathlib import Path

import pytest

from transformer.core.errors import UserError
from transformer.data.document import LINE_BREAK, read_document


def test_the_parts_are_the_text_in_its_order(tmp_path: Path) -> None:
    lines = [f"line {number} of a play," * (number % 5) for number in range(1000)]
    (tmp_path / "b.txt").write_text("\n".join(lines[500:]) + "\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("\n".join(lines[:500]) + "\n", encoding="utf-8")
    corpus = read_document(tmp_path, validation_fraction=0.1, test_fraction=0.2)
    texts: dict[str, list[str]] = {
        split: [row["text"] for part in parts for row in part.read() if isinstance(row, dict)]
        for split, parts in corpus.splits.items()
    }
    whole = "".join(f"{line}{LINE_BREAK}" for line in lines)
    assert "".join(text for split in ("train", "validation", "test") for text in texts[split]) == whole
    sizes = {split: sum(map(len, found)) / len(whole) for split, found in texts.items()}
    assert sizes == pytest.approx({"train": 0.7, "validation": 0.1, "test": 0.2}, abs=1e-3)
    assert len(texts["train"]) == 1 and len(texts["test"]) > 3
    assert all(2000 <= len(text) < 2200 and text.endswith(LINE_BREAK) for text in texts["test"][:-1])


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    shares = {"validation_fraction": 0.1, "test_fraction": 0.1}
    with pytest.raises(UserError, match=r"has no file \*\.txt: put the text there"):
        read_document(tmp_path, **shares)
    (tmp_path / "a.txt").write_bytes(b"a line\nK\xe4se\n")
    corpus = read_document(tmp_path, **shares)
    with pytest.raises(UserError, match=r"a\.txt, line 2: not UTF-8"):
        list(corpus.splits["train"][0].read())
    with pytest.raises(UserError, match="leave no text for train"):
        read_document(tmp_path, validation_fraction=0.5, test_fraction=0.5)
