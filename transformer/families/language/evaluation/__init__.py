"""Evaluation of language models."""
