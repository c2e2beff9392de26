"""Class probabilities."""
