"""Film reviews with a sentiment label, of any number, generated from a grammar and a seed."""

from transformer.tasks.sentiment.sample.splits import SPLITS, rows

__all__ = ["SPLITS", "rows"]
