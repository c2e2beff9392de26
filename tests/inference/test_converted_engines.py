"""Converted models open without PyTorch and spaCy, and answer as the exported ones."""

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import transformer
from tests.conftest import ROOT
from tests.inference.converting import TEXTS, Conversion, answers
from tests.stages import Said
from transformer.core.errors import UserError
from transformer.core.files import read_json, write_json
from transformer.core.task import ENGINES
from transformer.inference.bundle import engines_of, open_bundle

BOTH = pytest.mark.parametrize("engine", ["onnx", "ctranslate2"])


def test_every_engine_answers_as_the_exported_model(converted: Conversion, tmp_path: Path) -> None:
    assert converted.written() == sorted(ENGINES[1:]) == sorted(engines_of(converted.bundle))
    expected = answers(open_bundle(converted.bundle, "cpu"), converted.task)
    linked = tmp_path / "bundle"
    linked.symlink_to(converted.bundle)
    for engine in ("ctranslate2", "onnx"):
        alone = pickle.loads(pickle.dumps(transformer.load(converted.paths.converted / engine)))
        for model in (transformer.load(linked, engine=engine), alone):
            found = answers(model, converted.task)
            if converted.task.family.name == "seq2seq":
                assert found == expected
            else:
                assert [each.label for each in found] == [each.label for each in expected]
                chances = [each.probability for each in expected]
                assert [each.probability for each in found] == pytest.approx(chances, abs=1e-4)


LOADED = """
import sys, transformer
model = transformer.load(sys.argv[1], engine=sys.argv[2])
print((model.translate if model.family == "seq2seq" else model.classify)(["Ein Hund schläft."]))
unwanted = {"torch", "spacy", "pandas", "mlflow", "dvc", "onnx", "sklearn", "sacrebleu"} & sys.modules.keys()
sys.exit(f"loaded: {unwanted}" if unwanted else 0)
"""


@BOTH
def test_neither_pytorch_nor_spacy_is_loaded(engine: str, converted: Conversion) -> None:
    command = [sys.executable, "-c", LOADED, str(converted.bundle), engine]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ALONE = """
import sys
sys.modules.update(dict.fromkeys(("transformer", "torch", "onnx", "tokenizers", "pydantic")))
exec(open("example.py").read())
"""


@BOTH
def test_the_folders_own_example_runs_without_this_package(engine: str, converted: Conversion, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    shutil.copytree(converted.paths.converted / engine, folder)
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    asked = TEXTS[converted.task.family.name][:1]
    assert json.dumps(asked[0], ensure_ascii=False) in (folder / "example.py").read_text(encoding="utf-8")
    model: Any = open_bundle(converted.bundle, "cpu")
    if converted.task.family.name == "seq2seq":
        (ids,) = model.decode_ids(model.vocabularies["source"].encode(model.pretokenize(asked)), Said())
        assert done.stdout.split() == " ".join(model.vocabularies["target"].entries(ids)).split()
    else:
        label, probability = done.stdout.split()
        (expected,) = model.classify(asked)
        assert label == expected.label and float(probability) == pytest.approx(expected.probability, abs=1e-4)


def test_another_model_than_the_bundle_is_not_taken_for_it(converted: Conversion, tmp_path: Path) -> None:
    shutil.copytree(converted.bundle.parent, tmp_path / "moved")
    bundle = tmp_path / "moved" / "bundle"
    assert transformer.load(bundle, engine="onnx")
    for engine, content in (("ctranslate2", "{"), ("ctranslate2-int8", "[]")):
        (tmp_path / "moved" / "converted" / engine / "config.json").write_text(content)
    assert engines_of(bundle) == ["onnx", "onnx-int8"]
    config = bundle / "config.json"
    config.write_text(config.read_text().replace("{", '{\n  "note": 1,', 1))
    assert engines_of(bundle) == []
    with pytest.raises(UserError, match="was made from another model than"):
        transformer.load(bundle, engine="onnx")
    shutil.rmtree(tmp_path / "moved" / "converted")
    with pytest.raises(UserError, match="is not converted for engine `onnx`"):
        transformer.load(bundle, engine="onnx")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"engine": "tensorrt"}, "there is no engine `tensorrt`: use one of torch, ctranslate2"),
        ({"engine": "onnx", "device": "cuda"}, "the engine `onnx` runs on the CPU, not on `cuda`"),
        ({"source": "converted/onnx", "engine": "torch"}, "is a model for the engine `onnx`, not `torch`"),
    ],
)
def test_what_an_engine_cannot_do_is_one_line(given: dict[str, str], message: str, converted: Conversion) -> None:
    given = dict(given)
    with pytest.raises(UserError, match=message):
        transformer.load(converted.bundle.parent / given.pop("source", "bundle"), **given)


FORKED = """
import os, signal, sys, torch, transformer
torch.set_num_threads(2)
model = transformer.load(sys.argv[1], engine=sys.argv[2], device="cpu")
ask = model.translate if model.family == "seq2seq" else model.classify
texts = ["Ein Hund schläft auf der Wiese. " * 4] * 16
expected = ask(texts)
torch.randn(700, 700) @ torch.randn(700, 700)
child = os.fork()
if not child:
    signal.alarm(20)
    os._exit(0 if [str(each)[:20] for each in ask(texts)] == [str(each)[:20] for each in expected] else 1)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("engine", ["torch", "onnx", "ctranslate2"])
def test_a_forked_child_answers(engine: str, converted: Conversion) -> None:
    """An engine's threads do not survive a fork: CTranslate2 waited for them forever."""
    command = [sys.executable, "-c", FORKED, str(converted.bundle), engine]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def without_the_last_entry(folder: Path) -> None:
    path = next(folder.rglob("tokenizer.json"))
    content = read_json(path)
    entries = content["model"]["vocab"]
    del entries[max(entries, key=entries.get)]
    write_json(path, content)


def weights(folder: Path) -> Path:
    return max((folder / "model").iterdir(), key=lambda path: path.stat().st_size)


def of_no_engine(folder: Path) -> None:
    write_json(folder / "config.json", read_json(folder / "config.json") | {"engine": "foo"})


Damage = Callable[[Path], object]
DAMAGES: list[tuple[Damage, str]] = [
    (lambda folder: weights(folder).unlink(), "model"),
    (lambda folder: weights(folder).write_bytes(b"x" * 1000), "model"),
    (without_the_last_entry, r"has \d+ tokens, but the model \d+"),
    (of_no_engine, "names no engine, but"),
]


@BOTH
@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_a_broken_model_is_one_line(
    damage: Damage, message: str, engine: str, converted: Conversion, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(converted.paths.converted / engine, tmp_path / engine))
    damage(folder)
    with pytest.raises(UserError, match=message) as error:
        transformer.load(folder)
    assert "\n" not in str(error.value)
