"""Results: what DVC and git know of them, how they compare, and their runs in MLflow."""
