"""Bodies of tile loops on a GPU: which blocks share them, and what they keep."""
