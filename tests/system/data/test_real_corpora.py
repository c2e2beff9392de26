"""Known facts about the real corpora, if they are available."""

from collections import Counter
from pathlib import Path

from tests.data.cases import judge, provenance, stored, translate
from tests.kit import fresh_profile
from tests.training.small import run_stage
from transformer.core.files import read_rows
from transformer.core.observer import Observer
from transformer.core.paths import Paths
from transformer.data.vocabulary_training import word_vocabulary

MULTI30K = "8f5a982d8b62bfd05be0ee6a07a6e2ee42d7e4d5b09791f203fb52888fe1847e"
IMDB = "6b134a1c2bb9775c08c076bd9f4b584d0d82bb415c6f62bca181423a3f021a1a"


def test_multi30k(real_corpora: Path, tmp_path: Path) -> None:
    output = translate(tmp_path, path=str(real_corpora / "multi30k"), expected_sha256=MULTI30K)
    assert provenance(output)["rows"] == {
        "train": 29000, "validation": 1014, "test": 1000, "test_2017_flickr": 1000, "test_2017_mscoco": 461,
    }  # fmt: skip
    assert stored(output, "test")[0] == {
        "de": "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt.",
        "en": "A man in an orange hat starring at something.",
    }


def test_imdb(real_corpora: Path, tmp_path: Path) -> None:
    output = judge(tmp_path, path=str(real_corpora / "imdb"), validation_fraction=0.1, expected_sha256=IMDB)
    labels = {split: Counter(row["label"] for row in stored(output, split)) for split in provenance(output)["rows"]}
    assert labels == {
        "train": {0: 11250, 1: 11250}, "validation": {0: 1250, 1: 1250}, "test": {0: 12500, 1: 12500},
    }  # fmt: skip


def test_multi30k_has_its_known_vocabulary_sizes(real_corpora: Path, tmp_path: Path) -> None:
    content = fresh_profile("seed")
    content["translation"]["download"].update(source="files", path=str(real_corpora / "multi30k"))
    for stage in ("download", "tokenize"):
        run_stage(content, "translation", stage, Paths(data=tmp_path, models=tmp_path, reports=tmp_path), Observer())
    sizes = {}
    for side in ("source", "target"):
        texts = (row[side] for row in read_rows(tmp_path / "tokens" / "train.jsonl"))
        sizes[side] = word_vocabulary(texts, min_frequency=2, max_size=None).size
    assert sizes == {"source": 7853, "target": 5893}
