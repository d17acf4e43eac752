"""LLVM's text to machine code in this process, and the thread pool that it calls. Read `compile`, then `jit`."""
