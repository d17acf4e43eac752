"""The step of a nest on an accelerator with scratchpads: `scratchpads` says which tiles its memories hold."""
