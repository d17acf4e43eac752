"""Terms of the clock on an accelerator with scratchpads."""
