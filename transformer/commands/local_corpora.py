"""Corpora in a folder of this machine: which parameters read them, and which start from generated texts alone."""

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from transformer.core.errors import UserError
from transformer.core.task import open_task, task_names

FROM_NOTHING: Mapping[str, Mapping[str, str]] = {
    "vocab": {"source": "trained", "path": "data/local/vocabulary"},
    "model": {"init": "random", "pretrained": "data/local/none"},
}
"""Parameters of a classifier without a pretrained language model, by section."""
_VOCABULARY = "bert-base-uncased"


def read_local_corpora(content: MutableMapping[str, Any], data: Path) -> None:
    """Set source `files` in the parameters for each corpus found in `data`, and the vocab.txt there, not the Hub's.

    A task's folder has the name of its `download.path`, or a known one. Raises UserError if the folder has none.
    """
    names = {
        task: dict.fromkeys((*open_task(task).corpus_folders, task, Path(content[task]["download"]["path"]).name))
        for task in task_names()
        if task in content
    }
    found = {task: [data / name for name in known if (data / name).is_dir()] for task, known in names.items()}
    folders = {task: folders[0] for task, folders in found.items() if folders}
    if not folders:
        listed = ", ".join(name for known in names.values() for name in known)
        raise UserError(f"{data} has none of the folders {listed}: give the folder that contains one of them")
    for task, folder in folders.items():
        if content[task]["download"]["source"] != "document":
            content[task]["download"]["source"] = "files"
        content[task]["download"]["path"] = str(folder.resolve())
        if content[task]["vocab"].get("source") == "hub" and (data / _VOCABULARY / "vocab.txt").is_file():
            content[task]["vocab"].update(source="path", path=str((data / _VOCABULARY).resolve()))
    for task in folders:
        if starts_from_samples(content, task):
            for section, leaves in FROM_NOTHING.items():
                content[task][section].update(leaves)


def starts_from_samples(content: Mapping[str, Any], task: str) -> bool:
    """True if a task's model is initialised from one trained on generated texts, whose words are not those of files."""
    model = content[task]["model"]
    _, pretraining, *_ = *Path(str(model.get("pretrained"))).parts, "", ""  # models/TASK/trained
    sampled = pretraining in task_names() and content[pretraining]["download"]["source"] == "sample"
    return sampled and model.get("init") == "pretrained"
