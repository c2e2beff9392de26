"""Which stages an edit of the code makes stale: those whose outputs it may change, and no other."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit import ROOT, STAGES, TASKS
from transformer.core.code import LOCK, Tree, changes, fingerprint, updates_code
from transformer.core.task import Task, open_task

Contents = dict[str, bytes]
Edit = Callable[[Contents], None]
ALL = {*STAGES}
DECODING = {"figures", "evaluate", "export", "convert"}
GENERATING = ("language", "translation")


def one_more_line(defined: str) -> Edit:
    """In the module that defines this, wherever it lies."""
    return replace(f"\n{defined}", f"\nnew_line = 1\n{defined}")


def replace(was: str, now: str) -> Edit:
    def edit(contents: Contents) -> None:
        (name,) = (name for name, text in contents.items() if was.encode() in text)
        contents[name] = contents[name].replace(was.encode(), now.encode())

    return edit


def everywhere(pattern: bytes, now: bytes) -> Edit:
    def edit(contents: Contents) -> None:
        contents |= {name: re.sub(pattern, now, text) for name, text in contents.items() if name.endswith(".py")}

    return edit


def new_task(contents: Contents) -> None:
    contents["transformer/tasks/headlines.py"] = b'TASK = Task(name="headlines", family=FAMILY)\n'


def upgrade(package: str) -> Edit:
    def edit(contents: Contents) -> None:
        contents[LOCK] = re.sub(rb"(?m)^%b==.*$" % package.encode(), b"%b==99.1" % package.encode(), contents[LOCK])

    return edit


EDITS: dict[str, tuple[Edit, set[str], tuple[str, ...]]] = {
    "a comment in every module": (everywhere(rb"\Z", b"\n# more\n"), set(), TASKS),
    "no docstrings of modules": (everywhere(rb'\A"""[^"]*"""', b""), set(), TASKS),
    "more blank lines": (everywhere(rb"\n\n\n", b"\n\n\n\n"), set(), TASKS),
    "a new task": (new_task, set(), TASKS),
    "the command line": (one_more_line("def run_command("), set(), TASKS),
    "MLflow's store": (one_more_line("def open_store("), set(), TASKS),
    "the progress bar": (replace("mininterval=0.5", "mininterval=1.5"), set(), TASKS),
    "an error message of corpora": (replace("is not the expected one", "is another one"), {"download"}, TASKS),
    "the training of subwords": (one_more_line("def train_unigram("), {"build_vocab"}, TASKS),
    "the loss": (one_more_line("def smoothed_cross_entropy("), {"train"}, TASKS),
    "the learning rate": (one_more_line("@dataclass(frozen=True)\nclass Schedule:"), {"train", "figures"}, TASKS),
    "mixed precision": (replace("torch.autocast(", "torch.amp.autocast("), {"train", *DECODING}, TASKS),
    "attention": (one_more_line("class MultiHeadAttention("), {"train", *DECODING}, TASKS),
    "a classifier's network": (one_more_line("class MeanPooling("), {"train", *DECODING}, ("sentiment",)),
    "the beam search": (one_more_line("def beam_search("), DECODING, GENERATING),
    "the intervals": (one_more_line("def p_value("), {"evaluate", "convert", "report"}, TASKS),
    "ONNX models": (one_more_line("class _Exportable("), {"convert"}, TASKS),
    "the report's style": (replace("prefers-color-scheme: dark", "prefers-color-scheme: light"), {"report"}, TASKS),
    "a model's title": (replace('"Sentiment classifier"', '"Classifier"'), {"export"}, ("sentiment",)),
    "a sentence to draw": (replace("Blonde Mädchen", "Große Mädchen"), {"figures"}, ("translation",)),
    "a field of evaluate": (one_more_line("class EvaluateParams(DecodingParams"), {"evaluate"}, ("translation",)),
    "writing JSON": (one_more_line("def write_json("), ALL, TASKS),
    "another sacreBLEU": (upgrade("sacrebleu"), {"evaluate", "convert", "report"}, ("translation",)),
    "another tqdm": (upgrade("tqdm"), set(), TASKS),
}


def contents() -> Contents:
    tree = Tree()
    return {name: tree.read(name) for name in tree.names}


def edited(edit: Edit) -> tuple[Tree, dict[str, Task]]:
    """The code after an edit, and the tasks that it declares."""
    files = contents()
    edit(files)
    assert files != contents(), "nothing was edited"
    tasks = {}
    for task in TASKS:
        scope: dict[str, Any] = {}
        exec(files[f"transformer/tasks/{task}.py"], scope)
        tasks[task] = scope["TASK"]
    return Tree(ROOT, files), tasks


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_makes_just_these_stages_stale(name: str) -> None:
    edit, stages, tasks = EDITS[name]
    (now, declared), before = edited(edit), Tree()
    found = {
        (stage, task)
        for stage in STAGES
        for task in TASKS
        if changes(fingerprint(before, stage, open_task(task)), fingerprint(now, stage, declared[task]))
    }
    assert found == {(stage, task) for stage in stages for task in tasks}


@pytest.mark.parametrize("name", EDITS)
def test_a_checkpoint_survives_what_does_not_concern_network_data_and_update(name: str) -> None:
    tree, declared = edited(EDITS[name][0])
    found = {task for task in TASKS if updates_code(tree, declared[task]) != updates_code(Tree(), open_task(task))}
    lost = {"mixed precision", "the loss", "the learning rate", "attention", "a classifier's network"}
    assert found == (set(EDITS[name][2]) if name in lost else set())


def test_a_checkpoint_survives_another_message_in_the_update_itself() -> None:
    tree, declared = edited(replace('"out of memory in validation: ', '"validation is out of memory: '))
    assert updates_code(tree, declared["sentiment"]) == updates_code(Tree(), open_task("sentiment"))
