"""Reviews, negative or positive."""

HEADLINE = ("accuracy", "f1", "roc_auc")
