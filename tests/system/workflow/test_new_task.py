"""CONTRIBUTING.md's recipes for a task, a classifier of topics from a TSV to the report, and for a family."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import Clone, make_clone
from tests.kit import STAGES
from transformer.core.code import code_path

CLASSES = ("sports", "science", "business", "world")
DECLARATION = f'''"""The declaration of the topics task."""

from transformer.core.task import Task
from transformer.families.classifier import FAMILY

TASK = Task(
    name="topics",
    family=FAMILY,
    classes={CLASSES},
    unit="headline",
    card_title="Topic Transformer",
    card_use="Says what a headline is about.\\n",
)
'''
INTERPOLATED = (
    '{path: "${sentiment.download.path}", beside: "${sentiment.download.added}", sample: samples/sentiment}',
    '{pretrained: "${sentiment.model.pretrained}"}',
    '{path: "${sentiment.vocab.path}"}',
)
"""What dvc.yaml says of a task's inputs."""
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
        lines = ["label\ttext"]
        for label in (CLASSES[number % len(CLASSES)] for number in range(rows)):
            words = (draw.choice([*WORDS[label].split(), "the", "new", "old"]) for _ in range(6))
            lines.append(f"{label}\t{' '.join(words)}")
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")


def declare(clone: Clone, declaration: str) -> None:
    """Add a task `topics`, with the parameters and the inputs of `sentiment`."""
    (clone.root / "transformer" / "tasks" / "topics.py").write_text(declaration)
    baselines = clone.root / "data" / "local" / "baseline" / "topics"
    baselines.mkdir()
    (baselines / "README.md").write_text("Answers to compare with.\n")
    yaml = YAML()
    params: Any = yaml.load(clone.params)
    params["topics"] = json.loads(json.dumps(params["sentiment"]))
    params["topics"]["download"] |= {"source": "files", "path": "data/local/topics"}
    yaml.dump(params, clone.params)
    write_corpus(clone.root / "data" / "local" / "topics")
    workflow = clone.root / "dvc.yaml"
    text = workflow.read_text()
    for line in (f"      sentiment: {each}\n" for each in INTERPOLATED):
        assert line in text
        own = line.replace("samples/sentiment", "data/local/none").replace("sentiment", "topics")
        text = text.replace(line, line + own)
    workflow.write_text(text.replace("sentiment, language]", "sentiment, language, topics]"))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone with the new task, committed, in which only its chain has run."""
    root = tmp_path_factory.mktemp("topics") / "clone"
    clone = make_clone(root, PYTHONPATH=str(root))  # the clone's own package, also for the console command
    declare(clone, DECLARATION)
    clone.change({"topics.train.learning_rate": 1e-2, "topics.train.epochs": 15, "topics.train.warmup": 10})
    clone.commit("topics")
    clone.run("transformer", "check", "params.yaml")
    assert len(clone.repro("report@topics")) == len(STAGES)
    return clone


def test_the_task_goes_from_its_files_to_a_report(clone: Clone) -> None:
    test = json.loads((clone.root / "reports" / "topics" / "evaluation.json").read_text())["test"]
    assert test["headlines"] == 40 and "roc_auc" not in test
    assert test["accuracy"] > 0.8 and test["linear_accuracy"] > 0.9  # no two classes share words
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


def test_a_family_is_one_folder(tmp_path: Path) -> None:
    """A copy of a family under another name, whose console command has another name too."""
    clone = make_clone(tmp_path / "clone", PYTHONPATH=str(tmp_path / "clone"))
    families = clone.root / "transformer" / "families"
    shutil.copytree(families / "classifier", families / "copied")
    for path in (families / "copied").glob("*.py"):
        text = path.read_text().replace("families.classifier", "families.copied")
        path.write_text(text.replace('name = "classifier"', 'name = "copied"').replace('(("classify",', '(("label",'))
    declare(clone, DECLARATION.replace("families.classifier", "families.copied"))
    assert clone.repro("download@topics") == ["download@topics"]
    code = (clone.root / code_path("train", "topics")).read_text()
    assert "families/copied/" in code and "families/classifier/" not in code
    clone.run("transformer", "check", "params.yaml")
    assert "--ngrams" in clone.run("transformer", "label", "--help").stdout
