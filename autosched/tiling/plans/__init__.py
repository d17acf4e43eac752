"""What runs on what, as values: for each stage of a program, how it is computed. `tiling.planner` makes them.

Read `plan`, then `nest` (the geometry of one stage on an instruction).
"""
