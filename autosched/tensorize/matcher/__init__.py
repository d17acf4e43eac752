"""The search over mappings, and the proof of each from its parts. Read `match`, then `proofs`."""
