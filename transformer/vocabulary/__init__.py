"""Train vocabularies, or import existing ones."""
