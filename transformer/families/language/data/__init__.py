"""Encoded texts in windows, and which of their tokens are hidden."""
