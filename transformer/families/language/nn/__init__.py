"""The language family: a text in, a distribution over the vocabulary at its places out."""
