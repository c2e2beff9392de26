"""Parameters that depend on each other, across sections."""

from transformer.core.task import Task
from transformer.core.validation import StageParams
from transformer.families.classifier.download import LabelledDownload
from transformer.families.classifier.training_params import ClassifierTrainParams


class Params(StageParams):
    """The sections that name classes."""

    download: LabelledDownload
    train: ClassifierTrainParams


def check(task: Task, params: Params) -> None:
    """Raise ValueError (one line) if no section names the classes, or if the class weights name different ones."""
    labels = params.download.labels
    if not task.classes and labels is None:
        raise ValueError(f"transformer/tasks/{task.name}.py names no classes: set download.labels")
    weights, names = params.train.class_weights, task.classes if labels is None else labels
    if isinstance(weights, dict) and labels != "train" and {*weights} != {*names}:
        raise ValueError(f"train.class_weights must have exactly the labels {', '.join(names)}")
