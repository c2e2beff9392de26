"""A generator and a discriminator in all stages: scores, answers, converted models, and a classifier."""

import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import transformer
from tests.kit import fresh_profile
from tests.language.test_transfer import BUT_THE_LAST
from tests.stages import Stages
from transformer.core.errors import UserError
from transformer.core.files import read_json, read_table, sha256, write_json
from transformer.core.task import open_task
from transformer.export.bundle import open_bundle
from transformer.families.language import options, report
from transformer.families.language.decoding.predictor import LanguageModel
from transformer.families.language.evaluation import compare
from transformer.families.language.evaluation.detection_scores import METRICS
from transformer.families.language.evaluation.evaluate import COLUMNS, _signatures
from transformer.report.result import Result

LEARNING: dict[str, Any] = {
    "model.objective": "replaced",
    "model.generator_width": 0.5,
    "model.d_model": 32,
    "model.d_ff": 64,
    "train.epochs": 12,
    "train.batch_size": 32,
    "train.learning_rate": 5e-3,
    "train.warmup": 50,
    "model.embedding_init": "normal",
    "convert.formats": ["ctranslate2", "onnx"],
    "convert.int8": True,
    "figures.sentences": ["The film is dull."],
}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every stage has run, with few texts."""
    root = tmp_path_factory.mktemp("chain")
    with pytest.MonkeyPatch.context() as patch:
        stages = trained(root, patch, texts=300)
        stages.run("evaluate", "figures", "export", "convert")
        (root / "said").write_text("\n".join(stages.observer.lines))
    return root


def trained(root: Path, patch: pytest.MonkeyPatch, *, texts: int) -> Stages:
    """The stages up to train."""
    Stages(root, "sentiment", patch, {}).run("download", "tokenize")
    stages = Stages(root, "language", patch, LEARNING)
    stages.content["language"]["download"]["sample_rows"]["train"] = texts
    stages.run("download", "tokenize", "build_vocab", "train")
    return stages


@pytest.fixture(scope="module")
def bundle(chain: Path) -> LanguageModel:
    found = transformer.load(str(chain / "models/language/bundle"))
    assert isinstance(found, LanguageModel)
    return found


@pytest.mark.stress
def test_both_learn_from_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained(tmp_path, monkeypatch, texts=3000).run("evaluate")
    rows = [{k: float(v) for k, v in row.items()} for row in read_table(tmp_path / "reports/language/history.tsv")]
    first, last = rows[0], rows[-1]
    assert last["validation_perplexity"] < 0.7 * first["validation_perplexity"]
    assert last["validation_detection_loss"] < first["validation_detection_loss"]
    loss = np.log(last["validation_perplexity"]) + 50 * last["validation_detection_loss"]
    assert last["validation_loss"] == pytest.approx(loss)
    figures = read_json(tmp_path / "reports/language/evaluation.json")["validation"]
    assert figures["detection_auc"] > 0.6
    assert figures["detection_accuracy"] >= figures["undetected_accuracy"] - 0.01
    assert figures["generator_perplexity"] > 1 and "perplexity" not in figures


def test_the_scores_are_those_of_the_counts(chain: Path) -> None:
    figures = read_json(chain / "reports/language/evaluation.json")["test"]
    rows = [row for row in read_table(chain / "reports/language/predictions.tsv") if row["split"] == "test"]
    counts = {name: sum(int(row[name]) for row in rows) for name in ("judged", "replaced", "found", "false_alarms")}
    apart = fresh_profile("smoke")["language"]["evaluate"]["apart"]
    assert counts["judged"] == apart * sum(int(row["tokens"]) for row in rows)  # none is shorter than `apart` tokens
    assert figures["detection_recall"] == pytest.approx(counts["found"] / counts["replaced"], abs=1e-6)
    assert figures["undetected_accuracy"] == pytest.approx(1 - counts["replaced"] / counts["judged"], abs=1e-6)
    wrong = counts["replaced"] - counts["found"] + counts["false_alarms"]
    assert figures["detection_accuracy"] == pytest.approx(1 - wrong / counts["judged"], abs=1e-6)
    assert figures["detection_accuracy_low"] <= figures["detection_accuracy"] <= figures["detection_accuracy_high"]


def test_metrics_say_how_they_were_measured(chain: Path, tmp_path: Path) -> None:
    """The alias, `compare` and the baseline go by it."""
    found = read_json(chain / "reports/language/evaluation.json")["signatures"]
    apart = fresh_profile("smoke")["language"]["evaluate"]["apart"]
    assert found["detection_auc"].startswith(f"objective:replaced|apart:{apart}|stride:none|texts:all|split:")
    assert "vocabulary" in found["generator_perplexity"] and "perplexity" not in found
    weights = sha256(chain / "models/language/trained/model.safetensors")[:12]
    assert found["detection_auc"].endswith(f"|generator:{weights}"), "it depends on what another model replaces"
    assert "|generator:" not in found["generator_perplexity"]

    def of(*, causal: bool = False, familiar: bool = True, cut: bool = False, **changes: int) -> dict[str, str]:
        engine: Any = Namespace(causal=causal, detects=False)
        params: Any = Namespace(**{"apart": 7, "stride": None, "max_texts": 20} | changes)
        inputs: Any = Namespace(vocab=chain / "data/language/vocab", tokens=tokens)
        return _signatures(engine, params, inputs, familiar=familiar, cut=cut)

    tokens = chain / "data/language/tokens"
    own, causal = of(), of(causal=True)
    assert own["bits_per_byte"] == own["perplexity"], "what is hidden of a word depends on the vocabulary"
    assert own["perplexity"].startswith("objective:masked|apart:7|stride:none|texts:all|split:")
    assert causal["perplexity"].startswith(causal["bits_per_byte"] + "|vocabulary:")
    assert "|stride:64|predicted:centrally|" in of(stride=64)["perplexity"], "older ones were predicted elsewhere"
    assert "predicted" not in of(causal=True, stride=64)["perplexity"]
    for other in (causal, of(apart=3), of(stride=64), of(cut=True)):
        assert not own.items() & other.items()
    unknown = of(causal=True, familiar=False)
    assert causal.items() & unknown.items() == {(name, causal[name]) for name in ("perplexity", "accuracy")}
    assert causal == of(causal=True, apart=3), "a causal model hides nothing"
    tokens = tmp_path
    content = read_json(chain / "data/language/tokens/pretokenizer.json")
    content["text"]["lowercase"] = not content["text"]["lowercase"]
    write_json(tokens / "pretokenizer.json", content)
    assert not causal.items() & of(causal=True).items(), "text without capitals is easier"


def test_results_are_compared_by_what_both_have(chain: Path) -> None:
    rows = [row for row in read_table(chain / "reports/language/predictions.tsv") if row["split"] == "test"]
    without = [{name: row[name] for name in COLUMNS} for row in rows]
    one, two, masked = compare.scored(open_task("language"), (rows, rows, without), 50)
    assert {"detection_accuracy", "generator_perplexity"} <= one.keys() == two.keys()
    assert not one.keys() & masked.keys()  # a generator's perplexity is no masked model's
    figures = read_json(chain / "reports/language/evaluation.json")["test"]
    for name in one:
        assert one[name][0] == pytest.approx(figures[name], abs=1e-5)
    other = [row | {"log_probability": "-1.0", "false_alarms": "99"} for row in rows[:3]] + rows[3:]
    counted = {name: compare.differing(name, rows, other) for name in ("generator_bits_per_byte", *METRICS)}
    assert counted == {"generator_bits_per_byte": 3} | dict(zip(METRICS, (3, 3, 0), strict=True))
    assert compare.differing("generator_accuracy", rows, other) == 0


def test_texts_that_training_has_are_left_out_of_both_scores(
    chain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    shutil.copytree(chain, root)
    test = (root / "data/language/corpus/test.jsonl").read_text().splitlines(keepends=True)
    train = root / "data/language/corpus/train.jsonl"
    train.write_text(train.read_text() + test[0])
    Stages(root, "language", monkeypatch, LEARNING).run("evaluate")
    figures = read_json(root / "reports/language/evaluation.json")["test"]
    assert figures["duplicates"] >= 1
    rows = [row for row in read_table(root / "reports/language/predictions.tsv") if row["split"] == "test"][1:]
    judged, replaced = (sum(int(row[name]) for row in rows) for name in ("judged", "replaced"))
    found, alarms = (sum(int(row[name]) for row in rows) for name in ("found", "false_alarms"))
    expected = 1 - (replaced - found + alarms) / judged
    assert figures["detection_accuracy_without_duplicates"] == pytest.approx(expected, abs=1e-6)
    assert figures["generator_accuracy_without_duplicates"] > 0


def test_a_baseline_has_the_same_objective(chain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    shutil.copytree(chain, root)
    folder = root / "data/local/baseline/language"
    folder.mkdir(parents=True)
    shutil.copy(root / "reports/language/predictions.tsv", folder / "own.tsv")
    stages = Stages(root, "language", monkeypatch, LEARNING | {"evaluate.baseline": "own.tsv"})
    stages.run("evaluate")
    figures = read_json(root / "reports/language/evaluation.json")["test"]
    assert figures["detection_accuracy_minus_baseline"] == figures["generator_perplexity_minus_baseline"] == 0
    (folder / "own.tsv").write_text("split\ttokens\tlog_probability\tright\ntest\t1\t-1.0\t1\n")
    with pytest.raises(UserError, match="has a row without column `judged`"):
        stages.run("evaluate")
    shutil.copy(chain / "reports/language/predictions.tsv", folder / "own.tsv")
    Stages(root, "language", monkeypatch, {"train.epochs": 1}).run("train")
    with pytest.raises(UserError, match="has the scores of a generator"):
        Stages(root, "language", monkeypatch, {"evaluate.baseline": "own.tsv"}).run("evaluate")


def test_the_bundle_fills_scores_detects_and_embeds(chain: Path, bundle: LanguageModel) -> None:
    assert len(bundle.fill("the film is [MASK] .", 3)) == 3
    with pytest.raises(UserError, match=r"masked model, which fills \[MASK\]"):
        bundle.generate("the film")
    found = bundle.detect("The film is dull.")
    assert "".join(each.token for each in found).replace("##", "") == "thefilmisdull."
    assert all(0 < each.probability < 1 for each in found)
    assert bundle.detect("") == []
    long = "the film is dull . " * 60
    assert len(bundle.detect(long)) == len(bundle.encode([long])[0]) - 2 > bundle.engine.positions
    (ids,) = bundle.encode(["The film is dull."])
    np.testing.assert_allclose(
        bundle.embed(["The film is dull."])[0], bundle.engine.states(ids[None])[0].mean(axis=0), rtol=1e-5
    )
    assert bundle.engine.states(ids[None]).shape[2] == 32
    row = next(row for row in read_table(chain / "reports/language/predictions.tsv") if row["split"] == "validation")
    assert bundle.score([row["text"]])[0].log_probability == pytest.approx(float(row["log_probability"]), abs=1e-2)
    card = (chain / "models/language/bundle/README.md").read_text()
    assert "model.detect(" in card and "| validation.detection_auc |" in card
    assert read_json(chain / "models/language/bundle/config.json")["main_metric"]["name"] == "validation.detection_auc"


def test_the_command_line_marks_what_rather_was_replaced(bundle: LanguageModel) -> None:
    texts = ["The film is dull.", "the the the the the", ""]
    lines = [*options.answering(bundle, Namespace(command="detect"))(texts)]
    for text, line in zip(texts, lines, strict=True):
        found = bundle.detect(text)
        assert line.count("[") == sum(each.probability > 0.5 for each in found)
        assert [part.strip("[") for part in line.split() if not part.endswith("]")] == [each.token for each in found]
    assert lines[2] == ""


def test_a_masked_model_detects_nothing(tmp_path: Path) -> None:
    from tests.language.test_answers import model

    with pytest.raises(UserError, match="no discriminator: train one with"):
        model(tmp_path, "masked").detect("the film")


def test_onnx_holds_both_parts_and_ctranslate2_says_why_not(chain: Path, bundle: LanguageModel) -> None:
    report = read_json(chain / "reports/language/conversion.json")
    assert "objective `replaced`" in report["ctranslate2"]["refused"]
    assert report["onnx"]["detection_worst_difference"] <= 1e-4
    assert {"onnx", "onnx-int8"} <= report.keys()
    converted = open_bundle(chain / "models/language/converted/onnx")
    assert isinstance(converted, LanguageModel) and converted.engine.detects
    text = "The film is [MASK] dull."
    assert [each.words for each in converted.fill(text, 3)] == [each.words for each in bundle.fill(text, 3)]
    np.testing.assert_allclose(converted.embed([text]), bundle.embed([text]), atol=1e-4)
    for one, two in zip(converted.detect(text), bundle.detect(text), strict=True):
        assert one.probability == pytest.approx(two.probability, abs=1e-4)


def test_report_and_figures_show_the_discriminator(chain: Path) -> None:
    rows = list(read_table(chain / "reports/language/tables/detections.tsv"))
    assert {row["split"] for row in rows} == {"validation", "test"} and any(" → " in row["replaced"] for row in rows)
    curve = [[float(x) for x in row.values()] for row in read_table(chain / "reports/language/plots/detection_roc.tsv")]
    assert curve[0] == [0, 0] and curve[-1] == [1, 1] and curve == sorted(curve)
    task, result = open_task("language"), Result(chain, "language")
    assert report.summary(result).startswith("ROC-AUC of replaced tokens 0.")
    assert "of the replaced tokens" in next(report.weaknesses(task, result))
    sections = {section.title: section for section in report.sections(task, result)}
    assert len(sections["Replaced tokens"].tables[0].rows) == len(rows)
    alts = [picture.alt for section in sections.values() for picture in section.pictures]
    assert any(alt.startswith("Validation loss of the discriminator") for alt in alts)
    assert any(alt.startswith("ROC of replaced tokens. discriminator: from 0 at 0 to 1 at 1") for alt in alts)


def test_a_classifier_starts_from_the_discriminator(
    chain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    shutil.copytree(chain, root)
    same = {name: LEARNING[name] for name in ("model.d_model", "model.d_ff")}
    start = {"model.init": "pretrained", "model.pretrained": "models/language/trained", "model.frozen_updates": 7}
    vocabulary = {"vocab.source": "built", "vocab.path": "data/language/vocab"}
    Stages(root, "sentiment", monkeypatch, same | start | vocabulary | BUT_THE_LAST).run("build_vocab", "train")
    own = load_file("models/sentiment/trained/model.safetensors")
    their = load_file("models/language/trained/model.safetensors")
    shared = [name for name in own if name.startswith(("embedding.", "encoder."))]
    assert len(shared) > 10 and not [name for name in own if "generator" in name]
    for name in shared:
        assert torch.equal(own[name], their[name][: len(own[name])])
