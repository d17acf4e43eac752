"""Kernels as LLVM IR text, and that text as machine code: printing, building, loading, the thread pool.

Read first: `module.print_llvm`, `machine.compile.compile_object`, `machine.jit.load`. Nothing here chooses: the loop
tree says it all.
"""
