"""Ceilings of instructions in the GPU benchmark: loops that compile to the instruction, and rounds beside kernels."""

import re

import pytest
from support.cards.gpu_plans import H200, plans
from support.cards.nvrtc import needs_disassembler, needs_nvrtc

from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.device.cuda.compile.sass import instructions_of
from benchmarks.gpu.cases import all_cases
from benchmarks.gpu.ceiling import CALLS, LOADED, loops_of

TIERS = [c for c in all_cases() if c.share is not None]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", TIERS, ids=lambda c: c.name)
def test_loops_are_of_the_instruction_and_spill_nothing(case):
    needs_nvrtc("sm_90a")
    needs_disassembler()
    small = {n: min(v, 1024) if isinstance(v, int) else v for n, v in case.sizes.items()}
    _, (plan, *_) = plans(case.workload, f"cuda/{case.only[0]}", **small)
    headers = {}
    loops = loops_of(plan, H200, headers)
    opaque = "wmma" in plan.name
    assert [loop.entry.plan for loop in loops] == ([CALLS, LOADED] if opaque else [CALLS])
    mnemonic = {"dp4a": "IDP", "wmma": "HMMA", "mma/f16": "HMMA", "mma/s8": "IMMA"}
    wanted = next(m for n, m in mnemonic.items() if n in f"{plan.name} {case.name}")
    for loop in loops:
        made = compile_cuda(loop.entry.text, loop.entry.arch, {n: headers[n] for n in loop.entry.headers})
        assert not made.kernels["probe"].spills
        found = instructions_of(made.code, made.arch)
        assert sum(n for name, n in found.items() if re.match(wanted, name)) >= 4
        if loop.entry.plan == LOADED:
            assert sum(n for name, n in found.items() if name.startswith("LDSM")) >= 4


def test_a_loop_counts_all_its_operations():
    _, (plan, *_) = plans("matmul_nt", "cuda/dp4a.s8.s8", m=256, n=256, k=256, a="s8", b="s8", acc="s32")
    (loop,) = loops_of(plan, H200, {})
    (call,) = loop.entry.job.calls
    each = int(re.search(r"turn < (\d+)", loop.entry.text)[1]) * int(re.search(r"s < (\d+)", loop.entry.text)[1])
    assert loop.operations == call.grid[0] * call.block[0] * each * 4 * 2
