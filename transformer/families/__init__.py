"""Kinds of models: each folder has its own network, batches, loss, inference and conversion."""
