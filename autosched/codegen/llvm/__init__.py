"""Kernels as LLVM IR text, and that text as machine code: printing, building, loading, the thread pool.

Read first: `module.print_parts` (`print_llvm` is all of it as one text), `machine.compile.compile_object`,
`machine.jit.load`. Nothing here chooses: the loop tree says it all.
"""
