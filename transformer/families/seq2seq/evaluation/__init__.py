"""Evaluation of translations."""
