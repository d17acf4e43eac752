"""What a kernel's outputs must be, and whether they are. Read `oracle`, then `sampled` (large programs)."""
