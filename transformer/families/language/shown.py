"""How this family's results and models are displayed; importable without the rest of the family."""

HEADLINE = (
    *("perplexity", "word_perplexity", "bits_per_byte", "accuracy"),
    *("detection_auc", "detection_accuracy", "undetected_accuracy", "generator_perplexity", "generator_accuracy"),
)
"""The metrics in a summary, the main one first; those of a discriminator and its generator, or all others."""
ANSWERS = (("string", "answer"),)
"""The columns of a model's predictions: MLflow type and name."""
