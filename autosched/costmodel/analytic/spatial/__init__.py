"""Terms of the clock on an accelerator with scratchpads: `spatial_clock` adds up what `spatial_units` says of units.

Read `spatial_clock` first.
"""
