"""The source `hub`, with what `datasets` would load; tests/system/data/test_hub.py has it load from a server."""

import os
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest

from tests.data.cases import REVISION, judge, pairs, provenance, reviews, stored, translate
from transformer.core.errors import UserError
from transformer.core.files import read_json

PAIRS = {"train": pairs(60), "validation": pairs(10, "Wert"), "test": pairs(8, "Probe")}
REVIEWS = {"train": reviews(40), "test": reviews(10, "test film")}
Splits = dict[str, list[dict[str, Any]]]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that sets what the Hub gives: splits, or an error."""

    def given(found: Splits | Exception, features: datasets.Features | None = None) -> None:
        def load(repository: str, configuration: str | None, *, revision: str, cache_dir: str) -> Any:
            if isinstance(found, Exception):
                raise found
            splits = {split: datasets.Dataset.from_list(rows, features=features) for split, rows in found.items()}
            return datasets.DatasetDict(splits)

        monkeypatch.setattr(datasets, "load_dataset", load)

    monkeypatch.setattr(os, "environ", os.environ.copy())  # `hub` sets what `datasets` reads
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: None)
    return given


def test_rows_and_provenance(hub: Any, tmp_path: Path) -> None:
    hub(PAIRS)
    output = translate(tmp_path, source="hub", configuration="de-en")
    assert {split: stored(output, split) for split in PAIRS} == PAIRS
    found = provenance(output)
    assert (found["source"], found["repository"], found["configuration"]) == ("hub", "owner/corpus", "de-en")
    assert found["revision"] == REVISION
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["corpus"]


def test_the_hubs_own_names_of_labels_count(hub: Any, tmp_path: Path) -> None:
    unlabelled = [{"label": -1, "text": f"Nobody judged {number}."} for number in range(6)]
    label = datasets.ClassLabel(names=("spam", "ham"))
    features = datasets.Features({"text": datasets.Value("string"), "label": label})
    hub(REVIEWS | {"unsupervised": unlabelled}, features)
    output = judge(tmp_path, source="hub", labels="train", unsupervised=True)
    assert read_json(output / "labels.json") == ["ham", "spam"]
    assert [row["label"] for row in stored(output, "test")] == [1 - row["label"] for row in REVIEWS["test"]]
    assert stored(output, "unsupervised") == unlabelled


@pytest.mark.parametrize("beside", [False, True])
def test_a_split_dev_is_validation_as_in_local_files(beside: bool, hub: Any, tmp_path: Path) -> None:
    """Beside one that is called validation it is just another split."""
    other = reviews(8, "other film")
    hub(REVIEWS | {"dev": other} | ({"validation": reviews(10, "own film")} if beside else {}))
    output = judge(tmp_path, source="hub")
    assert stored(output, "dev" if beside else "validation") == other
    assert ("dev" in provenance(output)["rows"]) == beside


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"test": PAIRS["test"]}, "owner/corpus on the Hub has no split `train`"),
        (PAIRS | {"test": [{"de": "x", "fr": "y"}]}, "owner/corpus, test has no column `en` (it has: de, fr)"),
        (ValueError("Pick a config:\nde-en"), "(ValueError: Pick a config: de-en); set `configuration`"),
        (OSError("no route"), f"cannot load owner/corpus at {REVISION} from the Hub (OSError: no route); try"),
    ],
)
def test_what_cannot_be_read_is_one_line(found: Any, message: str, hub: Any, tmp_path: Path) -> None:
    hub(found)
    with pytest.raises(UserError) as caught:
        translate(tmp_path, source="hub")
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not [*(tmp_path / "out").iterdir()]
