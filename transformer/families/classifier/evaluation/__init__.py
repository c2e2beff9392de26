"""Evaluation of a classifier's probabilities."""
