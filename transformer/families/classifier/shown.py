"""How this family's results and models are displayed; importable without the rest of the family."""

HEADLINE = ("accuracy", "f1", "macro_f1", "roc_auc")
"""The metrics in a summary, the main one first; a result may lack some."""
ANSWERS = (("string", "label"), ("double", "probability"))
"""The columns of a model's predictions: MLflow type and name."""
