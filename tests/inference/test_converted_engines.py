"""Converted models open without PyTorch and spaCy, and answer as the exported ones."""

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import transformer
from tests.conftest import ROOT
from tests.inference.converting import TEXTS, Conversion, answers
from tests.stages import Said
from transformer.core.errors import UserError
from transformer.core.task import ENGINES
from transformer.inference.bundle import engines_of, open_bundle


def test_every_engine_answers_as_the_exported_model(converted: Conversion) -> None:
    assert converted.written() == sorted(ENGINES[1:]) == sorted(engines_of(converted.bundle))
    expected = answers(open_bundle(converted.bundle, "cpu"), converted.task)
    for engine in ("ctranslate2", "onnx"):
        for model in (
            transformer.load(converted.bundle, engine=engine),
            transformer.load(converted.paths.converted / engine),
        ):
            found = answers(model, converted.task)
            if converted.task.family.name == "seq2seq":
                assert found == expected
            else:
                assert [each.label for each in found] == [each.label for each in expected]
                assert [each.probability for each in found] == pytest.approx(
                    [e.probability for e in expected], abs=1e-4
                )


LOADED = """
import sys, transformer
model = transformer.load(sys.argv[1], engine=sys.argv[2])
print((model.translate if model.family == "seq2seq" else model.classify)(["Ein Hund schläft."]))
unwanted = {"torch", "spacy", "pandas", "mlflow", "dvc", "onnx", "sklearn", "sacrebleu"} & sys.modules.keys()
sys.exit(f"loaded: {unwanted}" if unwanted else 0)
"""


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_neither_pytorch_nor_spacy_is_loaded(engine: str, converted: Conversion) -> None:
    command = [sys.executable, "-c", LOADED, str(converted.bundle), engine]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_the_folders_own_example_runs_without_this_package(engine: str, converted: Conversion, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    shutil.copytree(converted.paths.converted / engine, folder)
    code = f"import sys; sys.modules['transformer'] = sys.modules['torch'] = None; exec(open({'example.py'!r}).read())"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = (folder / "example.py").read_text(encoding="utf-8")
    assert json.dumps(TEXTS[converted.task.family.name][0], ensure_ascii=False) in rows
    if not engine.endswith("-int8"):
        first: Any = open_bundle(converted.bundle, "cpu")
        if converted.task.family.name == "seq2seq":
            target = first.vocabularies["target"]
            ids = first.decode_ids(first.vocabularies["source"].encode(first.pretokenize(TEXTS["seq2seq"][:1])), Said())
            assert done.stdout.split() == " ".join(target.entries(ids[0])).split()
        else:
            label, probability = done.stdout.split()
            (expected,) = first.classify(TEXTS["classifier"][:1])
            assert label == expected.label
            assert float(probability) == pytest.approx(expected.probability, abs=1e-4)


def test_another_model_than_the_bundle_is_not_taken_for_it(converted: Conversion, tmp_path: Path) -> None:
    shutil.copytree(converted.bundle.parent, tmp_path / "moved")
    bundle = tmp_path / "moved" / "bundle"
    assert transformer.load(bundle, engine="onnx")
    config = bundle / "config.json"
    config.write_text(config.read_text().replace("{", '{\n  "note": 1,', 1))
    assert engines_of(bundle) == []
    with pytest.raises(UserError, match="was made from another model than"):
        transformer.load(bundle, engine="onnx")
    shutil.rmtree(tmp_path / "moved" / "converted")
    with pytest.raises(UserError, match="is not converted for engine `onnx`"):
        transformer.load(bundle, engine="onnx")


def test_a_link_to_a_bundle_has_its_conversions(converted: Conversion, tmp_path: Path) -> None:
    (tmp_path / "bundle").symlink_to(converted.bundle)
    assert engines_of(tmp_path / "bundle") == engines_of(converted.bundle)
    assert transformer.load(tmp_path / "bundle", engine="onnx")


def test_a_broken_conversion_is_none_of_the_engines(converted: Conversion, tmp_path: Path) -> None:
    shutil.copytree(converted.bundle.parent, tmp_path / "moved")
    (tmp_path / "moved" / "converted" / "onnx" / "config.json").write_text("{")
    (tmp_path / "moved" / "converted" / "ctranslate2" / "config.json").write_text("[]")
    assert engines_of(tmp_path / "moved" / "bundle") == ["ctranslate2-int8", "onnx-int8"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"engine": "foo"}, "names no engine, but 'foo'"),
        ({"engine": None}, "names no engine"),
        ({"decoding": {}}, "decoding"),
    ],
)
def test_a_damaged_config_is_one_line(
    change: dict[str, Any], message: str, converted: Conversion, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(converted.paths.converted / "onnx", tmp_path / "onnx"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({k: v for k, v in (config | change).items() if v != {}}))
    with pytest.raises(UserError, match=message) as error:
        transformer.load(folder)
    assert "\n" not in str(error.value)


def test_a_model_of_a_relative_path_is_opened_again_elsewhere(
    converted: Conversion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(converted.paths.converted)
    for engine in ("onnx", "ctranslate2"):
        model = transformer.load(engine)
        expected, pickled = answers(model, converted.task), pickle.dumps(model)
        monkeypatch.chdir(tmp_path)
        assert answers(pickle.loads(pickled), converted.task) == expected
        monkeypatch.chdir(converted.paths.converted)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"engine": "tensorrt"}, "there is no engine `tensorrt`: use one of torch, ctranslate2"),
        ({"engine": "onnx", "device": "cuda"}, "the engine `onnx` runs on the CPU, not on `cuda`"),
    ],
)
def test_what_an_engine_cannot_do_is_one_line(given: dict[str, str], message: str, converted: Conversion) -> None:
    with pytest.raises(UserError, match=message):
        transformer.load(converted.bundle, **given)


