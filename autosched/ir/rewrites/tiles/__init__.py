"""Neighbouring stages, a tile of rows at a time: `tiled_rows`."""
