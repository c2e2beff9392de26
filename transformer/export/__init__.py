"""Exported models: the bundle, its model card, and the MLflow model."""
