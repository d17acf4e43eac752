"""Which block computes which tile: persistence, groups of the raster order, clusters of blocks that share slices.

Tiles are numbered along the raster. With a group of `g`, `g` tiles along the slow axis are passed before the fast one
moves on, so that blocks which run together read fewer different rows and columns; the last group is smaller where `g`
does not divide them. Blocks of a cluster lie side by side along one axis, or along both; a slice that does not vary
along an axis is fetched by the blocks along it together, each a part for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from autosched.logic import Bool, Const, Int, Var, all_of, ceil_div, maximum, minimum, where
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.gpu.block_tile import outside_blocks
from autosched.tiling.steps.gpu.operands.slice_copies import BULK, SYNC

GROUPS = (1, 8, 16)
GROUPED = 10, 11
"""The share of the cores that clusters of more than two can use: no cluster spans two groups of cores (GPCs). An H200,
of 132 cores, runs 66 clusters of two, 39 of three, 30 of four and 15 of eight at once (cuOccupancyMaxActiveClusters);
with 32 of four a product took twice as long as without clusters."""
CLUSTER_BLOCKS = (2, 4)
"""Of a cluster, along one axis; two along each are the other way to have four. Eight are legal on hardware, and what
more of them save is small beside the waiting for each other."""
PERSISTENT = Handle("persistent", 0)
GROUP = Handle("group", 1)
CLUSTER_SHAPE = Handle("cluster", 0)


def cluster_kinds(pair: tuple[NestAxis, ...], most: int = max(CLUSTER_BLOCKS)) -> tuple[tuple[int, ...], ...]:
    """What the values of `cluster` from 1 on mean: blocks along each axis of the pair, no more than `most` in all."""
    kinds = [tuple(n if a is along else 1 for a in pair) for n in CLUSTER_BLOCKS for along in pair]
    kinds += [(2, 2)] if len(pair) == 2 else []
    return tuple(kind for kind in kinds if prod(kind) <= most)


def cluster_label(pair: tuple[NestAxis, ...], kind: tuple[int, ...]) -> str:
    """As people read it: `2 along i`, `2 x 2`."""
    several = [f"{n} along {a.name}" for a, n in zip(pair, kind, strict=True) if n > 1]
    return several[0] if len(several) == 1 else " x ".join(map(str, kind))


def cluster_shape(pair: tuple[NestAxis, ...], cluster: int) -> dict[str, int]:
    """Blocks of a cluster along each axis, for a value of `cluster`."""
    kind = cluster_kinds(pair)[cluster - 1] if cluster else (1,) * len(pair)
    return dict(zip([a.name for a in pair], kind, strict=True))


def offers_clusters(nest: Nest, target: Target) -> bool:
    """Whether blocks may share slices: of instructions that are so fast that fetching each slice twice keeps them
    waiting, which are those that read shared memory themselves."""
    return target.bulk_copies and bool(nest.intrinsic.shared_memory)


def clusters_at_once(cores: int, blocks: Int) -> Int:
    """Clusters of so many blocks that run together, a block a core."""
    return maximum(1, where(blocks > 2, grouped_cores(cores), cores) // blocks)


def grouped_cores(cores: int) -> int:
    """Cores that clusters of more than two blocks can use."""
    share, whole = GROUPED
    return max(1, cores * share // whole)


def gpu_grid(nest: Nest, target: Target, pair: tuple[NestAxis, ...], names: StepNames) -> Step:
    """`persistent`: as many blocks as cores, each computing several tiles; `group`: tiles along the slow axis that are
    passed together; `cluster`: blocks that share slices.

    Derived: `cluster_blocks`, `tiles` (of clusters), `resident` (clusters that persistent blocks make).
    """
    blocks_of, tiles, resident = names("cluster_blocks"), names("tiles"), names("resident")
    persistent = Var(names(PERSISTENT.name))
    decisions: list[Decision] = [Decision(persistent.name, (0, 1), ("no", "yes"))]
    ahead = persistent.eq(0) | Var(names("copy")).ne(SYNC)
    rules: list[Rule] = [Rule(persistent.name, ahead, "a persistent block copies ahead, and copies are sync")]
    inert: dict[str, Bool] = {}
    kinds = cluster_kinds(pair, target.limits.get("cluster_blocks", 1) if offers_clusters(nest, target) else 1)
    cluster: Int = Const(0)
    if kinds:
        cluster = Var(names(CLUSTER_SHAPE.name))
        labels = ("none", *(cluster_label(pair, kind) for kind in kinds))
        decisions.append(Decision(names(CLUSTER_SHAPE.name), tuple(range(1 + len(kinds))), labels, held=0))
        rules += _cluster_rules(pair, kinds, names)
        inert[names(CLUSTER_SHAPE.name)] = Var(names("staged")).eq(0)
    grids = [Var(names(f"grid_{a.name}")) for a in pair]
    clusters = [_clusters_along(d, grid, cluster, kinds) for d, grid in enumerate(grids)]
    count: Int = Const(outside_blocks(nest))
    for along in clusters:
        count = count * along
    derived: dict[str, Int] = {}
    if len(pair) == 2:
        group, raster = Var(names(GROUP.name)), Var(names("raster"))
        decisions.append(Decision(group.name, GROUPS))
        slow = where(raster.eq(0), *clusters)
        fits = group.eq(1) | (group < slow)  # one group of all rows is the other raster order
        rules.append(Rule(group.name, fits, "{" + names("slow_tiles") + "} tiles in groups of {" + group.name + "}"))
        inert[group.name] = grids[0].eq(1) | grids[1].eq(1)
        derived[names("slow_tiles")] = slow
    of_cluster: Int = Const(1)
    for k, kind in enumerate(kinds, 1):
        of_cluster = where(cluster.eq(k), prod(kind), of_cluster)
    derived |= {
        blocks_of: of_cluster,
        tiles: count,
        resident: minimum(Var(tiles), clusters_at_once(target.cores, Var(blocks_of))),
    }
    inert[persistent.name] = Var(tiles) <= Var(resident)
    return Step("gpu grid", tuple(decisions), tuple(rules), derived, inert)


def _cluster_rules(pair: tuple[NestAxis, ...], kinds: Sequence[tuple[int, ...]], names: StepNames) -> Iterator[Rule]:
    """A cluster needs TMA, and a grid that it divides."""
    cluster = Var(names(CLUSTER_SHAPE.name))
    engine = Var(names("copy")).eq(BULK)
    yield Rule(cluster.name, cluster.eq(0) | engine, "a cluster shares what TMA fetches, and copies are not")
    for d, axis in enumerate(pair):
        grid = Var(names(f"grid_{axis.name}"))
        even = all_of(*(cluster.ne(k) | (grid % kind[d]).eq(0) for k, kind in enumerate(kinds, 1) if kind[d] > 1))
        sentence = f"{{{grid.name}}} tiles along {axis.name} make no whole clusters of {{{names('cluster_blocks')}}}"
        yield Rule(names(f"cluster_{axis.name}"), even, sentence)


def _clusters_along(d: int, grid: Int, cluster: Int, kinds: Sequence[tuple[int, ...]]) -> Int:
    """Clusters along the pair's axis number `d`, which has `grid` blocks."""
    along = grid
    for k, kind in enumerate(kinds, 1):
        along = where(cluster.eq(k), ceil_div(grid, kind[d]), along) if kind[d] > 1 else along
    return along
