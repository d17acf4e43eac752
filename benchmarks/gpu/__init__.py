"""CUDA kernels against cuBLAS, cuDNN and Triton on a GPU: `python -m benchmarks.cuda` is the command.

`cases` says what; `prepare` proposes candidates and prints them here, where there may be no GPU; `run` builds,
measures and compares them there, and needs nothing of autosched's own dependencies but numpy and cuda-bindings; `merge`
tells the studies what was measured.
"""
