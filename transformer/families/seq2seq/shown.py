"""Display of this family's results and models; importable without the rest of the family."""

HEADLINE = ("bleu", "chrf", "perplexity")
"""Metrics of a summary, the main one first."""
ANSWERS = (("string", "translation"),)
"""Columns of a model's predictions: MLflow type and name."""
