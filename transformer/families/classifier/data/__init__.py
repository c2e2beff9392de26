"""Encoded, labelled texts."""
