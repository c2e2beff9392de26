"""convert: what it writes is the exported model or is not written, and opens without PyTorch and spaCy."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transformer
from tests.conftest import ROOT
from tests.stages import Said
from tests.training.small import own_torch_settings
from transformer.conversion.stage import ConvertInputs, ConvertOutputs, ConvertParams, require_quality
from transformer.core.errors import UserError
from transformer.core.files import read_json, write_table
from transformer.core.schema import Hardware
from transformer.core.task import Task, family_module, open_task
from transformer.export.bundle import open_bundle
from transformer.export.converted import ENGINES, bundle_digest, engines_of, write_surroundings
from transformer.export.exporting import Row
from transformer.nn.layers import Residual
from transformer.text.pretokenize import read_pretokenizers, write_rules

BUNDLES = Path(__file__).parents[1] / "export" / "bundles"
TEXTS = {
    "seq2seq": ["Ein Hund schläft.", "Zwei Frauen lesen ein Buch, und ein Mann singt!", "Kinder spielen."],
    "classifier": ["I hated it.", "The film is a triumph, and the cast shines.", "Not bad at all!"],
}


def copied(name: str, folder: Path) -> Path:
    """An exported model of the fixtures as today's export writes it: with the rules of its tokenizer."""
    bundle = folder / "models" / "bundle"
    shutil.copytree(BUNDLES / name, bundle)
    (bundle / "answers.json").unlink()
    (bundle / "README.md").write_text("# Model card\n")
    write_rules(bundle, read_pretokenizers(bundle).values())
    return bundle


def predictions(bundle: Path, task: Task) -> Path:
    """What evaluate would have written about the model."""
    model: Any = open_bundle(bundle, "cpu")
    rows: list[Row] = []
    for number, text in enumerate(TEXTS[task.family] * 4):
        text = f"{text} {number}" if number > 2 else text
        if task.family == "seq2seq":
            row = {"source": text, "reference": "A dog is sleeping .", "hypothesis": model.translate([text])[0]}
        else:
            (answer,) = model.classify([text])
            row = {
                "text": text,
                "label": "positive",
                "prediction": answer.label,
                "probability": str(answer.probability),
            }
        rows.append({"split": "validation", **row})
    path = bundle.parent / "predictions.tsv"
    write_table(path, list(rows[0]), [[*row.values()] for row in rows])
    return path


class Conversion:
    """The stage's code, run on a fixture."""

    def __init__(self, name: str, folder: Path) -> None:
        self.task = open_task(name.partition("-")[0])
        self.bundle = copied(name, folder)
        self.predictions = predictions(self.bundle, self.task)
        self.outputs = ConvertOutputs(self.bundle.parent / "converted", self.bundle.parent / "conversion.json")
        self.said = Said()

        self.inputs = ConvertInputs(bundle=self.bundle, predictions=self.predictions)
        self.code: Any = family_module(self.task, "convert")

    def params(self, **changes: Any) -> Any:
        hardware = Hardware(device="cpu", precision="fp32", threads=1, deterministic=False)
        leaves: dict[str, Any] = {"formats": ["ctranslate2", "onnx"], "int8": True, "verify_rows": None}
        convert = ConvertParams(**(leaves | changes))
        return self.code.Params.model_construct(convert=convert, hardware=hardware)

    def converter(self) -> Any:
        return self.code._Converter(self.params(), self.inputs)

    def run(self, **changes: Any) -> dict[str, Any]:
        params = self.params(**changes)
        with own_torch_settings():
            self.code.run(self.task, params, inputs=self.inputs, outputs=self.outputs, observer=self.said)
        report: dict[str, Any] = read_json(self.outputs.report)
        return report

    def written(self) -> list[str]:
        return sorted(path.name for path in self.outputs.converted.iterdir())


@pytest.fixture(scope="module", params=["translation-transformer", "sentiment-transformer"])
def converted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Conversion:
    conversion = Conversion(request.param, tmp_path_factory.mktemp(request.param))
    conversion.run()
    return conversion


