"""What is asked of a loop tree: whether it is well formed, how accesses depend on the lane, where barriers stand.
Read `check`, then `access`.
"""
