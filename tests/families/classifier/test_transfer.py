"""A classifier that starts from a language model: exactly its weights, its vocabulary, and one line where not."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.builders import LAYERS, classifier
from tests.stages import Stages
from tests.training.small import own_torch_settings
from transformer.core.errors import UserError
from transformer.core.files import read_json, read_rows, sha256, write_json, write_rows
from transformer.core.observer import Observer
from transformer.core.params import stage_params
from transformer.core.paths import Paths
from transformer.core.task import open_task
from transformer.families.classifier import train
from transformer.families.classifier.pretrained import InitialisedParams, lr_scales

PRETRAINED: dict[str, Any] = {
    "model.init": "pretrained",
    "model.pretrained": "models/language/trained",
    "model.max_length": 256,
    "vocab.source": "built",
    "vocab.path": "data/language/vocab",
}


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained language model, and the corpus of the other task."""
    root = tmp_path_factory.mktemp("language")
    with pytest.MonkeyPatch.context() as patch:
        Stages(root, "sentiment", patch, {}).run("download", "tokenize")
        like = {"model.embedding_init": "normal"}
        Stages(root, "language", patch, like).run("download", "tokenize", "build_vocab", "train")
    return root


def sentiment(language: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Stages:
    root = tmp_path / "root"
    shutil.copytree(language, root)
    return Stages(root, "sentiment", monkeypatch, PRETRAINED | changes)


def test_embeddings_and_layers_are_the_language_models_until_an_update_changes_them(
    language: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sentiment(language, tmp_path, monkeypatch, **{"train.learning_rate": 1e-30, "train.epochs": 1})
    found.run("build_vocab")
    assert not [line for line in found.observer.lines if "unknown" in line]
    found.run("train")
    own, their = (load_file(f"models/{task}/trained/model.safetensors") for task in ("sentiment", "language"))
    shared = [name for name in own if name.startswith(("embedding.", "encoder."))]
    assert len(shared) > 10
    for name in shared:
        torch.testing.assert_close(own[name], their[name][: len(own[name])], rtol=0, atol=0)
    record = read_json(Path("models/sentiment/trained/pretraining.json"))
    assert record["sha256"] == sha256(Path("models/language/trained/model.safetensors"))
    assert any(record["sha256"][:12] in line for line in found.observer.lines)
    vocabularies = [Path(f"data/{task}/vocab/text/tokenizer.json").read_bytes() for task in ("sentiment", "language")]
    assert vocabularies[0] == vocabularies[1]
    texts = found.folder / "data/sentiment/tokens/train.jsonl"
    write_rows(texts, iter([{**row, "text": "Этот фильм был хорош"} for row in read_rows(texts)]))
    found.run("build_vocab")
    (line,) = [line for line in found.observer.lines if "unknown" in line]
    assert line.startswith("warning: 100.0% of the tokens of text in train are unknown to this vocabulary")


def test_bundle_card_and_config_are_complete_without_the_language_model(
    language: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sentiment(language, tmp_path, monkeypatch)
    found.run("build_vocab", "train", "evaluate")
    read = sha256(Path("models/language/trained/model.safetensors"))
    shutil.rmtree("models/language")
    shutil.rmtree("data/language")
    found.run("export")
    assert f"| pretraining.sha256 | {read} |" in Path("models/sentiment/bundle/README.md").read_text()
    assert "init" not in json.loads(Path("models/sentiment/bundle/model/config.json").read_text())["model"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.heads": 4}, "model.heads is 4, but models/language/trained has 2: set it to this value"),
        ({"vocab.source": "trained", "vocab.path": "."}, "has another vocabulary than data/sentiment/vocab/text/"),
        ({"vocab.path": "data/nothing"}, "no vocabulary at data/nothing/text/tokenizer.json"),
        ({"model.init": "random"}, "pretrained must not be models/language/trained: set it to data/local/none"),
        ({}, "models/language/trained is a causal model"),
        ({"tokenize.lowercase": False}, "tokenize.lowercase is False, but the texts of the vocabulary"),
    ],
)
def test_what_does_not_fit_is_one_line(
    changes: dict[str, Any], message: str, language: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sentiment(language, tmp_path, monkeypatch, **changes)
    if not changes:  # its weights fit, and are of tokens that see only those before them
        config = found.folder / "models/language/trained/config.json"
        write_json(config, read_json(config) | {"model": read_json(config)["model"] | {"objective": "causal"}})
    with pytest.raises(UserError) as error:
        found.run("tokenize", "build_vocab", "train")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_lower_layers_learn_more_slowly() -> None:
    own: dict[str, Any] = {"layers": 2, "pooling": "mean", "init": "pretrained", "pretrained": "x", "layer_decay": 0.5}
    found = lr_scales(classifier(pooling="mean").float(), InitialisedParams(**LAYERS, **own))
    query = "encoder.layers.{}.attention.query.weight"
    assert (found[query.format(1)], found[query.format(0)], found["embedding.tokens.weight"]) == (0.5, 0.25, 0.125)
    assert "output.weight" not in found


def test_checkpoints_belong_to_one_pretraining(language: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an interrupted training goes on from depends on the content of `Opened.read`."""
    random = {"model.init": "random", "model.pretrained": "data/local/none"}
    for changes, expected in ((random, []), ({}, [Path("models/language/trained")])):
        found = sentiment(language, tmp_path / str(len(expected)), monkeypatch, **changes)
        found.run("build_vocab")
        params = stage_params(found.content, "sentiment", train.Params, where=Path("params.yaml"))
        paths = Paths(data=Path("data/sentiment"), models=Path(), reports=Path())
        with own_torch_settings():
            opened = train.open_training(open_task("sentiment"), params, paths, Observer())
        assert [*opened.read] == expected and opened.save_beside is not None
        Path("trained").mkdir()
        opened.save_beside(Path("trained"))
        assert [path.name for path in Path("trained").iterdir()] == ["pretraining.json"] * len(expected)
