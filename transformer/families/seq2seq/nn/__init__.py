"""Encoder-decoder models: a source sequence in, a target sequence out."""
