"""Display of this family's results and models; importable without the rest of the family."""

HEADLINE = ("perplexity", "word_perplexity", "bits_per_byte", "accuracy")
"""Metrics of a summary, the main one first."""
ANSWERS = (("string", "answer"),)
"""Columns of a model's predictions: MLflow type and name."""
