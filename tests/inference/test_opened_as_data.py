"""A bundle is data: what it names takes no memory, runs no code and reads no other file before it is compared."""

import os
import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.builders import classifier, recurrent_classifier, recurrent_seq2seq, seq2seq
from tests.kit import TASKS
from transformer.core.errors import UserError
from transformer.core.files import read_json, write_json
from transformer.families.classifier.network import build_model as build_classifier
from transformer.families.seq2seq.network import build_model
from transformer.inference.bundle import open_bundle
from transformer.inference.sessions import read_parts
from transformer.nn.trained import load_model, save_trained, unique_state
from transformer.workflow.mlflow import save_model


@pytest.fixture
def copied(bundles: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """Copies a task's bundle."""
    return lambda task: Path(shutil.copytree(bundles[task], tmp_path / task))


def refused(bundle: Path) -> str:
    """The one line with which a bundle is refused."""
    with pytest.raises(UserError) as caught:
        open_bundle(bundle, "cpu")
    line = str(caught.value)
    assert len(line.splitlines()) == 1 and str(bundle) in line, line
    return line


SIZES: list[tuple[dict[str, Any], str]] = [
    ({"d_model": 16_000, "d_ff": 64_000}, r"`.*` has shape \(.*16,?\), and by config.json \(.*16000,?\)"),
    ({"d_ff": 10**30}, "Overflow"),
    ({"positions": "sinusoidal", "max_length": 10**8}, "besides the weights"),
    ({"layers": 10**9, "encoder_layers": 10**9}, "less than or equal to 1000"),
]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("sizes", "why"), SIZES)
def test_sizes_are_compared_with_the_weights_before_they_take_memory(
    sizes: dict[str, Any], why: str, task: str, copied: Callable[[str], Path]
) -> None:
    bundle = copied(task)

    config = read_json(bundle / "model/config.json")
    config["model"] |= {name: value for name, value in sizes.items() if name in config["model"]}
    write_json(bundle / "model/config.json", config)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = refused(bundle)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "kilobytes"
    assert re.search(why, line)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_one_line(value: float, task: str, copied: Callable[[str], Path]) -> None:
    path = copied(task) / "model/model.safetensors"
    state = load_file(path)
    name = next(name for name, tensor in state.items() if tensor.is_floating_point())
    state[name].view(-1)[0] = value
    save_file(state, path)
    assert f"`{name}` has values that are not finite" in refused(path.parents[1])


@pytest.mark.parametrize(
    ("model", "build"),
    [
        (seq2seq(tie_embeddings="all", positions="rotary"), build_model),
        (seq2seq(tie_embeddings="target"), build_model),
        (recurrent_seq2seq(attention="bahdanau", cell="lstm"), build_model),
        (classifier(pooling="attention", positions="sinusoidal"), build_classifier),
        (recurrent_classifier(), build_classifier),
    ],
)
def test_a_model_of_every_kind_is_opened_as_it_was_saved(model: Any, build: Any, tmp_path: Path) -> None:
    model = model.float()
    save_trained(tmp_path, model.config, unique_state(model))
    opened = load_model(tmp_path, lambda: build(model.config))
    assert all(torch.equal(opened.state_dict()[name], tensor) for name, tensor in model.state_dict().items())
    assert not any(tensor.is_meta for tensor in (*opened.parameters(), *opened.buffers()))


@pytest.mark.parametrize("name", ["model/model.safetensors", "README.md", "vocab"])
@pytest.mark.parametrize("pipe", [False, True])
def test_only_regular_files_inside_the_folder_are_opened(
    name: str, pipe: bool, copied: Callable[[str], Path], tmp_path: Path
) -> None:
    bundle = copied("sentiment")
    outside = (bundle / name).rename(tmp_path / "outside")
    os.mkfifo(bundle / name) if pipe else (bundle / name).symlink_to(outside)
    line = refused(bundle)
    assert "is not a file of this folder" in line and str(bundle / name) in line


def test_links_inside_the_folder_and_into_dvcs_cache_are_opened(copied: Callable[[str], Path], tmp_path: Path) -> None:
    bundle = copied("sentiment")
    cached = tmp_path / "cache/files/md5/0a" / ("b" * 30)
    cached.parent.mkdir(parents=True)
    (bundle / "model/model.safetensors").rename(cached)
    (bundle / "model/model.safetensors").symlink_to(cached)
    (bundle / "vocab").rename(bundle / "own")
    (bundle / "vocab").symlink_to("own")
    linked = tmp_path / "models/latest"
    linked.parent.mkdir()
    linked.symlink_to(bundle)
    assert len(open_bundle(linked, "cpu").classify(["a", "b"])) == 2
    save_model(tmp_path / "saved", linked, "sentiment")
    assert not [path for path in (tmp_path / "saved").rglob("*") if path.is_symlink()]
    cached.unlink()
    assert "model.safetensors is missing" in refused(bundle)


def test_a_converted_model_names_no_file_outside_its_folder(bundles: dict[str, Path]) -> None:
    sizes = {"positions": 9, "vocabulary": {"../vocab/text": 500}}
    with pytest.raises(UserError, match="lacks the model's sizes"):
        read_parts(bundles["sentiment"], {"model": sizes}, "text")
