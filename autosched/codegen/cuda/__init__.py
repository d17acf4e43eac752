"""CUDA C++ from a loop tree. Read `launch` (the host's side), `printer` (the file), then `statements` (how).

The printer decides nothing: which thread does what is in the tree and in the intrinsics' fragment maps. Device
functions of our own are in `include/autosched/`, one idea a header; intrinsics are printed from their YAML.
"""

from autosched.codegen.cuda.launch import Launch, LaunchPlan, TensorMapEncoding, Workspace
from autosched.codegen.cuda.printer import CudaSource, print_cuda

__all__ = ["CudaSource", "Launch", "LaunchPlan", "TensorMapEncoding", "Workspace", "print_cuda"]
