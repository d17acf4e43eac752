"""Proof 3: is the combination the same, in which order, how far apart? Read `update`, then `combine`."""