def answers(model: Any, task: Task) -> list[Any]:
    asked = model.translate if task.family == "seq2seq" else model.classify
    return [*asked([*TEXTS[task.family], ""])]


def test_every_engine_answers_as_the_exported_model(converted: Conversion) -> None:
    assert converted.written() == sorted(ENGINES[1:]) == sorted(engines_of(converted.bundle))
    expected = answers(open_bundle(converted.bundle, "cpu"), converted.task)
    for engine in ("ctranslate2", "onnx"):
        for model in (
            transformer.load(converted.bundle, engine=engine),
            transformer.load(converted.outputs.converted / engine),
        ):
            found = answers(model, converted.task)
            if converted.task.family == "seq2seq":
                assert found == expected
            else:
                assert [each.label for each in found] == [each.label for each in expected]
                assert [each.probability for each in found] == pytest.approx(
                    [e.probability for e in expected], abs=1e-4
                )


def test_the_report_has_sizes_agreement_and_quality(converted: Conversion) -> None:
    report = read_json(converted.outputs.report)
    for engine, figures in report.items():
        size = sum(path.stat().st_size for path in (converted.outputs.converted / engine / "model").iterdir())
        assert (figures["bytes"], figures["rows"]) == (size, 12)
        assert any(name.endswith("_minus_exported") for name in figures)
        if not engine.endswith("-int8"):
            assert figures["equal"] == 12
            assert figures["worst_difference"] < 1e-4
            assert figures["bytes"] > report[f"{engine}-int8"]["bytes"]


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
    shutil.copytree(converted.outputs.converted / engine, folder)
    code = f"import sys; sys.modules['transformer'] = sys.modules['torch'] = None; exec(open({'example.py'!r}).read())"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = (folder / "example.py").read_text(encoding="utf-8")
    assert json.dumps(TEXTS[converted.task.family][0], ensure_ascii=False) in rows
    if not engine.endswith("-int8"):
        first: Any = open_bundle(converted.bundle, "cpu")
        if converted.task.family == "seq2seq":
            target = first.vocabularies["target"]
            ids = first.decode_ids(first.vocabularies["source"].encode(first.pretokenize(TEXTS["seq2seq"][:1])), Said())
            assert done.stdout.split() == " ".join(target.entries(ids[0])).split()
        else:
            label, probability = done.stdout.split()
            (expected,) = first.classify(TEXTS["classifier"][:1])
            assert label == expected.label
            assert float(probability) == pytest.approx(expected.probability, abs=1e-4)


def test_two_conversions_have_the_same_bytes(converted: Conversion, tmp_path: Path) -> None:
    def content(folder: Path) -> dict[str, bytes]:
        files = (path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}

    name = f"{converted.task.name}-transformer"
    again = Conversion(name, tmp_path)
    again.run()
    one, two = content(converted.outputs.converted), content(again.outputs.converted)
    assert one.keys() == two.keys()
    assert [path for path in one if one[path] != two[path]] == []


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
        transformer.load(converted.outputs.converted / "onnx", engine="torch")


@pytest.mark.parametrize("engine", ["onnx", "ctranslate2"])
@pytest.mark.parametrize("breakage", ["missing", "truncated"])
def test_a_broken_model_is_one_line(breakage: str, engine: str, converted: Conversion, tmp_path: Path) -> None:
    folder = tmp_path / engine
    shutil.copytree(converted.outputs.converted / engine, folder)
    for path in (folder / "model").iterdir():
        if path.suffix in (".onnx", ".bin"):
            path.unlink() if breakage == "missing" else path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UserError, match="model") as error:
        transformer.load(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["translation-recurrent", "sentiment-recurrent"])
