"""Proof 1: which program axes sit on which intrinsic axes, and that addresses allow it. Read `axes`,
`stage_facts`, `tile`.
"""
