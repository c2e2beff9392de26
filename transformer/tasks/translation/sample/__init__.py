"""German-English caption pairs of any number, generated from a grammar and a seed."""

from transformer.tasks.translation.sample.splits import SPLITS, rows

__all__ = ["SPLITS", "rows"]
