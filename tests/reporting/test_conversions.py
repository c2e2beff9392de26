"""The report's section on converted models."""

from pathlib import Path

from transformer.core.files import write_json
from transformer.report.result import Result, conversions, explained

FOUND = {
    "ctranslate2": {
        "as_evaluated_bleu": 41.9,
        "as_evaluated_bleu_minus_exported": -0.1,
        "as_evaluated_equal": 90,
        "bleu": 40.0,
        "bleu_minus_exported": 0.0,
        "bytes": 1_500_000,
        "equal": 100,
        "rows": 100,
        "ties": 0,
        "worst_difference": 2e-06,
    },
    "onnx-int8": {
        "bleu": 39.5,
        "bleu_minus_exported": -0.5,
        "bleu_minus_exported_high": 0.1,
        "bleu_minus_exported_low": -1.0,
        "bytes": 400_000,
        "equal": 80,
        "rows": 100,
        "ties": 0,
        "worst_difference": 0.2,
    },
    "onnx": {"refused": "it is too large"},
}


def test_each_engine_has_its_size_agreement_and_score(tmp_path: Path) -> None:
    write_json(tmp_path / "reports" / "t" / "conversion.json", FOUND)
    (section,) = conversions(Result(tmp_path, "t"))
    assert section.text.endswith("Not onnx: it is too large.")
    assert [[*row] for row in section.tables[0].rows] == [
        ["ctranslate2", "1.50", "100 of 100", "BLEU 40.00", "+0.00", "2e-06"],
        ["ctranslate2, searching as evaluate did", "", "90 of 100", "BLEU 41.90", "-0.10", ""],
        ["onnx-int8", "0.40", "80 of 100", "BLEU 39.50", "-0.50 [-1.00, +0.10]", "0.2"],
    ]


def test_without_conversions_there_is_no_section(tmp_path: Path) -> None:
    assert not [*conversions(Result(tmp_path, "t"))]
    write_json(tmp_path / "reports" / "t" / "conversion.json", {})
    assert not [*conversions(Result(tmp_path, "t"))]


def test_files_that_are_not_this_results_are_not_shown(tmp_path: Path) -> None:
    """A result may lack its views, while those of another lie in the workspace."""
    reports = tmp_path / "reports" / "t"
    write_json(reports / "conversion.json", FOUND)
    write_json(reports / "figures" / "attention.json", {})
    (reports / "figures" / "masks.svg").write_text("<svg/>")
    own, other = Result(tmp_path, "t"), Result(tmp_path, "t", views=frozenset())
    assert own.conversion
    assert own.attention()
    assert explained(own).pictures
    assert not other.conversion
    assert not other.attention()
    assert not explained(other).pictures
