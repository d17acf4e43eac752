"""The keys of an intrinsic file: their types, and what they mean together."""
