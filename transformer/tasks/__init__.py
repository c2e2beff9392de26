"""One folder per task: its declaration and its sample corpus."""
