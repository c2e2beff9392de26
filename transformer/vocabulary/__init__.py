"""Trains vocabularies, or imports existing ones."""
