"""Texts as token ids: vocabularies, the encoded store, batches."""
