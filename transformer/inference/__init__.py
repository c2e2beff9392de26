"""transformer/inference."""
