"""IMDB's reviews, with the unlabelled ones, as the corpus of a language model."""

from pathlib import Path

import pytest

from tests.stages import Stages
from transformer.core.files import read_json
from transformer.data.select import JUDGED, SEEN


@pytest.mark.stress
def test_no_review_that_sentiment_is_judged_by_is_a_training_text(
    real_corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = {"download.source": "files", "download.near_duplicates": "keep", "download.unsupervised": True}
    labelled = {"download.path": str(real_corpora / "imdb"), "download.validation_block": 125}
    Stages(tmp_path, "sentiment", monkeypatch, common | labelled).run("download")
    Stages(tmp_path, "language", monkeypatch, common | {"download.path": "data/sentiment/corpus"}).run("download")
    corpora = (tmp_path / "data" / task / "corpus" for task in ("sentiment", "language"))
    other, found = (read_json(corpus / "provenance.json") for corpus in corpora)
    left_out = found["left_out"]["train"][JUDGED]
    assert found["rows"]["train"] == other["rows"]["train"] + other["rows"]["unsupervised"] - left_out
    assert found["rows"]["validation"] == other["rows"]["validation"]
    assert left_out + other["left_out"]["unsupervised"][SEEN] == 445  # of 72,500, with the blocks above
