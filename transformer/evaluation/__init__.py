"""Evaluation shared by all families: the bootstrap, baselines and leakage."""
