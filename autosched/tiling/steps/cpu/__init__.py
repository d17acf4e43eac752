"""The steps of a nest on a CPU, and the analyses that only they need. Read `loop_order`, `cache_block` and `pack`."""
