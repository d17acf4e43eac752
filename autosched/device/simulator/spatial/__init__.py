"""The simulator's model of an accelerator with scratchpads. Read `spatial_model`."""
