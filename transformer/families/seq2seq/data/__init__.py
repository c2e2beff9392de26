"""Encoded sentence pairs, and the loss on them."""
