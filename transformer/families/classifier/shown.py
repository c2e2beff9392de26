"""Display of this family's results and models; importable without the rest of the family."""

HEADLINE = ("accuracy", "f1", "macro_f1", "roc_auc")
"""Metrics of a summary, the main one first; a result may lack some."""
ANSWERS = (("string", "label"), ("double", "probability"))
"""Columns of a model's predictions: MLflow type and name."""
