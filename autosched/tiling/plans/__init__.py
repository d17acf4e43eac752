"""What runs on what: for each stage of a program, how it is computed. Read `plan` (the values), `nest` (the geometry of
one stage on an instruction), then `plans` (which plans a program has).
"""