def test_a_converted_folder_is_of_one_engine(converted: Conversion) -> None:
    with pytest.raises(UserError, match="is a model for the engine `onnx`, not `torch`"):
        transformer.load(converted.paths.converted / "onnx", engine="torch")


FORKED = """
import os, signal, sys, transformer
model = transformer.load(sys.argv[1], engine=sys.argv[2])
ask = model.translate if model.family == "seq2seq" else model.classify
texts = ["Ein Hund schläft."] * 40
expected = ask(texts)
child = os.fork()
if not child:
    signal.alarm(20)
    same = [str(each)[:20] for each in ask(texts)] == [str(each)[:20] for each in expected]
    os._exit(0 if same else 1)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("engine", ["onnx", "ctranslate2"])
def test_a_forked_child_answers(engine: str, converted: Conversion) -> None:
    """An engine's threads do not survive a fork: CTranslate2 waited for them forever."""
    command = [sys.executable, "-c", FORKED, str(converted.bundle), engine]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("engine", ["onnx", "ctranslate2"])
def test_a_pickled_model_answers(engine: str, converted: Conversion) -> None:
    """As data loaders with processes and MLflow's batch scoring by Spark pass a model on."""
    model = transformer.load(converted.bundle, engine=engine)
    assert answers(pickle.loads(pickle.dumps(model)), converted.task) == answers(model, converted.task)


@pytest.mark.parametrize("engine", ["onnx", "ctranslate2"])
def test_another_models_vocabulary_is_one_line(engine: str, converted: Conversion, tmp_path: Path) -> None:
    folder = tmp_path / engine
    shutil.copytree(converted.paths.converted / engine, folder)
    tokenizer = next((folder / "vocab").rglob("tokenizer.json"))
    content = json.loads(tokenizer.read_text(encoding="utf-8"))
    entries = content["model"]["vocab"]
    del entries[max(entries, key=lambda entry: entries[entry])]
    tokenizer.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UserError, match=r"the vocabulary has \d+ tokens, but the model \d+") as error:
        transformer.load(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("engine", ["onnx", "ctranslate2"])
@pytest.mark.parametrize("breakage", ["missing", "truncated"])
def test_a_broken_model_is_one_line(breakage: str, engine: str, converted: Conversion, tmp_path: Path) -> None:
    folder = tmp_path / engine
    shutil.copytree(converted.paths.converted / engine, folder)
    for path in (folder / "model").iterdir():
        if path.suffix in (".onnx", ".bin"):
            path.unlink() if breakage == "missing" else path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UserError, match="model") as error:
        transformer.load(folder)
    assert "\n" not in str(error.value)
