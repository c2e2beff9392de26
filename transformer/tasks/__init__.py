"""One folder for each task: its declaration and its sample corpus."""
