"""Encoded pairs, and the loss on them."""
