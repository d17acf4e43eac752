"""Times without hardware: a model of CPUs and GPUs that walks a kernel's loop tree, and checks kernels in the interpreter.

Independent of the analytic clock: it sees only the lowered kernel and the target. Read `device`, then `walk`.
"""

from autosched.device.simulator.device import SimulatorDevice

__all__ = ["SimulatorDevice"]
