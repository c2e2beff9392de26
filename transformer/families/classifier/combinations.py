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
    """Raise ValueError (one line) if the class weights name other classes than the labels."""
    labels, weights = params.download.labels, params.train.class_weights
    names = labels.values() if isinstance(labels, dict) else labels
    if isinstance(weights, dict) and labels != "train" and {*weights} != {*names}:
        raise ValueError(f"train.class_weights must have exactly the labels {', '.join(dict.fromkeys(names))}")
