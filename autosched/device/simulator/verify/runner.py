"""Runners of kernels without hardware: the loop tree's interpreter, or one that the device is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.tree.kernel import Kernel

Arrays = Mapping[str, npt.NDArray[Any]]
Run = Callable[[Kernel, Arrays, Mapping[str, Any]], dict[str, npt.NDArray[np.generic]]]


@dataclass(frozen=True)
class Runner:
    """`run` returns a kernel's outputs on arrays and scalars. Every trial runs kernels of at most `most` statements,
    which takes well under a second; the final round runs those of at most `final`."""

    name: str
    run: Run
    most: int
    final: int


INTERPRETER = Runner("the interpreter", run_kernel, 6_000, 6_000)
