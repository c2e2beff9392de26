"""One folder per task: its declaration, and its words for people."""
