"""Registers of a warp: which lane holds which element, and how they are loaded, exchanged and stored.
Read `fragments`, then `registers`.
"""
