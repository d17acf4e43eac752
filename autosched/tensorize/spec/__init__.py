"""Intrinsic files to values: YAML, families, operands, emission templates, and the catalogue.

Read `load`, then `catalogue`.
"""
