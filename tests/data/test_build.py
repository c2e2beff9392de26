"""The build_vocab stage: vocabulary, encoded store and statistics from tokens."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders import small_runtime
from tests.kit import fresh_profile
from tests.stages import Said
from transformer.core.errors import UserError
from transformer.core.files import read_json, read_rows, write_json, write_rows
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.data.encoding import VocabParams, _quantiles, build
from transformer.data.store import EncodedColumn, read_labels
from transformer.data.vocabulary import read_vocabularies

PLAIN: dict[str, Any] = {"kind": "none", "language": None, "lowercase": False, "html_breaks": "keep"}


def params(**changes: Any) -> VocabParams:
    return VocabParams(**(fresh_profile("default")["translation"]["vocab"] | {"min_frequency": 1} | changes))


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    folder = tmp_path / "tokens"
    write_rows(folder / "train.jsonl", iter([{"text": "a a b", "label": 1}, {"text": "b", "label": 0}]))
    write_rows(folder / "validation.jsonl", iter([{"text": "a c", "label": 0}]))
    write_json(folder / "pretokenizer.json", {"text": PLAIN | {"kind": "whitespace"}})
    return folder


def run(tokens: Path, params: VocabParams, observer: Observer | None = None) -> Path:
    root, labelled = tokens.parent, "label" in next(read_rows(tokens / "train.jsonl"))
    paths = Paths(data=root, models=root, reports=root)
    build(paths, params, small_runtime(), labelled=labelled, observer=observer or Observer())
    return root


def test_store_labels_and_figures(tokens: Path) -> None:
    root = run(tokens, params())
    vocabulary = read_vocabularies(root / "vocab")["text"]
    column = EncodedColumn(root / "encoded" / "validation", "text")
    assert vocabulary.size == 6
    assert column[0].tolist() == [vocabulary.begin_id, 4, vocabulary.unknown_id, vocabulary.end_id]
    assert read_labels(root / "encoded" / "train").tolist() == [1, 0]
    figures = read_json(root / "vocabulary.json")["text"]
    assert figures["size"] == 6
    assert figures["validation"]["unknown_rate"] == figures["validation"]["coverage"] == 0.5
    assert figures["train"]["coverage"] == 1.0
    assert (figures["train"]["tokens"], figures["train"]["length_p50"], figures["train"]["length_p100"]) == (4, 5, 5)


def test_a_given_vocabulary_is_found_in_its_folder_or_named(tokens: Path, tmp_path: Path) -> None:
    given = {"kind": "wordpiece", "source": "path", "path": str(tmp_path / "given")}
    with pytest.raises(UserError, match=r"no vocabulary at .*given: put a vocab\.txt there"):
        run(tokens, params(**given))
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n")
    assert read_vocabularies(run(tokens, params(**given)) / "vocab")["text"].size == 6


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    folder = tmp_path / "tokens"
    rows = [{"source": f"ein Hund {n}", "target": f"a dog  {n}"} for n in range(30)]
    write_rows(folder / "train.jsonl", iter(rows))
    write_rows(folder / "validation.jsonl", iter([{"source": "eine Hündin", "target": "a dog"}]))
    write_json(folder / "pretokenizer.json", {"source": PLAIN, "target": PLAIN})
    return folder


def tokenizers(root: Path) -> set[bytes]:
    """The vocabularies of all sides."""
    return {path.read_bytes() for path in root.glob("vocab/*/tokenizer.json")}


@pytest.mark.parametrize("kind", ["word", "wordpiece", "bpe", "unigram"])
def test_a_joint_vocabulary_knows_all_sides(kind: str, pairs: Path) -> None:
    limit = {"kind": kind, "max_size": 60, "min_frequency": 2}
    separate = run(pairs, params(**limit))
    assert len(tokenizers(separate)) == 2
    joint = run(pairs, params(**limit, joint=True))
    assert len(tokenizers(joint)) == 1
    source = read_vocabularies(joint / "vocab")["source"]
    (ids,) = source.encode(["Hund dog"])
    assert source.unknown_id not in ids
    figures = read_json(joint / "vocabulary.json")
    assert figures["source"]["size"] == figures["target"]["size"] == source.size


def test_long_texts_without_spaces_are_unknown_words_of_wordpiece(tokens: Path) -> None:
    for length, warned in ((400, False), (600, True)):
        said = Said()
        write_rows(tokens / "train.jsonl", iter([{"text": "ab" * (length // 2), "label": 1}] * 2))
        run(tokens, params(kind="wordpiece", max_size=60), said)
        assert any("set vocab.kind to `bpe`" in line for line in said.lines) == warned


def test_bytes_count_as_unknown(pairs: Path) -> None:
    root = run(pairs, params(kind="bpe", max_size=320, min_frequency=2, byte_fallback=True))
    row = EncodedColumn(root / "encoded" / "validation", "source")[0]
    figures = read_json(root / "vocabulary.json")["source"]["validation"]
    assert figures["unknown_rate"] == round(2 / (len(row) - 2), 6)  # the two bytes of the ü


def test_quantiles_of_counted_lengths_are_numpys() -> None:
    for count in (1, 2, 3, 101, 1000):
        lengths = np.random.default_rng(count).integers(1, 60, count)
        expected = np.quantile(lengths, (0.5, 0.95, 0.99, 1.0), method="higher").tolist()
        assert list(_quantiles(Counter(lengths.tolist())).values()) == expected
