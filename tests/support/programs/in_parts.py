"""Programs whose pass is split into parts, and the plans of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.planner.plan_program import float_policy_of, member_planner
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.variants.in_parts import PartSizes, in_parts_programs

LOG_SUM_EXP = """
def log_sum_exp(X: f32[m, n], Y: f32[m], *, m=1, n=48):
    M: f32[m]
    Z: f32[m]
    for i in range(m):
        M[i] = -inf
        for j in range(n):
            M[i] = max(M[i], X[i, j])
    for i in range(m):
        Z[i] = 0
        for j in range(n):
            Z[i] += exp(X[i, j] - M[i])
    for i in range(m):
        Y[i] = M[i] + log(Z[i])
"""
IN_PARTS: dict[str, Program] = {
    "one query": workload("attention_decode", b=1, h=1, l=48, d=16, group=1),
    "grouped heads": workload("attention_decode", b=1, h=4, l=40, d=16, group=4),
    "ragged": workload("attention_decode", b=2, h=3, l=47, d=8, group=1),
    "latent": workload("mla_decode", b=1, h=2, l=37, c=16, r=4),
    "causal": workload("attention", mask="causal", h=1, n=5, l=40, d=16),
    "window": workload("attention", mask="window", h=1, n=6, l=48, d=16, window=10),
    "log-sum-exp": parse(LOG_SUM_EXP),
    "rows": parse(LOG_SUM_EXP, sizes={"m": 3, "n": 41}),
    "softmax": workload("softmax", m=1, n=50),
}
SIZES = (PartSizes(2, 4, 64), PartSizes(2, 4, 8), PartSizes(3, 2, 5))
"""Parts of one block and of several, that divide the axis or do not."""


def parts_plans(
    program: Program, target: Target, threads: int = 2, sizes: Sequence[PartSizes] = SIZES
) -> Iterator[Plan]:
    """Plans of the program in parts that keep tile loops, one for each of the sizes."""
    catalogue = Catalogue.builtin()
    intrinsics = usable(catalogue, target, "cpu", ())
    members = member_planner(target, catalogue, intrinsics, "rescaled")
    policy = float_policy_of(program, target, catalogue, "rescaled")
    for variant in in_parts_programs(program, target, intrinsics, "rescaled", threads, sizes):
        plans = make_plans(variant.program, target, {}, threads, policy, members, "", variant.loops)
        plan = next((p for p in plans if any(isinstance(q, TileLoopsPart) for q in p.parts)), None)
        if plan is not None:
            yield variant.named(plan)
