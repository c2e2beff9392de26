"""transformer/data."""
