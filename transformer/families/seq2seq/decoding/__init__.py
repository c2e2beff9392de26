"""Generating target sequences."""
