"""Lowering of a nest for an accelerator with scratchpads."""
