"""Models that learn what the clock misses from measured rows. Read `learned` (what tuning uses), then `residual`."""
