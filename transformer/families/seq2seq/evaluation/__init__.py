"""Judging translations."""
