"""Runs CUDA kernels on the CPU and names every mistake: emitted text compiled as host C++, threads as fibers.

Read `run` (arrays in, outputs or an error out), then `text` (emitted text as host C++), `build` (the compiler's part),
`card` (the runtime by ctypes) and `models` (instructions from their semantics). The runtime is C++, in
`include/emulate/runtime`; host versions of the device headers are in `include/emulate/autosched`.
"""

from autosched.codegen.cuda.emulation.run import Emulated, Unit, build, run_printed
from autosched.codegen.cuda.emulation.violations import EmulationError, Violation

__all__ = ["Emulated", "EmulationError", "Unit", "Violation", "build", "run_printed"]
