"""Plans of a program's runs in tiles, of whatever sizes: planning picks those that fill a cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from support.match.agreement import disagreement, expect
from support.plans import machine

from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.planner.plan_program import float_policy_of, member_planner
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.steps import is_gpu
from autosched.tiling.variants.conditional import candidates_of
from autosched.tiling.variants.shared_runs import SharedRun, runs
from autosched.tiling.variants.tiled_stages import variant_of


def tiled_plans(
    found: SharedRun, tile: int, keep: bool = False, threads: int = 1, target: Target | None = None
) -> Iterator[Plan]:
    """The plans of a run in tiles of so many rows, the fastest first."""
    on, catalogue = target or machine(), Catalogue.builtin()
    fitting = usable(catalogue, on, "cuda" if is_gpu(on) else "cpu", ())
    members, policy = (
        member_planner(on, catalogue, fitting, "rescaled"),
        float_policy_of(found.program, on, catalogue, "rescaled"),
    )
    for variant in variant_of(found, tile, keep, fitting, "rescaled"):
        mappings = candidates_of(variant.matches, "guard")
        made = make_plans(variant.program, on, mappings, threads, policy, members, loops=variant.loops)
        yield from map(variant.named, made)


def plans_in_tiles(program: Program, threads: int = 2, target: Target | None = None) -> list[Plan]:
    """The first plan of each run of a program, in tiles of a third of its rows."""
    found = (tiled_plans(r, max(1, r.extent // 3), False, threads, target) for r in runs(program, 0))
    first = (next(iter(plans), None) for plans in found)
    return [p for p in first if p is not None and in_tile_loops(p)]


def in_tile_loops(plan: Plan) -> bool:
    return any(isinstance(p, TileLoopsPart) for p in plan.parts)


def check_tiles(
    program: Program, found: SharedRun, tile: int, keep: bool, threads: int, target: Target | None = None
) -> str:
    """Kernels of a run in tiles of so many rows compute the program; how the tiles are laid out."""
    for plan in tiled_plans(found, tile, keep, threads, target):
        ids = plan.space.sample(2, np.random.default_rng(tile))
        assert disagreement(plan, ids.tolist(), expect(program)) is None, str(plan.program)
        return "as tile loops" if in_tile_loops(plan) else "as written"
    return "no tiles"
