"""What runs a kernel where there is no hardware for it: the loop tree's interpreter, or the emulated card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.tree.kernel import Kernel
from autosched.errors import UsageError
from autosched.machine.target import Target

Arrays = Mapping[str, npt.NDArray[Any]]
Run = Callable[[Kernel, Arrays, Mapping[str, Any]], dict[str, npt.NDArray[np.generic]]]


@dataclass(frozen=True)
class Runner:
    """`run` answers a kernel's outputs on arrays and scalars. Kernels of at most `most` statements are run in every
    trial, which takes well under a second; of at most `final` where a few are looked at again."""

    name: str
    run: Run
    most: int
    final: int


INTERPRETER = Runner("the interpreter", run_kernel, 6_000, 6_000)
MOST_EMULATED, FINAL_EMULATED = 30_000, 300_000  # 15 to 20 us each


def emulator(target: Target | None) -> Runner:
    """Kernels as CUDA C++ on the emulated card. UsageError for a target that is no CUDA device, MissingError without a
    C++ compiler."""
    from autosched.codegen.cuda.emulation import run_printed
    from autosched.codegen.cuda.emulation.build import compiler

    if target is None or target.isa != "cuda":
        said = "no target is named" if target is None else f"{target.name} is {target.isa}"
        raise UsageError(f"--emulate is for CUDA targets; {said}", hint="-t nvidia-h200, say")
    compiler()
    known = target

    def run(kernel: Kernel, arrays: Arrays, scalars: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
        return run_printed(kernel, known, arrays, scalars)

    return Runner("the emulator", run, MOST_EMULATED, FINAL_EMULATED)
