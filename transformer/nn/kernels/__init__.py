"""Hand-written kernels: what is slow in PyTorch on CPUs, by hand. Each docstring names the plain code that it replaces,
and a test in tests/nn/kernels holds the two equal, values and gradients.
"""
