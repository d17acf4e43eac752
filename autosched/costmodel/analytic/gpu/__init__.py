"""Terms of the clock on a GPU. Read `gpu_clock` (instructions: waves of blocks), then `block_cycles` (one block) and
`input_cycles` (its operands); `gpu_elementwise` for stages that teams of warps compute.
"""
