"""Bodies of tile loops on a GPU, pass by pass. Read `tile_loops`, then what it calls."""
