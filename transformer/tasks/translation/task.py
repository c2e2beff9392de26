"""The declaration of the translation task."""

from transformer.core.task import Task

TASK = Task(name="translation", family="seq2seq", unit="pair")
