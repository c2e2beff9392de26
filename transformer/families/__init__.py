"""Kinds of models: each folder owns its network, batches, loss, inference and conversion."""
