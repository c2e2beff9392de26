"""Film reviews with a sentiment label, of any number, generated from a grammar and a seed."""

from transformer.corpora.sample.sentiment.splits import SPLITS, rows

__all__ = ["SPLITS", "rows"]
