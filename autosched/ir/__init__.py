"""The loop-nest language: dtypes, values, programs, the parser and printer, the oracle, and the built-in workloads.

Holds nothing about hardware or schedules. Read `program`, `value`, then `parser`.
"""

from autosched.ir.parser import load, parse
from autosched.ir.program import Axis, Program, Stage
from autosched.ir.workload import workload, workload_names

__all__ = ["Axis", "Program", "Stage", "load", "parse", "workload", "workload_names"]
