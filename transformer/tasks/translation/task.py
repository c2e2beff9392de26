"""What translation is."""

from transformer.core.task import Task

TASK = Task(name="translation", family="seq2seq", unit="pair")
