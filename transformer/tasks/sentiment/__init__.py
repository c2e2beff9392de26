"""Reviews, negative or positive."""

HEADLINE = ("accuracy", "f1", "roc_auc")
LABELS = ("negative", "positive")
"""The names of classes 0 and 1."""
