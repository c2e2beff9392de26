"""Language models: a text in, a distribution over the vocabulary per position out."""
