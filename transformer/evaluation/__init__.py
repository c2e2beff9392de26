"""Evaluation code that all families share: the bootstrap, baselines and leakage."""
