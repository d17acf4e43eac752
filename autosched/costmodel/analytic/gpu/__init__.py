"""Terms of the clock on a GPU. Read `gpu_clock` (instructions) and `gpu_elementwise` (teams)."""
