"""Times without hardware: models of CPUs and GPUs that walk a kernel's loop tree, and a check in the interpreter.

Independent of the analytic clock: it sees only the lowered kernel and the target. Read `device`, then `walk.walk`.
"""

from autosched.device.simulator.device import SimulatorDevice

__all__ = ["SimulatorDevice"]
