"""Preconditions on values: the weakest that are found, and what data and the program's parameters say of them.

Read `weakest`.
"""
