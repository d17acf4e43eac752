"""The loop-nest language: dtypes, values, programs, the parser and printer, the oracle, and the built-in workloads.

Holds nothing about hardware or schedules. Read `nodes`, `value`, `program`, then `parser`.
"""

from autosched.ir.einsum import einsum
from autosched.ir.nodes import Axis, Stage, Tensor
from autosched.ir.oracle.inputs import random_inputs, split_inputs
from autosched.ir.oracle.interpreter import run
from autosched.ir.oracle.tolerances import run_with_error
from autosched.ir.parser import load, parse
from autosched.ir.program import Program
from autosched.ir.resolve import resolve
from autosched.ir.sizes import with_sizes
from autosched.ir.workload import workload, workload_names

__all__ = [
    "Axis",
    "Program",
    "Stage",
    "Tensor",
    "einsum",
    "load",
    "parse",
    "random_inputs",
    "resolve",
    "run",
    "run_with_error",
    "split_inputs",
    "with_sizes",
    "workload",
    "workload_names",
]
