"""transformer/reporting."""
