"""Results: their state in DVC and git, comparisons, and their MLflow runs."""
