"""CONTRIBUTING.md's recipe for a task: a classifier of topics, from a TSV to the report."""

import csv
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import Clone, make_clone
from tests.kit import STAGES

CLASSES = ("sports", "science", "business", "world")
FILES = {
    "__init__.py": '"""Topics of headlines."""\n',
    "task.py": f'''"""What topics are."""

from transformer.core.task import Task

TASK = Task(name="topics", family="classifier", classes={CLASSES}, unit="headline")
''',
    "words.py": '''"""What people read of a topic model."""

from transformer.core.task import Words

WORDS = Words(title="Topic Transformer", use="Says what a headline is about.\\n")
''',
}
WORDS = {
    "sports": "match goal team player season coach league win",
    "science": "planet cell study energy species atom theory lab",
    "business": "market shares profit bank trade price firm tax",
    "world": "minister border treaty election summit envoy vote crisis",
}


def write_corpus(folder: Path) -> None:
    """A TSV per split, with class names as labels."""
    folder.mkdir(parents=True)
    draw = random.Random(1)
    for split, rows in (("train", 240), ("validation", 40), ("test", 40)):
        with (folder / f"{split}.tsv").open("w", newline="") as stream:
            writer = csv.writer(stream, delimiter="\t")
            writer.writerow(["label", "text"])
            for number in range(rows):
                label = CLASSES[number % len(CLASSES)]
                words = [draw.choice([*WORDS[label].split(), "the", "new", "old"]) for _ in range(6)]
                writer.writerow([label, " ".join(words)])


@pytest.fixture(scope="module")
def clone(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone with the new task, committed, in which only its chain has run."""
    root = tmp_path_factory.mktemp("topics") / "clone"
    clone = make_clone(root, warm=True, PYTHONPATH=str(root))  # the clone's own package, also for the console command
    shutil.copy(empty_database, root)
    folder = clone.root / "transformer" / "tasks" / "topics"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_text(content)
    write_corpus(clone.root / "data" / "local" / "topics")
    baselines = clone.root / "data" / "local" / "baseline" / "topics"
    baselines.mkdir()
    (baselines / "README.md").write_text("Answers to compare with.\n")
    yaml = YAML()
    params: Any = yaml.load(clone.params)
    params["topics"] = json.loads(json.dumps(params["sentiment"]))
    yaml.dump(params, clone.params)
    clone.change({"topics.download.source": "files", "topics.download.path": "data/local/topics"})
    clone.change({"topics.train.learning_rate": 1e-2, "topics.train.epochs": 15, "topics.train.warmup": 10})
    workflow = clone.root / "dvc.yaml"
    text = workflow.read_text()
    for line in (
        '      sentiment: {path: "${sentiment.download.path}", beside: "${sentiment.download.added}",'
        " sample: samples/sentiment}\n",
        '      sentiment: {pretrained: "${sentiment.model.pretrained}"}\n',
        '      sentiment: {path: "${sentiment.vocab.path}"}\n',
    ):
        assert line in text
        text = text.replace(
            line, line + line.replace("samples/sentiment", "data/local/none").replace("sentiment", "topics")
        )
    workflow.write_text(text.replace("sentiment, language]", "sentiment, language, topics]"))
    clone.commit("topics")
    clone.run("transformer", "check", "params.yaml")
    assert len(clone.repro("report@topics")) == len(STAGES)
    return clone


def test_the_task_goes_from_its_files_to_a_report(clone: Clone) -> None:
    test = json.loads((clone.root / "reports" / "topics" / "evaluation.json").read_text())["test"]
    assert test["headlines"] == 40
    assert test["accuracy"] > 0.8  # no two classes share words
    assert abs(test["macro_f1"] - test["accuracy"]) < 0.1  # the classes are balanced
    assert test["linear_accuracy"] > 0.9
    assert "roc_auc" not in test
    confusion = (clone.root / "reports" / "topics" / "plots" / "confusion.tsv").read_text().splitlines()
    assert confusion[0].split("\t") == ["actual", "predicted", "headlines"]
    assert len(confusion) == 1 + len(CLASSES) ** 2
    page = (clone.root / "reports" / "topics" / "report.html").read_text()
    assert all(name in page for name in CLASSES)


def test_its_bundle_answers_with_its_classes(clone: Clone) -> None:
    text = "new coach team league player goal"  # words of training: this network says anything of others
    answer = clone.run("transformer", "classify", "-m", "models/topics/bundle", text).stdout
    assert answer.split("\t")[0] == "sports"


def test_of_two_tasks_of_a_family_the_model_is_to_be_named(clone: Clone) -> None:
    """By default the first of them would answer, whichever was meant."""
    refused = clone.run("transformer", "classify", "A text.", check=False)
    assert (refused.returncode, "required: -m/--model" in refused.stderr) == (2, True)
    assert "transformer classify --model models/topics/bundle " in clone.run("transformer", "summary").stdout


def test_the_other_tasks_stay_as_they_are(clone: Clone) -> None:
    """The files of a new task are not dependencies of the other tasks."""
    before = clone.run("dvc", "status", "--json", "train@sentiment", "evaluate@translation").stdout
    for name, content in FILES.items():
        path = clone.root / "transformer" / "tasks" / "topics" / name
        path.write_text(content + "\n# another\n")
    after = clone.run("dvc", "status", "--json", "train@sentiment", "evaluate@translation").stdout
    assert before == after
    for name, content in FILES.items():
        (clone.root / "transformer" / "tasks" / "topics" / name).write_text(content)
