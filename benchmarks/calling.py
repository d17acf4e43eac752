"""What a call through Python adds to a kernel of a CPU: `python -m benchmarks.calling`.

Small programs, where the call is most of the time. `code` is the bare function through `ctypes`, and `adds` what the
checked call takes beyond it: with an array for the output, with a new one, and by name. Medians of the least of some
thousand short runs; microseconds.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import autosched

PROGRAMS = (
    ("elementwise", {"m": 4, "n": 16}),
    ("matmul", {"m": 8, "n": 8, "k": 8}),
    ("matmul_bias_relu", {"m": 8, "n": 16, "k": 8}),
)
CALLS, RUNS = 100, 1000


def microseconds(call: Callable[[], Any]) -> float:
    """The least of many short runs: what others do on the machine is no part of a call."""
    return min(timeit.repeat(call, number=CALLS, repeat=RUNS)) / CALLS * 1e6


def measured(name: str, sizes: dict[str, Any]) -> tuple[float, dict[str, float]]:
    """Microseconds of the bare function, and what the ways to call it add."""
    kernel = autosched.tune(autosched.workload(name, **sizes), trials=2).best.build()
    program = kernel.kernel.program
    rng = np.random.default_rng(0)
    given = {n: rng.random(program.tensors[n].extents).astype(program.tensors[n].dtype.numpy) for n in program.inputs}
    consts = {n: given[n] for n in kernel.constants}
    call = kernel.prepack(**consts) if consts else kernel
    inputs = {n: a for n, a in given.items() if n not in consts}
    outputs = {n: np.zeros(program.tensors[n].extents, program.tensors[n].dtype.numpy) for n in program.outputs}
    arrays = [(inputs | outputs)[p] for p in program.parameters if p in inputs or p in outputs]
    pointers = kernel.pointers(given | outputs, kernel.pack(consts))
    code = microseconds(lambda: kernel.run_raw(*pointers))
    ways = {
        "with an output": lambda: call(*arrays),
        "with a new one": lambda: call(*inputs.values()),
        "by name": lambda: call(**inputs, **outputs),
    }
    return code, {way: microseconds(run) - code for way, run in ways.items()}


def main() -> None:
    for name, sizes in PROGRAMS:
        code, adds = measured(name, sizes)
        told = "  ".join(f"{way} {value:.2f}" for way, value in adds.items())
        print(f"{name:18} code {code:.2f} us   adds {told}")


if __name__ == "__main__":
    main()
