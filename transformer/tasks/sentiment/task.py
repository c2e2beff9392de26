"""The declaration of the sentiment task."""

from transformer.core.task import Task

TASK = Task(name="sentiment", family="classifier", classes=("negative", "positive"), unit="review")
