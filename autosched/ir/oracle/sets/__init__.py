"""Data sets beside the random one. Read `ends`, which makes them all, then `strength`."""
