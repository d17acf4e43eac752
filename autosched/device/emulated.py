"""The simulator as users ask for it: with `emulate` it checks kernels as CUDA C++ on the emulated GPU.

The simulator itself knows no printer; it is given what runs its kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.cuda.emulation import run_printed
from autosched.codegen.cuda.emulation.build import compiler
from autosched.codegen.tree.kernel import Kernel
from autosched.device.correctness.oracle import Oracle
from autosched.device.simulator import SimulatorDevice
from autosched.device.simulator.verify.runner import INTERPRETER, Arrays, Runner
from autosched.errors import UsageError
from autosched.ir.program import Program
from autosched.machine.target import Target

MOST_EMULATED, FINAL_EMULATED = 30_000, 300_000  # 15 to 20 us each


def simulator(
    program: Program | None = None,
    target: Target | None = None,
    *,
    threads: int = 1,
    seed: int = 0,
    cache: str = "warm",
    noise: float | None = None,
    oracle: Oracle | None = None,
    objective: str = "latency",
    emulate: bool = False,
) -> SimulatorDevice:
    """A `SimulatorDevice` with its own options; `emulate` checks kernels by `emulator`, and raises what that raises."""
    runner = emulator(target) if emulate else INTERPRETER
    return SimulatorDevice(
        program, target, threads=threads, seed=seed, cache=cache, noise=noise, oracle=oracle, objective=objective,
        runner=runner,
    )


def emulator(target: Target | None) -> Runner:
    """Kernels as CUDA C++ on the emulated GPU. UsageError for a target whose kernels are not printed as CUDA,
    MissingError without a C++ compiler."""
    if target is None or target.backend.printer != "cuda":
        said = "no target is named" if target is None else f"{target.name} is {target.isa}"
        raise UsageError(f"--emulate is for CUDA targets; {said}", hint="-t nvidia-h200, say")
    compiler()

    def run(kernel: Kernel, arrays: Arrays, scalars: Mapping[str, Any]) -> dict[str, npt.NDArray[np.generic]]:
        return run_printed(kernel, target, arrays, scalars)

    return Runner("the emulator", run, MOST_EMULATED, FINAL_EMULATED)
