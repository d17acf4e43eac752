"""Compiled kernels as functions of numpy arrays. Read `callable`, then `direct`."""
