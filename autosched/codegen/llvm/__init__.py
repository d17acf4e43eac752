"""Kernels as LLVM IR text, and that text as machine code: printing, building, loading, the thread pool.

Read first: `module.print_llvm`, `compile.compile_object`, `jit.load`. Nothing here chooses: the loop tree says it all.
"""
