"""Blocks, workers and register tiles of a nest on a GPU: who computes which tile of the output.

A worker is a warp or a warpgroup for an instruction of one, else a thread. Along each of up to two spatial axes (the
*pair*) a worker holds `reg_x` intrinsic tiles, a block `warps_x` (`groups_x`, `threads_x`) workers, and the grid as
many blocks as cover the axis. All other spatial axes are blocks of one element each.
"""

from __future__ import annotations

from math import prod

from autosched.logic import Const, Int, Var, ceil_div
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, tiled_axes
from autosched.tiling.step import Decision, Handle, Rule, Step

TILES = (1, 2, 3, 4, 6, 8)
WORKERS = {"thread": (1, 2, 4, 8, 16, 32), "warp": (1, 2, 4, 8), "warpgroup": (1, 2, 3, 4)}
WORKER_NAMES = {"thread": "threads", "warp": "warps", "warpgroup": "groups"}
WARPGROUP_WARPS = 4
SCOPE_WARPS = {"warp": 1, "warpgroup": WARPGROUP_WARPS}
"""Warps that issue an instruction together."""
RASTERS = ("last fastest", "first fastest")
RASTER = Handle("raster", 0)


def is_gpu(target: Target) -> bool:
    """Whether the target runs grids of blocks of threads: it then says how many threads issue together."""
    return "warp_threads" in target.limits


def is_block_loop(parallel: bool, lower: Int, upper: Int) -> bool:
    """Whether blocks of a grid share a loop."""
    return parallel and isinstance(lower, Const) and isinstance(upper, Const)


def gpu_pair(nest: Nest) -> tuple[NestAxis, ...]:
    """The (at most two) spatial axes that a block's tile spans, outermost first."""
    return tiled_axes(nest)[-2:]


def worker_threads(intrinsic: Intrinsic, target: Target) -> int:
    """Threads that issue the instruction together."""
    warps = SCOPE_WARPS.get(intrinsic.scope)
    return warps * target.limits["warp_threads"] if warps else 1


def workers_name(nest: Nest, names: StepNames, axis: NestAxis) -> str:
    """`threads_x`, `warps_x` or `groups_x`: workers of a block along an axis."""
    return names(f"{WORKER_NAMES.get(nest.intrinsic.scope, 'threads')}_{axis.name}")


def outside_blocks(nest: Nest) -> int:
    """Blocks along the spatial axes outside the pair."""
    return prod(a.units for a in nest.spatial if a not in gpu_pair(nest))


def gpu_tile(nest: Nest, target: Target, names: StepNames) -> Step:
    """Decisions `reg_x`, `workers_x` for each axis of the pair and the raster order of blocks. Derived: `tile_x`
    (intrinsic tiles of a block), `grid_x`, `blocks`, `threads`, `accumulators`."""
    pair = gpu_pair(nest)
    each = worker_threads(nest.intrinsic, target)
    decisions: list[Decision] = []
    derived: dict[str, Int] = {}
    rules: list[Rule] = []
    threads: Int = Const(each)
    blocks: Int = Const(outside_blocks(nest))
    accumulators: Int = Const(1)
    for axis in pair:
        reg, workers = Var(names.register(axis)), Var(workers_name(nest, names, axis))
        tile, grid = names(f"tile_{axis.name}"), names(f"grid_{axis.name}")
        decisions.append(Decision(reg.name, tuple(v for v in TILES if v <= axis.units) or (1,)))
        domain = WORKERS.get(nest.intrinsic.scope, WORKERS["thread"])
        decisions.append(Decision(workers.name, tuple(v for v in domain if v <= axis.units) or (1,)))
        derived[tile] = reg * workers
        derived[grid] = ceil_div(axis.units, Var(tile))
        sentence = "a block takes {" + tile + f"}} tiles along {axis.name}, which has {axis.units}"
        rules.append(Rule(tile, Var(tile) < 2 * axis.units, sentence))
        threads, blocks, accumulators = threads * workers, blocks * Var(grid), accumulators * reg
    derived[names("threads_in_block")] = threads
    derived[names("blocks")] = blocks
    derived[names("accumulators")] = accumulators
    most = target.limits.get("threads_per_block", 1024)
    sentence = "{" + names("threads_in_block") + f"}} threads in a block > {most:,}"
    rules.append(Rule(names("threads_in_block"), Var(names("threads_in_block")) <= most, sentence))
    inert = {}
    if len(pair) == 2:
        decisions.append(Decision(names(RASTER.name), (0, 1), RASTERS, held=0))
        one = [Var(names(f"grid_{a.name}")).eq(1) for a in pair]
        inert[names(RASTER.name)] = one[0] | one[1]
    return Step("gpu tile", tuple(decisions), tuple(rules), derived, inert)
