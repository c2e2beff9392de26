"""Judging the probabilities of a binary classifier."""
