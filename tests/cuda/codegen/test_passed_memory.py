"""Threads of a block exchange values through memory: the printer declares no such pointer `__restrict__`."""

from __future__ import annotations

import re

import numpy as np
from support.cards.gpu_plans import CATALOGUE

from autosched.codegen.cuda import print_cuda
from autosched.codegen.lower import lower
from autosched.ir.workload import workload
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.families import ONE_PASS, family_of
from autosched.tiling.planner.plan_program import plan_program


def test_what_a_launch_reads_and_writes_is_not_restricted() -> None:
    """On an H200 five of ten kernels of this program used the maximum of the block before: lanes had read it, another
    one wrote it, and behind the barrier they took what they had."""
    program, target = workload("cross_entropy"), load_target("nvidia-h200")
    planned = plan_program(program, target, CATALOGUE, usable(CATALOGUE, target, "simulator", None))
    plan = next(p for p in planned.every if family_of(p) == ONE_PASS)
    row = int(plan.space.sample(1, np.random.default_rng(0))[0])
    source = print_cuda(lower(plan, plan.space.schedule(row)), target)
    heads = re.findall(r"__global__ .*?\((.*?)\) \{", source.text, re.DOTALL)
    (loops,) = (head for head in heads if "C_block" in head and "Z_as_written" not in head)
    restricted = {name: bool(mark) for mark, name in re.findall(r"\* (__restrict__ )?(\w+)", loops)}
    assert restricted == {"X": True, "W": True, "M": False, "Z": False, "C_block": False}
