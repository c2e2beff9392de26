"""The report's section on converted models."""

from pathlib import Path

from transformer.core.files import write_json
from transformer.reporting.result import Files, conversions, explained

FOUND = {
    "ctranslate2": {"bytes": 1_500_000, "rows": 1000},
    "onnx-int8": {"bytes": 400_000, "rows": 1000},
    "onnx": {"refused": "it is too large"},
}


def test_each_engine_has_its_size(tmp_path: Path) -> None:
    write_json(tmp_path / "reports" / "t" / "conversion.json", FOUND)
    (section,) = conversions(Files(tmp_path, "t"))
    assert section.text.endswith("Not onnx: it is too large.")
    assert [[*row] for row in section.tables[0].rows] == [
        ["ctranslate2", "1.50", "1,000"],
        ["onnx-int8", "0.40", "1,000"],
    ]


def test_without_conversions_there_is_no_section(tmp_path: Path) -> None:
    assert not [*conversions(Files(tmp_path, "t"))]
    write_json(tmp_path / "reports" / "t" / "conversion.json", {})
    assert not [*conversions(Files(tmp_path, "t"))]


def test_files_that_are_not_this_results_are_not_shown(tmp_path: Path) -> None:
    """A result may lack its views, while those of another lie in the workspace."""
    reports = tmp_path / "reports" / "t"
    write_json(reports / "conversion.json", FOUND)
    write_json(reports / "figures" / "attention.json", {})
    (reports / "figures" / "masks.svg").write_text("<svg/>")
    own, other = Files(tmp_path, "t"), Files(tmp_path, "t", stages=frozenset())
    assert own.conversion and own.attention() and explained(own).pictures
    assert not (other.conversion or other.attention() or explained(other).pictures)
