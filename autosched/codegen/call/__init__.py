"""Compiled kernels as functions of numpy arrays and as PyTorch operators. Read `callable`, then `direct`."""
