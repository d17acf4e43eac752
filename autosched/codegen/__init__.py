"""A plan and a row become a loop tree (`lower`, `tree`), and that becomes text (`llvm`, `c`, `cuda`).

Read `tree.kernel`, `lower`, then `llvm.module`. What is done for the sake of one compiler stands in `workarounds`.
"""
