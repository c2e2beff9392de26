"""One module per task: its declaration."""
