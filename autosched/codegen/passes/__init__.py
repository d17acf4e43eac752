"""Rewrites of a loop tree: loops that run once, and what a target lacks (wide vectors, registers, an instruction).
Read `simplify`, then `narrow`.
"""
