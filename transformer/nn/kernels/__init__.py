"""Hand-written kernels for operations that are slow in PyTorch on CPUs. Each docstring names the plain code that it
replaces, and a test in tests/nn/kernels checks that values and gradients agree with it.
"""
