"""Chains of stages beside PyTorch, beside their own products as kernels apart, and beside a roofline."""
