"""Chains of stages, written in the language itself. The files are parsed, never imported.

`examples/fused` links to them.
"""
