import json
from pathlib import Path

import pytest

from transformer.results.chain import Chain, Stage
from transformer.tracking.record import Point, changes, curves, dataset_splits, final_figures, hyperparameters


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    (tmp_path / "history.tsv").write_text("epoch\tstep\ttrain_loss\tnote\n1\t10\t0.5\t\n2\t20.0\t0.25\tnan\n")
    (tmp_path / "training.json").write_text(json.dumps({"train_loss": 0.25, "device": "cpu", "seconds": 3, "on": True}))
    evaluation = {"test": {"bleu": 37.5, "f1@2": 1}, "signatures": {"bleu": "nrefs:1"}, "gone": None, "seconds": 4}
    (tmp_path / "evaluation.json").write_text(json.dumps(evaluation))
    (tmp_path / "vocabulary.json").write_text(json.dumps({"size": {"de": 7}}))
    return tmp_path


def test_curves_run_over_steps_and_leave_empty_cells_out(reports: Path) -> None:
    assert curves(reports) == [Point("train_loss", 0.5, 10), Point("train_loss", 0.25, 20)]


def test_figures_are_flat_and_take_no_name_twice(reports: Path) -> None:
    numbers, strings = final_figures(reports)
    assert numbers == {
        "training.train_loss": 0.25,
        "seconds": 3.0,
        "test.bleu": 37.5,
        "test.f1_2": 1.0,
        "evaluation.seconds": 4.0,
        "size.de": 7.0,
    }
    assert strings == {"device": "cpu", "signatures.bleu": "nrefs:1"}


def test_only_hyperparameters_are_parameters() -> None:
    sections = {
        "sentiment.download": {"path": "x"},
        "sentiment.train": {"learning_rate": 1e-05, "layers": [2, 3], "schedule": None, "clip": 1.0, "name": "adam"},
        "sentiment.train.class_weights": {"größer": 1, "C#": 3},
        "sentiment.model.d_model": 8,
        "sentiment.export": {"alias": "best"},
        "hardware": {"threads": 2},
    }
    chain = Chain("sentiment", (Stage("train", {"params.yaml": sections}, {}, {}),))
    assert hyperparameters(chain) == {
        "train.learning_rate": "1e-05",
        "train.layers": "[2, 3]",
        "train.schedule": "null",
        "train.clip": "1",
        "train.name": "adam",
        "train.class_weights.C_": "3",  # MLflow does not allow #
        "train.class_weights.größer": "1",
        "model.d_model": "8",
        "hardware.threads": "2",
    }


def test_changes_do_not_depend_on_the_order_of_parameters() -> None:
    """params.yaml has its own, and DVC writes another into dvc.lock."""

    def chain(*sections: dict[str, dict[str, int]]) -> Chain:
        params = {name: values for section in sections for name, values in section.items()}
        return Chain("sentiment", (Stage("train", {"params.yaml": params}, {}, {}),))

    train, model = {"sentiment.train": {"warmup": 9, "epochs": 2}}, {"sentiment.model": {"layers": 3}}
    base = chain({"sentiment.train": {"warmup": 1, "epochs": 1}}, {"sentiment.model": {"layers": 1}})
    other_way = {"sentiment.train": {"epochs": 2, "warmup": 9}}
    assert changes(chain(train, model), base) == changes(chain(model, other_way), base) == "layers=3 epochs=2 warmup=9"


def test_splits_have_digests_of_their_content(tmp_path: Path) -> None:
    provenance = {"source": "hub", "revision": "r1", "rows": {"test": 1, "train": 2}, "sha256": {"test": "a" * 64}}
    provenance["sha256"] |= {"train": "b" * 64}  # type: ignore[operator]
    (tmp_path / "provenance.json").write_text(json.dumps(provenance))
    test, train = dataset_splits("sentiment", tmp_path)
    assert (test.name, test.digest, test.context) == ("sentiment/test", "a" * 36, "testing")
    assert (train.context, json.loads(train.profile)) == ("training", {"num_rows": 2})
    assert json.loads(train.source) == {"source": "hub", "revision": "r1"}
