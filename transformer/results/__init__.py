"""What DVC and git know of results."""
