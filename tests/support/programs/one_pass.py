"""Programs whose stages run in one pass over tiles and blocks, and the plans of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autosched.ir import workload
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.planner.plan_program import float_policy_of, member_planner
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.variants.one_pass import one_pass_programs

ONE_PASS: dict[str, Program] = {
    "even": workload("attention", h=2, n=16, l=32, d=16),
    "attention": workload("attention", h=2, n=20, l=40, d=16),
    "ragged": workload("attention", h=1, n=19, l=39, d=8),
    "grouped heads": workload("attention", h=4, n=9, l=24, d=8, group=2),
    "causal": workload("attention", mask="causal", h=2, n=19, l=40, d=16),
    "fewer keys": workload("attention", mask="causal", h=1, n=40, l=20, d=8),
    "window": workload("attention", mask="window", h=2, n=24, l=48, d=16, window=10),
    "bias": workload("attention_alibi", h=2, n=16, l=24, d=8),
    "capped": workload("attention_softcap", h=2, n=16, l=24, d=8),
    "lengths": workload("attention_offsets"),
    "decode": workload("attention_decode", b=2, h=8, l=40, d=16, group=4),
    "cross entropy": workload("cross_entropy"),
}
SIZES = ((8, 16), (5, 64))
"""Rows of a tile and elements of a block: of several blocks, and of no whole one."""


def one_pass_plans(
    program: Program, target: Target, threads: int = 1, sizes: Sequence[tuple[int, int]] = SIZES
) -> Iterator[Plan]:
    """Plans of the program in one pass that keep tile loops, one for each size."""
    catalogue = Catalogue.builtin()
    intrinsics = usable(catalogue, target, "cpu", ())
    members = member_planner(target, catalogue, intrinsics, "rescaled")
    policy = float_policy_of(program, target, catalogue, "rescaled")
    for variant in one_pass_programs(program, intrinsics, "rescaled", sizes):
        plans = make_plans(variant.program, target, {}, threads, policy, members, "", variant.loops)
        plan = next((p for p in plans if any(isinstance(q, TileLoopsPart) for q in p.parts)), None)
        if plan is not None:
            yield variant.named(plan)
