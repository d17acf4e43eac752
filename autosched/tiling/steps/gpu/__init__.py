"""The steps of a nest on a GPU. Read `gpu_steps` (their order), `block_tile` and `operands.slice_copies`."""
