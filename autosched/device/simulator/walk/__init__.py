"""A kernel's loop tree as flat facts: what runs how often, and which memory it touches. Read `walk` and `facts`."""
