"""Runners of kernels without hardware: the loop tree's interpreter, or one that the device is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.tree.kernel import Kernel
from autosched.codegen.tree.text import print_kernel
from autosched.ir.data import require_data

Arrays = Mapping[str, npt.NDArray[Any]]
Run = Callable[[Kernel, Arrays, Mapping[str, Any]], dict[str, npt.NDArray[np.generic]]]


@dataclass(frozen=True)
class Runner:
    """`run` returns a kernel's outputs on arrays and scalars. Every trial runs kernels of at most `most` statements,
    which takes well under a second; the final round runs those of at most `final`. `emulated`: those of at most so many
    would be run with --emulate (0: there is no emulator, or this is it)."""

    name: str
    run: Run
    most: int
    final: int
    emulated: int = 0


INTERPRETER = Runner("the interpreter", run_kernel, 6_000, 6_000)


class InterpretedKernel:
    """`kernel(a, b)` takes the program's inputs and scalars in order and returns its output, a tuple of several;
    `source` is the loop tree."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.source = print_kernel(kernel)

    def __call__(self, *values: Any) -> Any:
        program = self.kernel.program
        taken = [p for p in program.parameters if p in program.inputs or p in program.scalars]
        if len(values) != len(taken):
            from autosched.errors import UsageError

            raise UsageError(f"{program.name} takes {', '.join(taken)}: {len(taken)} values, not {len(values)}")
        given = dict(zip(taken, values, strict=True))
        arrays = {k: np.asarray(v) for k, v in given.items() if k in program.tensors}
        require_data(program, arrays)
        scalars = {k: v for k, v in given.items() if k in program.scalars}
        found = run_kernel(self.kernel, arrays, scalars)
        results = tuple(found[name] for name in program.outputs)
        return results[0] if len(results) == 1 else results
