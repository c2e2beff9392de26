"""Evaluation shared by all families: the bootstrap, baselines and the main metrics."""
