"""The classifier family: a sequence in, one of a few classes out."""
