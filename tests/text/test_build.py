"""The build_vocab stage: vocabulary, encoded store and statistics from tokens."""

from pathlib import Path
from typing import Any

import pytest

from transformer.errors import UserError
from transformer.files import read_json, write_json, write_rows
from transformer.observer import Observer
from transformer.text.build import build
from transformer.text.store import EncodedColumn, read_labels
from transformer.text.vocabulary import read_vocabularies
from transformer.text.vocabulary_config import VocabParams


def params(**changes: Any) -> VocabParams:
    base: dict[str, Any] = {
        "kind": "word",
        "source": "trained",
        "min_frequency": 1,
        "max_size": None,
        "path": "nowhere",
        "repository": "google-bert/bert-base-uncased",
        "revision": "0" * 40,
    }
    return VocabParams(**(base | changes))


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    folder = tmp_path / "tokens"
    write_rows(folder / "train.jsonl", iter([{"text": "a a b", "label": 1}, {"text": "b", "label": 0}]))
    write_rows(folder / "validation.jsonl", iter([{"text": "a c", "label": 0}]))
    write_json(folder / "pretokenizer.json", {"text": {"kind": "whitespace", "language": None, "lowercase": True}})
    return folder


def run(tokens: Path, params: VocabParams) -> Path:
    root = tokens.parent
    build(tokens, root / "vocab", root / "encoded", root / "figures.json", params, labelled=True, observer=Observer())
    return root


def test_store_labels_and_figures(tokens: Path) -> None:
    root = run(tokens, params())
    vocabulary = read_vocabularies(root / "vocab")["text"]
    column = EncodedColumn(root / "encoded" / "validation", "text")
    assert vocabulary.size == 6
    assert column[0].tolist() == [vocabulary.begin_id, 4, vocabulary.unknown_id, vocabulary.end_id]
    assert read_labels(root / "encoded" / "train").tolist() == [1, 0]
    figures = read_json(root / "figures.json")["text"]
    assert figures["size"] == 6
    assert figures["validation"]["unknown_rate"] == figures["validation"]["coverage"] == 0.5
    assert figures["train"]["coverage"] == 1.0
    assert (figures["train"]["tokens"], figures["train"]["length_p50"], figures["train"]["length_p100"]) == (4, 5, 5)


def test_building_twice_gives_the_same_bytes(tokens: Path, tmp_path: Path) -> None:
    files = ("vocab/text/tokenizer.json", "encoded/train/text.ids.npy", "encoded/train/label.npy", "figures.json")
    first = [(run(tokens, params()) / name).read_bytes() for name in files]
    assert [(run(tokens, params()) / name).read_bytes() for name in files] == first


def test_a_given_vocabulary_is_found_in_its_folder_or_named(tokens: Path, tmp_path: Path) -> None:
    given = {"kind": "wordpiece", "source": "path", "path": str(tmp_path / "given")}
    with pytest.raises(UserError, match=r"no vocabulary at .*given: put a vocab\.txt there"):
        run(tokens, params(**given))
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n")
    assert read_vocabularies(run(tokens, params(**given)) / "vocab")["text"].size == 6
