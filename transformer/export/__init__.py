"""Models that leave the workflow: the bundle, its model card, the MLflow model."""
