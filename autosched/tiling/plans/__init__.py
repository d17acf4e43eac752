"""What runs on what, as values: for each stage of a program, how it is computed. `tiling.planning` makes them.

Read `plan`, then `nest` (the geometry of one stage on an instruction).
"""
