"""Rewrites of a loop tree for targets that lack something: wide vectors, free registers, an instruction."""
