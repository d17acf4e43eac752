"""Programs with neighbouring stages in tiles of rows, so that what they hand on stays in a cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autosched.ir.program import Program
from autosched.ir.rewrites.tiles.tiled_rows import tiled_rows
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tiling.analysis.windows import new_loops
from autosched.tiling.variants.adapted import Variant
from autosched.tiling.variants.shared_runs import SharedRun, shared_runs

MULTIPLES = (48, 24, 12, 8, 4)
"""What a number of rows is rounded down to: multiples of many heights of register tiles."""
KEPT, TWICE = "borders kept", "borders computed twice"
"""What becomes of rows that neighbouring tiles need, as names of rewrites have it."""
AGAIN = 1 / 20, 1 / 2
"""Rows computed twice, for each row of a tile: from the first on a plan keeps them, up to the second one does not."""


def tiled_programs(
    program: Program, target: Target, intrinsics: Sequence[Intrinsic], numerics: str
) -> Iterator[Variant]:
    """Variants for tiles that fill a cache of a core's own, of the longest runs of stages that share rows and hand on
    more than the largest of these caches holds."""
    own = own_caches(target)
    if program.symbolic or not own:
        return
    for run in shared_runs(program, own[-1]):
        for tile in _sizes(run, own):
            for keep in (False, True):
                if _worth(run, tile, keep):
                    yield from variant_of(run, tile, keep, intrinsics, numerics)


def why_no_borders(run: SharedRun, own: Sequence[int], keep: bool) -> str:
    """Why no tiles of a run, for caches of these sizes, keep the rows that the next tile needs, or none compute them
    twice; nothing where some do."""
    sizes = _sizes(run, own)
    if any(_worth(run, tile, keep) for tile in sizes):
        return ""
    if keep and run.keeping is None:
        return f"the next tile of {run.axis} needs no row that one has computed"
    rows = f"tiles of {max(sizes, default=0)} compute {run.again:g} more"
    return f"{rows}, which is hardly anything" if keep else f"{rows}, above {AGAIN[1]:.0%} of their own"


def _sizes(run: SharedRun, own: Sequence[int]) -> list[int]:
    """Rows of the tiles that are laid out."""
    return [*dict.fromkeys(map(_rounded, run.tiles(own)))]


def _worth(run: SharedRun, tile: int, keep: bool) -> bool:
    """Whether tiles of so many rows keep those that the next one needs, or compute them twice, if any are."""
    least, most = (part * tile for part in AGAIN)
    return run.keeping is not None and run.again > least if keep else run.again <= most


def variant_of(
    run: SharedRun, tile: int, keep: bool, intrinsics: Sequence[Intrinsic], numerics: str
) -> Iterator[Variant]:
    """A run in tiles of so many rows, which keep those that the next reads too or compute all of theirs. Nothing where
    a run has no such tiles."""
    after = tiled_rows(run.program, run.run, tile, run.keeping if keep else None)
    if after is None:
        return
    loops = new_loops(run.program, after)
    names = [s.name for s in after.stages if s.reduction and not loops & {a.name for a in s.axes}]
    matches = tuple(match(after, intrinsics, numerics, names)) if names else ()
    name = f"tiles of {tile}"
    because = [f"a tile of {run.axis} computes all that it reads of what is handed on; no two meet in the rest"]
    if run.again:
        name += f", {KEPT if keep else TWICE}"
    if keep:
        because.append("a tile leaves the next one the rows that both read")
    verdict = RewriteVerdict(name, run.axis, run.members, "bitwise", because=tuple(because))
    yield Variant(after, matches, rewrites=(verdict,), loops=loops)


def own_caches(target: Target) -> list[int]:
    """Bytes of the caches of a core's own, the smallest first."""
    return sorted(m.bytes for m in target.memories if m.shared_by != "device" and m.name != "registers")


def _rounded(rows: int) -> int:
    return next((rows // n * n for n in MULTIPLES if rows >= n), rows)
