"""convert: what it writes is the exported model, or is not written."""

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.inference import converting
from tests.inference.converting import Conversion
from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.inference.bundle import bundle_digest, engines_of, open_bundle, write_surroundings
from transformer.inference.conversion import require_close, require_quality
from transformer.nn.layers import Residual


@pytest.mark.parametrize("engine", ["onnx", "onnx-int8"])
@pytest.mark.parametrize("difference", [float("nan"), float("inf")])
def test_answers_that_are_no_numbers_are_refused(engine: str, difference: float) -> None:
    with pytest.raises(UserError, match=f"^{engine} differs from the exported model"):
        require_close(engine, [0.0, difference, 0.0], "probability")


def test_the_report_has_sizes_and_the_rest_is_said(converted: Conversion) -> None:
    report = read_json(converted.paths.conversion)
    for engine, written in report.items():
        size = sum(path.stat().st_size for path in (converted.paths.converted / engine / "model").iterdir())
        assert written == {"bytes": size, "rows": 12}
        figures = converted.compared(engine)
        assert any(name.endswith("_minus_exported") for name in figures)
        if not engine.endswith("-int8"):
            assert figures["equal"] == 12
            assert figures["worst_difference"] < 1e-4
            assert written["bytes"] > report[f"{engine}-int8"]["bytes"]


def test_two_conversions_have_the_same_bytes(converted: Conversion, tmp_path: Path) -> None:
    def content(folder: Path) -> dict[str, bytes]:
        files = (path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}

    name = f"{converted.task.name}-transformer"
    again = Conversion(name, tmp_path)
    again.run()
    one, two = content(converted.paths.converted), content(again.paths.converted)
    assert one.keys() == two.keys()
    assert [path for path in one if one[path] != two[path]] == []


@pytest.mark.parametrize("name", ["translation-recurrent", "sentiment-recurrent"])
def test_what_a_format_cannot_hold_is_said_and_the_others_are_written(name: str, tmp_path: Path) -> None:
    conversion = Conversion(name, tmp_path)
    report = conversion.run(int8=False)
    assert report["ctranslate2"] == {"refused": "CTranslate2 has no recurrent layers (model.kind `recurrent`)"}
    assert "not converted to ctranslate2: CTranslate2 has no recurrent layers" in "\n".join(conversion.said.lines)
    if conversion.task.family.name == "classifier":
        assert conversion.written() == ["onnx"]
        assert conversion.compared("onnx")["equal"] == 12
    else:
        assert conversion.written() == []
        assert "refused" in report["onnx"]


def test_a_source_without_a_token_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one of a byte order mark alone: CTranslate2 translates nothing, where our search writes something."""
    monkeypatch.setitem(converting.TEXTS, "seq2seq", ["Ein Hund schläft.", "", "Kinder spielen."])
    conversion = Conversion("translation-transformer", tmp_path)
    conversion.run(int8=False)
    assert [conversion.compared(engine)["equal"] for engine in ("ctranslate2", "onnx")] == [11, 11]


def test_nothing_wanted_leaves_an_empty_folder(tmp_path: Path) -> None:
    conversion = Conversion("sentiment-transformer", tmp_path)
    assert conversion.run(formats=[]) == {}
    assert conversion.written() == []


@pytest.mark.parametrize("engine", ["ctranslate2", "onnx"])
def test_a_model_that_cannot_be_written_is_one_line(engine: str, tmp_path: Path) -> None:
    """The libraries open its files themselves; a limit on their size stands for a full disk."""
    conversion = Conversion("sentiment-transformer", tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(UserError, match=rf"^cannot write .*{engine}/model.*: File too large; free some disk space"):
            conversion.run(formats=[engine], int8=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
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
    verification = converter.verification  # the exported model's own answers
    other: Any = open_bundle(converted.bundle, "cpu")
    corrupt(other.model)
    converter.exported = other
    conversion = getattr(converter, format)()
    conversion.write(tmp_path / "model", False)
    config = {"engine": format, "model": conversion.model, "example": ""}
    write_surroundings(tmp_path, converted.bundle, **config)
    with pytest.raises(UserError, match=f"{format} differs from the exported model by .*: not written") as error:
        verification.verify(tmp_path, False)
    assert "\n" not in str(error.value)


def test_a_model_that_differs_has_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conversion = Conversion("sentiment-transformer", tmp_path)
    monkeypatch.setattr("transformer.inference.conversion.TOLERANCE", -1.0)
    with pytest.raises(UserError, match="ctranslate2 differs from the exported model by"):
        conversion.run()
    assert conversion.written() == []
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


def test_what_beams_found_for_sources_in_pieces_is_compared_with_the_same(tmp_path: Path) -> None:
    """`evaluate` splits a source that the model has no positions for, so the comparison must."""
    conversion = Conversion("translation-transformer", tmp_path, method="beam", long_sources="split")
    conversion.run(formats=["onnx"], int8=False)
    figures = conversion.compared("onnx")
    assert figures["as_evaluated_equal"] == figures["rows"]
