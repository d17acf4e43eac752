"""What a kernel's outputs must be: inputs within `assume`, the interpreter's outputs, and a tolerance an element.

Computed once in the parent and written to a folder that the worker reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.device.job import Tensor
from autosched.ir.program import Program

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Oracle:
    """`inputs` by tensor name (inouts included), `scalars` by name; `wants` and `tolerances` by output. A float
    output's tolerance is absolute, an element; integers have None, and must be equal."""

    inputs: Mapping[str, Array]
    wants: Mapping[str, Array]
    tolerances: Mapping[str, Array | None]
    scalars: Mapping[str, Any] = field(default_factory=dict)


def write(program: Program, oracle: Oracle, folder: Path) -> tuple[Tensor, ...]:
    """Write the data files and say what they are, in the order of the program's tensors."""
    tensors = []
    for name in program.parameters:
        if name not in program.tensors:
            continue
        tensor = program.tensors[name]
        storage = np.dtype(tensor.dtype.numpy)
        elements = int(np.prod(tensor.extents, dtype=np.int64))
        is_input, is_output = name in oracle.inputs, name in oracle.wants
        if is_input:
            np.ascontiguousarray(oracle.inputs[name], storage).tofile(folder / f"{name}.in")
        if is_output:
            tolerance = oracle.tolerances.get(name)
            kept = storage if tolerance is None else np.float64
            np.ascontiguousarray(oracle.wants[name]).astype(kept).tofile(folder / f"{name}.want")
            if tolerance is not None:
                filled = np.broadcast_to(np.asarray(tolerance, np.float64), tensor.extents)
                np.ascontiguousarray(filled).tofile(folder / f"{name}.tol")
        tensors.append(Tensor(name, storage.name, elements, elements * storage.itemsize, is_input, is_output))
    return tuple(tensors)
