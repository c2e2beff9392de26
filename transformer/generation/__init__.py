"""Autoregressive text generation: greedy search, beam search and sampling over any next-token model."""
