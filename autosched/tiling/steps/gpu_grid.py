"""Which block computes which tile: persistence, groups of the raster order, clusters of blocks that share slices.

Tiles are numbered along the raster. With a group of `g`, `g` tiles along the slow axis are passed before the fast one
moves on, so that blocks which run together read fewer different rows and columns. Blocks of a cluster lie side by side
along one axis; a slice that does not vary along it is fetched by all of them together, each a part for all.
"""

from __future__ import annotations

from autosched.logic import Const, Int, Var, ceil_div, maximum, minimum, where
from autosched.machine.target import Target
from autosched.tiling.nest import Nest, NestAxis
from autosched.tiling.step import Decision, Rule, Step
from autosched.tiling.steps.gpu_copy import BULK, SYNC
from autosched.tiling.steps.gpu_roles import offers_roles
from autosched.tiling.steps.gpu_tile import outside_blocks
from autosched.tiling.steps.names import StepNames

GROUPS = (1, 8)
CLUSTERS = (0, 1, 2)
CLUSTER_BLOCKS = 2
"""Of a cluster: more are legal on hardware, and what a second pair saves is small beside the waiting for each other."""


def cluster_shape(pair: tuple[NestAxis, ...], cluster: int) -> dict[str, int]:
    """Blocks of a cluster along each axis: `cluster` is 0, or the number (from 1) of the axis that has several."""
    return {a.name: CLUSTER_BLOCKS if cluster == k + 1 else 1 for k, a in enumerate(pair)}


def gpu_grid(nest: Nest, target: Target, pair: tuple[NestAxis, ...], names: StepNames) -> Step:
    """`persistent`: as many blocks as cores, each computing several tiles; `group`: tiles along the slow axis that are
    passed together; `cluster`: blocks that share slices.

    Derived: `cluster_blocks`, `tiles` (of clusters), `resident` (clusters that persistent blocks make).
    """
    blocks_of, tiles, resident = names("cluster_blocks"), names("tiles"), names("resident")
    persistent = Var(names("persistent"))
    decisions: list[Decision] = [Decision(persistent.name, (0, 1), ("no", "yes"))]
    ahead = persistent.eq(0) | Var(names("copy")).ne(SYNC)
    rules: list[Rule] = [Rule(persistent.name, ahead, "a persistent block copies ahead, and copies are sync")]
    inert = {}
    cluster: Int = Const(0)
    if target.limits.get("cluster_blocks", 1) >= CLUSTER_BLOCKS and offers_roles(nest, target) and pair:
        shapes = CLUSTERS[: 1 + len(pair)]
        labels = ("none", *(f"{CLUSTER_BLOCKS} along {a.name}" for a in pair))
        decisions.append(Decision(names("cluster"), shapes, labels))
        cluster = Var(names("cluster"))
        engine = Var(names("copy")).eq(BULK)
        rules.append(
            Rule(names("cluster"), cluster.eq(0) | engine, "a cluster shares what TMA fetches, and copies are not")
        )
        inert[names("cluster")] = Var(names("staged")).eq(0)
        for k, axis in enumerate(pair):
            grid = Var(names(f"grid_{axis.name}"))
            even = cluster.ne(k + 1) | (grid % CLUSTER_BLOCKS).eq(0)
            sentence = "{" + grid.name + f"}} tiles along {axis.name} make no whole clusters of {CLUSTER_BLOCKS}"
            rules.append(Rule(names(f"cluster_{axis.name}"), even, sentence))
    count: Int = Const(outside_blocks(nest))
    grids = [Var(names(f"grid_{a.name}")) for a in pair]
    for k, grid in enumerate(grids):
        count = count * where(cluster.eq(k + 1), ceil_div(grid, CLUSTER_BLOCKS), grid)
    if len(pair) == 2:
        group, raster = Var(names("group")), Var(names("raster"))
        decisions.append(Decision(group.name, GROUPS))
        first, second = (where(cluster.eq(k + 1), ceil_div(g, CLUSTER_BLOCKS), g) for k, g in enumerate(grids))
        slow = where(raster.eq(0), first, second)
        rules.append(
            Rule(
                group.name,
                (slow % group).eq(0),
                "{" + names("slow_tiles") + "} tiles in groups of {" + group.name + "}",
            )
        )
        inert[group.name] = grids[0].eq(1) | grids[1].eq(1)
        derived: dict[str, Int] = {names("slow_tiles"): slow}
    else:
        derived = {}
    of_cluster = where(cluster.eq(0), 1, CLUSTER_BLOCKS)
    derived |= {
        blocks_of: of_cluster,
        tiles: count,
        resident: minimum(Var(tiles), maximum(1, target.cores // Var(blocks_of))),
    }
    inert[persistent.name] = Var(tiles) <= Var(resident)
    return Step("gpu grid", tuple(decisions), tuple(rules), derived, inert)
