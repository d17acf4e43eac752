"""Lowering of a nest for an accelerator with scratchpads: `spatial_nest` makes its loops, copies and calls."""
