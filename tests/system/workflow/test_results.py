"""Results of the real workflow: one MLflow run per result, reports, and exported models."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.conftest import Clone
from tests.kit import TASKS
from tests.system.workflow.rows import rows
from transformer.core.files import read_json, read_rows, read_table
from transformer.data.vocabulary import read_vocabularies
from transformer.evaluation.headline import shortfall
from transformer.workflow.results import results_at


def test_every_task_has_one_complete_run(workflow: Clone) -> None:
    pipelines = results_at(workflow.root, "workspace", None).results
    keys = {result.pipeline.key for result in pipelines.values()}
    found = [row for row in rows(workflow) if row["tags"]["key"] in keys]
    assert sorted(row["task"] for row in found) == sorted(TASKS)
    for row in found:
        task = row["task"]
        history = list(read_table(workflow.root / "reports" / task / "history.tsv"))
        curve = [[int(line["step"]), float(line["validation_loss"])] for line in history]
        assert sorted(row["curves"]["validation_loss"]) == curve
        assert len(row["curves"]) <= 40
        assert row["params"]["train.learning_rate"] == "0.001"
        assert not any(name.startswith(("export.", "runtime.")) or "path" in name for name in row["params"])
        assert {"params.json", "reports"} <= set(row["files"])
        assert {f"{task}/train", f"{task}/validation", f"{task}/test"} <= {name for name, _ in row["inputs"]}
        assert row["tags"]["git.commit"]
        behind = shortfall(read_json(workflow.root / "reports" / task / "evaluation.json"))
        assert row["note"].endswith(behind)
        assert ("the linear baseline" in row["note"]) is (task == "sentiment")  # the profile `smoke` learns nothing


def test_figures_show_the_chosen_sentences_or_the_first_of_validation(workflow: Clone) -> None:
    tokens = {task: read_rows(workflow.root / f"data/{task}/tokens/validation.jsonl") for task in TASKS}
    for number in (1, 2, 3):
        words = next(tokens["translation"])["source"].split()
        path = workflow.root / f"reports/translation/figures/cross_attention_{number}.svg"
        found = [text.text for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
        vocabulary = read_vocabularies(workflow.root / "data/translation/vocab")["source"]
        known = {word for word in words if vocabulary.tokenizer.token_to_id(word) is not None}
        assert known and known | {"<bos>", "<eos>"} <= set(found)
    names = {path.stem for path in (workflow.root / "reports/sentiment/figures").iterdir()}
    code = {"positions", "scale", "masks", "schedules"}
    assert names == {"attention", "encoder_attention_1", "pooled_attention_1"} | code


def test_the_report_shows_the_result(restored: Clone) -> None:
    restored.run("transformer", "report")  # another test may have left the page of another result
    for task, score, attention in (
        ("translation", "BLEU", "encoder"),
        ("sentiment", "Accuracy", "encoder"),
        ("language", "Perplexity", "self"),
    ):
        page = (restored.root / f"reports/{task}/report.html").read_text(encoding="utf-8")
        assert re.search(rf'class="headline">{score} [\d.]+.* on test, 95 % interval [\d.]+.* to [\d.]+', page)
        assert "No commit holds another result of this task." in page
        assert f'"name": "{attention} attention"' in page


def test_the_registered_model_answers_as_the_bundle(workflow: Clone) -> None:
    code = """
import sys, pandas, mlflow, transformer
from pathlib import Path
from transformer.workflow.mlflow import open_store
open_store(Path.cwd(), "sentiment")
texts = ["A fine film.", "Never again."]
model = mlflow.pyfunc.load_model("models:/sentiment-sample@best")
served = model.predict(pandas.DataFrame({"text": texts}))
bundle = transformer.load("models/sentiment/bundle").classify(texts)
rows = served[["label", "probability"]].itertuples(index=False)
assert [tuple(row) for row in rows] == [tuple(answer) for answer in bundle], served
assert str(model.metadata.signature.inputs.input_names()) == "['text']"
"""
    workflow.run("python", "-c", code)


def test_a_bundle_opens_without_dvc_and_mlflow(workflow: Clone, tmp_path: Path) -> None:
    code = """
import sys, transformer
translator = transformer.load(sys.argv[1])
assert translator.translate([]) == []
assert translator.translate(["", "Ein Mann schläft."])[0] == ""
assert not {"mlflow", "dvc", "datasets", "pandas"} & set(sys.modules)
"""
    (workflow.root / "models/translation/bundle").rename(tmp_path / "moved")
    try:
        workflow.run(sys.executable, "-c", code, str(tmp_path / "moved"))
    finally:
        (tmp_path / "moved").rename(workflow.root / "models/translation/bundle")


def test_export_fails_if_its_answers_differ_from_evaluates(restored: Clone) -> None:
    path = restored.root / "reports/sentiment/predictions.tsv"
    header, first, *rest = path.read_text(encoding="utf-8").splitlines()
    path.unlink()  # it may be a link into DVC's cache
    other = {"negative": "positive", "positive": "negative"}
    *cells, prediction, probability = first.split("\t")
    first = "\t".join((*cells, other[prediction], probability))
    path.write_text("\n".join((header, first, *rest)) + "\n", encoding="utf-8")
    done = restored.run("python", "-m", "stages.export", "sentiment", check=False)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("error: export@sentiment: the exported model answers")


def test_what_evaluate_writes_can_be_read(workflow: Clone) -> None:
    for task in TASKS:
        reports = workflow.root / "reports" / task
        figures = read_json(reports / "evaluation.json")
        for split in ("validation", "test"):
            assert all(isinstance(value, int | float) for value in figures[split].values())
            main = {"translation": "chrf", "sentiment": "accuracy", "language": "perplexity"}[task]
            assert figures[split][f"{main}_low"] <= figures[split][main] <= figures[split][f"{main}_high"]
        tables = sorted(path.name for path in (reports / "tables").iterdir())
        assert (
            tables
            == {
                "translation": ["duplicates.tsv", "groups.tsv", "sentences.tsv"],
                "sentiment": ["duplicates.tsv", "errors.tsv"],
                "language": ["duplicates.tsv", "samples.tsv", "unexpected.tsv"],
            }[task]
        )
        for path in (*(reports / "tables").iterdir(), *(reports / "plots").iterdir()):
            assert all(None not in row.values() for row in read_table(path)), path
    rows = list(read_table(workflow.root / "reports/translation/tables/sentences.tsv"))
    scores = [float(row["chrf"]) for row in rows if row["split"] == "test" and row["kind"] == "worst"]
    assert len(scores) == 20
    assert scores == sorted(scores)
    errors = list(read_table(workflow.root / "reports/sentiment/tables/errors.tsv"))
    assert errors
    assert all(row["label"] != row["prediction"] for row in errors)


def test_a_stage_with_a_bad_parameter_ends_in_one_line(restored: Clone) -> None:
    restored.change({"sentiment.tokenize.kind": "magic"})
    done = restored.run("python", "-m", "stages.tokenize", "sentiment", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: tokenize@sentiment: params.yaml: `sentiment.tokenize.kind`")
    assert len(done.stderr.strip().splitlines()) == 1
