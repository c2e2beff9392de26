"""What is shown of this family's results and models, for those who load nothing else of it."""

HEADLINE = ("accuracy", "f1", "macro_f1", "roc_auc")
"""The metrics that a summary shows, as far as a result has them, the main one first."""
ANSWERS = (("string", "label"), ("double", "probability"))
"""MLflow's types and the names of the columns of a model's answers."""
