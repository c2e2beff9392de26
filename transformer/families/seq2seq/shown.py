"""How this family's results and models are displayed; importable without the rest of the family."""

HEADLINE = ("bleu", "chrf", "perplexity")
"""The metrics in a summary, the main one first."""
ANSWERS = (("string", "translation"),)
"""The columns of a model's predictions: MLflow type and name."""