def test_what_a_format_cannot_hold_is_said_and_the_others_are_written(name: str, tmp_path: Path) -> None:
    conversion = Conversion(name, tmp_path)
    report = conversion.run(int8=False)
    assert report["ctranslate2"] == {"refused": "CTranslate2 has no recurrent layers (model.kind `recurrent`)"}
    assert "not converted to ctranslate2: CTranslate2 has no recurrent layers" in "\n".join(conversion.said.lines)
    if conversion.task.family == "classifier":
        assert conversion.written() == ["onnx"]
        assert report["onnx"]["equal"] == 12
    else:
        assert conversion.written() == []
        assert "refused" in report["onnx"]


def test_nothing_wanted_leaves_an_empty_folder(tmp_path: Path) -> None:
    conversion = Conversion("sentiment-transformer", tmp_path)
    assert conversion.run(formats=[]) == {}
    assert conversion.written() == []


def test_without_validation_rows_it_is_one_line(tmp_path: Path) -> None:
    conversion = Conversion("sentiment-transformer", tmp_path)
    conversion.predictions.write_text(conversion.predictions.read_text().replace("validation\t", "test\t"))
    with pytest.raises(UserError, match="has no validation rows to verify a converted model with"):
        conversion.run()
    assert conversion.written() == []


def one_weight(model: Any) -> None:
    weight = next(weight for name, weight in model.named_parameters() if name.endswith("attention.value.weight"))
    weight.data[0, 0] += 1.0


def the_other_norm(model: Any) -> None:
    config = model.config
    model.config = config.model_copy(update={"model": config.model.model_copy(update={"norm": "post"})})
    for part in model.modules():
        if isinstance(part, Residual):
            assert part.pre
            part.pre = False


def another_order(model: torch.nn.Module) -> None:
    """As with the vocabulary of another model: every entry stands for its neighbour."""
    for part in model.modules():
        if isinstance(part, torch.nn.Embedding):
            part.weight.data = part.weight.data.roll(1, dims=0)


@pytest.mark.parametrize("format", ["ctranslate2", "onnx"])
@pytest.mark.parametrize("corrupt", [one_weight, the_other_norm, another_order])
def test_a_corrupted_conversion_is_found(
    corrupt: Callable[[torch.nn.Module], None], format: str, converted: Conversion, tmp_path: Path
) -> None:
    converter = converted.converter()
    verification = converter._verification  # the exported model's own answers
    other: Any = open_bundle(converted.bundle, "cpu")
    corrupt(other.model)
    converter._exported = other
    conversion = getattr(converter, format)()
    conversion.write(tmp_path / "model", False)
    config = {"engine": format, "model": conversion.model, "example": ""}
    write_surroundings(tmp_path, converted.bundle, **config)
    with pytest.raises(UserError, match=f"{format} differs from the exported model by .*: not written") as error:
        verification.verify(tmp_path, False)
    assert "\n" not in str(error.value)


def test_a_model_that_differs_has_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conversion = Conversion("sentiment-transformer", tmp_path)
    monkeypatch.setattr("transformer.conversion.stage.TOLERANCE", -1.0)
    with pytest.raises(UserError, match="ctranslate2 differs from the exported model by"):
        conversion.run()
    assert [name for name in conversion.written() if not name.startswith(".")] == []
    assert engines_of(conversion.bundle) == []


def test_eight_bits_that_lose_too_much_are_refused() -> None:
    lost = np.linspace(-3.0, -0.6, 1000)
    with pytest.raises(UserError, match=r"onnx-int8 loses 2\.00 points of bleu on .*set convert\.int8 to false"):
        require_quality("onnx-int8", "bleu", 38.0, 40.0, lost)
    assert require_quality("onnx-int8", "bleu", 39.0, 40.0, np.linspace(-2.0, 0.1, 1000))["bleu"] == 39.0


def test_the_digest_is_of_names_and_content(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "model").mkdir(parents=True)
        (tmp_path / name / "model" / "a").write_text("x")
    assert bundle_digest(tmp_path / "one") == bundle_digest(tmp_path / "two")
    (tmp_path / "two" / "model" / "a").rename(tmp_path / "two" / "model" / "b")
    assert bundle_digest(tmp_path / "one") != bundle_digest(tmp_path / "two")
