"""transformer/cli."""
