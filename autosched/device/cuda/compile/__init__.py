"""CUDA C++ to cubins by NVRTC, and what a cubin holds. Read `nvrtc` and `builder`."""
