"""Known facts about the real corpora, if they are available."""

from pathlib import Path

import pytest

from tests.kit import fresh_profile
from transformer.core.files import read_rows
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.core.paths import Paths
from transformer.core.task import open_task
from transformer.data.vocabulary_training import word_vocabulary


@pytest.mark.stress
def test_multi30k_has_its_known_vocabulary_sizes(real_corpora: Path, tmp_path: Path) -> None:
    content = fresh_profile("seed")
    content["translation"]["download"].update(source="files", path=str(real_corpora / "multi30k"))
    for stage in ("download", "tokenize"):
        code = open_task("translation").family.stage(stage)
        params = stage_params(content, "translation", code.Params, where=Path("seed"))
        paths = Paths(data=tmp_path, models=tmp_path, reports=tmp_path)
        code.run(open_task("translation"), params, paths, Observer())
    sizes = {}
    for side in ("source", "target"):
        texts = (row[side] for row in read_rows(tmp_path / "tokens" / "train.jsonl"))
        sizes[side] = word_vocabulary(texts, min_frequency=2, max_size=None).size
    assert sizes == {"source": 7853, "target": 5893}
