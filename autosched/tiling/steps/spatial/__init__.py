"""The step of a nest on an accelerator with scratchpads."""
