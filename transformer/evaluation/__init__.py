"""Scores, one file a task."""
