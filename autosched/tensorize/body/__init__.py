"""Proof 2: does the scalar code of one step compute the same? Read `equal`, then `compare`."""
