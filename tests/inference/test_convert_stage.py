"""convert: what it writes is the exported model, or is not written."""

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.conftest import ROOT
from tests.inference import converting
from tests.inference.converting import Conversion
from transformer.core.errors import UserError
from transformer.core.files import read_json
from transformer.inference.bundle import open_bundle, write_surroundings
from transformer.inference.conversion import require_close, require_quality
from transformer.nn.layers import Residual


def test_what_differs_or_loses_too_much_is_refused() -> None:
    for engine, difference in (("onnx", 2e-4), ("onnx", float("nan")), ("onnx-int8", float("inf"))):
        with pytest.raises(UserError, match=f"^{engine} differs from the exported model"):
            require_close(engine, [0.0, difference, 0.0], "probability")
    with pytest.raises(UserError, match=r"onnx-int8 loses 2\.00 points of bleu on .*set convert\.int8 to false"):
        require_quality("onnx-int8", "bleu", 38.0, 40.0, np.linspace(-3.0, -0.6, 1000))
    assert require_quality("onnx-int8", "bleu", 39.0, 40.0, np.linspace(-2.0, 0.1, 1000))["bleu"] == 39.0


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


def test_two_conversions_have_the_same_bytes_and_no_path(converted: Conversion, tmp_path: Path) -> None:
    def content(folder: Path) -> dict[str, bytes]:
        files = (path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}

    again = Conversion(f"{converted.task.name}-transformer", tmp_path)
    again.run()
    one, two = content(converted.paths.converted), content(again.paths.converted)
    assert [path for path in one | two if one.get(path) != two.get(path)] == []
    for word in (str(ROOT).encode(), str(tmp_path).encode(), b"site-packages"):
        assert [path for path in two if word in two[path]] == []


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


def test_sources_without_a_token_are_not_compared_and_long_ones_are_split_as_by_evaluate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTranslate2 translates nothing of a byte order mark alone, where our search finds something."""
    monkeypatch.setitem(converting.TEXTS, "seq2seq", ["Ein Hund schläft.", "", "Kinder spielen."])
    conversion = Conversion("translation-transformer", tmp_path, method="beam", long_sources="split")
    conversion.run(formats=["onnx"], int8=False)
    figures = conversion.compared("onnx")
    assert figures["equal"] == figures["as_evaluated_equal"] == figures["rows"] == 11


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


@pytest.mark.parametrize(("format", "corrupt"), [("ctranslate2", the_other_norm), ("onnx", one_weight)])
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
