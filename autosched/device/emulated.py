"""The simulator as users ask for it: with `emulate` it checks kernels as CUDA C++ on the emulated GPU.

The simulator itself knows no language; it is given what runs its kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.print_functions import RunText, functions_of
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
    runner = emulator(target) if emulate else replace(INTERPRETER, emulated=FINAL_EMULATED if _emulates(target) else 0)
    return SimulatorDevice(
        program, target, threads=threads, seed=seed, cache=cache, noise=noise, oracle=oracle, objective=objective,
        runner=runner,
    )


def emulator(target: Target | None) -> Runner:
    """Kernels as printed, on this CPU. UsageError for a target whose language has no emulator, MissingError where
    something that it needs is not installed."""
    emulates = _emulates(target)
    if target is None or emulates is None:
        said = "no target is named" if target is None else f"{target.name} is {target.isa}"
        raise UsageError(f"--emulate is for CUDA targets; {said}", hint="-t nvidia-h200, say")
    run_printed, machine = emulates(), target

    def run(kernel: Kernel, arrays: Arrays, scalars: Mapping[str, Any]) -> dict[str, npt.NDArray[np.generic]]:
        return run_printed(kernel, machine, arrays, scalars)

    return Runner("the emulator", run, MOST_EMULATED, FINAL_EMULATED)


def _emulates(target: Target | None) -> Callable[[], RunText] | None:
    """What makes the emulator of a target's language; None where it has none."""
    language = target.backend.language if target is not None else None
    return functions_of(language).emulator if language is not None else None
