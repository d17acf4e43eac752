"""Analyses of a loop tree: whether it is well formed, how accesses depend on the lane, where barriers are needed.
Read `check`, then `access`.
"""
