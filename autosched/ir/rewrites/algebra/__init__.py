"""Float values as expressions over the reals, in one normal form: what the rewrites take terms apart with.

Read `sums` (the form), then `normal` (values into it), `separate` (reference from data) and `text` (back to values).
Nothing here is trusted: z3 proves what was found, from the values themselves (`autosched.ir.rewrites.obligations`).
"""
