"""Classifier models: a sequence in, one of a few classes out."""
