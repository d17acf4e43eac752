"""Programs on an instruction that clamps, plans that check for it, and data within the conditions or past them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.plans import CONV, machine

from autosched.device.correctness.violations import assuming, violations
from autosched.ir import parse, random_inputs
from autosched.ir.oracle.inputs import split_inputs
from autosched.ir.program import Program
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of as tuning_plans
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import Planned, plan_program
from autosched.tiling.plans.plan import Plan

AVX2 = machine(frozenset(["avx2", "fma"]), 16, 32)
CLAMPING = "x86/vpmaddubsw.vpmaddwd.ymm"
GEMM = """
def {name}(A: {a}[m, k], B: {b}, C: s32[m, n], *, m=3, n=19, k=11):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""
REQUANT = """
def requant(A: u8[m, k], B: const[s8[k, n]], Y: s8[m, n], *, m=3, n=17, k=9):
    C: s32[m, n]
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
    for i, j in grid(m, n):
        Y[i, j] = sat_s8(C[i, j] >> 8)
"""


def programs() -> dict[str, Program]:
    """Weights that are checked once, data that are checked in every call, a fused tail, guards, converted operands."""
    found = [
        parse(GEMM.format(name="weights", a="u8", b="const[s8[k, n]]")),
        parse(GEMM.format(name="data", a="u8", b="s8[k, n]"), sizes={"m": 12, "n": 33, "k": 35}),
        parse(GEMM.format(name="signed", a="s8", b="const[s8[k, n]]")),
        parse(GEMM.format(name="unsigned", a="u8", b="const[u8[k, n]]")),
        parse(REQUANT),
        parse(CONV, sizes={"t": "u8", "u": "s8", "acc": "s32", "co": 9, "h": 4, "w": 5, "ci": 3}),
    ]
    return {p.name: p for p in found}


def plans(
    program: Program, mode: str = "guard", threads: int = 1, spare: tuple[str, ...] = ("portable/mac*",)
) -> list[Plan]:
    """The plans of tuning on the clamping instruction and on those that stand by."""
    request = TuneRequest(program, AVX2, device="cpu", threads=threads, only=(CLAMPING, *spare), conditions=mode)
    return tuning_plans(request)[1]


def planned(program: Program) -> Planned:
    """The same before fallbacks are chosen."""
    only = (CLAMPING, "portable/mac*")
    known = Catalogue.builtin()
    return plan_program(program, AVX2, known, usable(known, AVX2, "cpu", only))


def guarded(program: Program, threads: int = 1, spare: tuple[str, ...] = ("portable/mac*",)) -> list[Plan]:
    return [p for p in plans(program, threads=threads, spare=spare) if p.guards]


def data_sets(program: Program, plan: Plan, seed: int = 0) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(name, arrays, scalars) within what the plan checks, then past each bound by one."""
    import numpy as np

    inside = assuming(program, plan.guards)
    arrays, scalars = split_inputs(inside, random_inputs(inside, np.random.default_rng(seed)))
    yield "within", arrays, scalars
    for violation in violations(program, plan, seed):
        yield violation.folder, {**arrays, **violation.inputs()}, scalars
