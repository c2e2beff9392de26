"""A masked language model in all stages: scores and how they were measured, answers, converted models, the report."""

import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import transformer
from tests.kit import fresh_profile
from tests.stages import Stages
from transformer.core.errors import UserError
from transformer.core.files import read_json, read_table
from transformer.core.task import open_task
from transformer.families.language.evaluate import _signatures
from transformer.families.language.model import LanguageModel
from transformer.families.language.report import LanguageReporting
from transformer.families.language.scores import METRICS
from transformer.inference.bundle import open_bundle
from transformer.reporting.result import Files

CHANGES: dict[str, Any] = {
    "train.epochs": 2,
    "convert.formats": ["ctranslate2", "onnx"],
    "convert.int8": True,
    "figures.sentences": ["The film is dull."],
}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every stage has run, with few texts."""
    root = tmp_path_factory.mktemp("chain")
    with pytest.MonkeyPatch.context() as patch:
        Stages(root, "sentiment", patch, {}).run("download", "tokenize")
        stages = Stages(root, "language", patch, CHANGES)
        stages.content["language"]["download"]["sample_rows"]["train"] = 300
        stages.run("download", "tokenize", "build_vocab", "train", "evaluate", "figures", "export", "convert")
    return root


@pytest.fixture(scope="module")
def bundle(chain: Path) -> LanguageModel:
    found = transformer.load(str(chain / "models/language/bundle"))
    assert isinstance(found, LanguageModel)
    return found


def rows_of_test(root: Path) -> list[dict[str, str]]:
    return [row for row in read_table(root / "reports/language/predictions.tsv") if row["split"] == "test"]


def test_the_scores_are_those_of_the_texts(chain: Path) -> None:
    figures = read_json(chain / "reports/language/evaluation.json")["test"]
    nats = -sum(float(row["log_probability"]) for row in rows_of_test(chain))
    tokens, right = (sum(int(row[name]) for row in rows_of_test(chain)) for name in ("tokens", "right"))
    assert figures["perplexity"] == pytest.approx(np.exp(nats / tokens), rel=1e-5)
    assert figures["bits_per_byte"] == pytest.approx(nats / np.log(2) / figures["bytes"], rel=1e-5)
    assert figures["accuracy"] == pytest.approx(right / tokens, abs=1e-6)
    for name in METRICS:
        assert figures[f"{name}_low"] <= figures[name] <= figures[f"{name}_high"]


def test_metrics_say_how_they_were_measured(chain: Path) -> None:
    """The alias, `compare` and the baseline go by it."""
    vocab, tokens = chain / "data/language/vocab", chain / "data/language/tokens"

    def of(*, causal: bool = False, familiar: bool = True, cut: bool = False, **changes: int) -> dict[str, str]:
        params: Any = Namespace(**{"mask_stride": 3, "stride": None, "max_texts": 20} | changes)
        engine: Any = Namespace(causal=causal)
        inputs: Any = Namespace(vocab=vocab, tokens=tokens)
        return _signatures(engine, params, inputs, familiar=familiar, cut=cut)

    stride = fresh_profile("smoke")["language"]["evaluate"]["mask_stride"]
    assert read_json(chain / "reports/language/evaluation.json")["signatures"] == of(mask_stride=stride)
    own, causal, unknown = of(), of(causal=True), of(causal=True, familiar=False)
    assert own["bits_per_byte"] == own["perplexity"], "what is hidden of a word depends on the vocabulary"
    assert causal["perplexity"].startswith(causal["bits_per_byte"] + "|vocabulary:")
    for other in (causal, of(mask_stride=4), of(stride=64), of(cut=True)):
        assert not own.items() & other.items()
    assert causal.items() & unknown.items() == {(name, causal[name]) for name in ("perplexity", "accuracy")}
    assert causal == of(causal=True, mask_stride=4), "a causal model hides nothing"


def test_results_are_compared_by_their_predictions(chain: Path) -> None:
    rows, reporting = rows_of_test(chain), LanguageReporting()
    (found,) = reporting.scored(open_task("language"), (rows,), 50)
    figures = read_json(chain / "reports/language/evaluation.json")["test"]
    for name in METRICS:
        assert found[name][0] == pytest.approx(figures[name], abs=1e-5, rel=1e-5)
    other = [row | {"log_probability": "-1.0"} for row in rows[:3]] + rows[3:]
    assert [reporting.differing(name, rows, other) for name in ("bits_per_byte", "accuracy")] == [3, 0]


def test_duplicates_are_left_out_and_a_baseline_has_the_same_columns(
    chain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(shutil.copytree(chain, tmp_path / "root"))
    train, test = (root / f"data/language/corpus/{split}.jsonl" for split in ("train", "test"))
    train.write_text(train.read_text() + test.read_text().splitlines(keepends=True)[0])
    baseline = root / "data/local/baseline/language/own.tsv"
    baseline.parent.mkdir(parents=True)
    shutil.copy(root / "reports/language/predictions.tsv", baseline)
    stages = Stages(root, "language", monkeypatch, CHANGES | {"evaluate.baseline": "own.tsv"})
    stages.run("evaluate")
    figures = read_json(root / "reports/language/evaluation.json")["test"]
    assert figures["accuracy_minus_baseline"] == figures["perplexity_minus_baseline"] == 0
    assert figures["duplicates"] >= 1
    right, tokens = (sum(int(row[name]) for row in rows_of_test(root)[1:]) for name in ("right", "tokens"))
    assert figures["accuracy_without_duplicates"] == pytest.approx(right / tokens, abs=1e-6)
    baseline.write_text("split\ttokens\tlog_probability\ntest\t1\t-1.0\n")
    with pytest.raises(UserError, match="has a row without column `right`"):
        stages.run("evaluate")


def test_the_bundle_fills_scores_and_embeds(chain: Path, bundle: LanguageModel) -> None:
    assert len(bundle.fill("the film is [MASK] .", 3)) == 3
    (ids,) = bundle.encode([text := "The film is dull."])
    np.testing.assert_allclose(bundle.embed([text])[0], bundle.engine.states(ids[None])[0].mean(axis=0), rtol=1e-5)
    row = rows_of_test(chain)[0]
    assert bundle.score([row["text"]])[0].log_probability == pytest.approx(float(row["log_probability"]), abs=1e-2)
    card = (chain / "models/language/bundle/README.md").read_text()
    assert "model.fill(" in card and "| validation.bits_per_byte |" in card
    metric = read_json(chain / "models/language/bundle/config.json")["main_metric"]
    assert metric["name"] == "validation.bits_per_byte" and not metric["higher_is_better"]


def test_onnx_holds_the_model_and_ctranslate2_says_why_not(chain: Path, bundle: LanguageModel) -> None:
    found = read_json(chain / "reports/language/conversion.json")
    assert "objective `masked`" in found["ctranslate2"]["refused"]
    assert {"onnx", "onnx-int8"} <= found.keys()
    converted, text = open_bundle(chain / "models/language/converted/onnx"), "The film is [MASK] dull."
    assert isinstance(converted, LanguageModel)
    assert [each.words for each in converted.fill(text, 3)] == [each.words for each in bundle.fill(text, 3)]
    np.testing.assert_allclose(converted.embed([text]), bundle.embed([text]), atol=1e-4)


def test_the_report_says_how_good_the_model_is(chain: Path) -> None:
    task, result = open_task("language"), Files(chain, "language")
    assert LanguageReporting().summary(result).startswith("Perplexity ")
    assert "of the tokens right" in next(LanguageReporting().weaknesses(task, result))
    titles = [section.title for section in LanguageReporting().sections(task, result)]
    assert {"Where in the context", "Samples", "Least expected texts"} < {*titles}
