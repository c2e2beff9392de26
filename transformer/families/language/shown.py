"""How this family's results and models are displayed; importable without the rest of the family."""

HEADLINE = ("perplexity", "word_perplexity", "bits_per_byte", "accuracy")
"""The metrics in a summary, the main one first."""
ANSWERS = (("string", "answer"),)
"""The columns of a model's predictions: MLflow type and name."""
