"""What runs on what, as values: for each stage of a program, how it is computed. `tiling.planner` makes them.

Read `plan`, then `nest_geometry` and `nest` (one stage on an instruction).
"""
