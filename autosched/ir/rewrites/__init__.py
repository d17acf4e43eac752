"""Proved steps from a program to a program that computes the same. Read `rewrite` first."""
