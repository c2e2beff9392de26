"""Texts as ids: vocabularies, the store, batches."""
