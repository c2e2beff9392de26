"""Building blocks of the models. Tensors in, tensors out: only `trained.py` knows files.

Shape letters in all docstrings: B batch, T query or target length, S key or source length, H heads, D head dimension,
C d_model, F d_ff, V vocabulary size, K classes; N and M packed tokens, as queries and as keys. Masks are boolean, True
where attention is allowed.
"""
