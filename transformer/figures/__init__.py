"""Figures of a model's attention and of the code's computations."""
