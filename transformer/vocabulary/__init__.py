"""Training vocabularies, and taking existing ones."""
