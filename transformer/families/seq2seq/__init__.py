"""Encoder-decoder models for translation."""
