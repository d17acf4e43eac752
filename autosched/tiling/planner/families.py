"""Families of plans by the rewrites that they come from, and why a program has no plan of one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from autosched.ir.program import Program
from autosched.ir.rewrites.factors.defer import defer
from autosched.ir.rewrites.one_hot import NAME as ONE_HOT
from autosched.ir.rewrites.online.members import Cascade, cascades_of
from autosched.ir.rewrites.online.search import online
from autosched.ir.rewrites.rewrite import simplify
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.rewrites.versions import separate_versions
from autosched.machine.target import Target
from autosched.numerics_levels import NUMERICS_LEVELS, accepts
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps import is_gpu
from autosched.tiling.variants.chosen_slices import choices
from autosched.tiling.variants.grouped_rows import GROUPS
from autosched.tiling.variants.in_parts import why_whole
from autosched.tiling.variants.one_pass import BLOCK_SIZES, SIZES, has_products
from autosched.tiling.variants.products import is_product
from autosched.tiling.variants.shared_runs import SharedRun, shared_runs
from autosched.tiling.variants.tiled_stages import KEPT, TWICE, own_caches, why_no_borders

AS_WRITTEN, ADAPTED, ONE_PASS, PARTS, TILES, ON_THE_WAY, DEFERRED, SLICES = (
    "as written", "adapted", "one pass", "parts", "tiles", "on the way", "deferred", "chosen slices"
)  # fmt: skip
FAMILIES = (AS_WRITTEN, ADAPTED, ONE_PASS, PARTS, TILES, ON_THE_WAY, DEFERRED, SLICES)
"""Those that may be asked for; `tiles` are tiles of all kinds."""
TILES_KEPT, TILES_TWICE = f"{TILES}, {KEPT}", f"{TILES}, {TWICE}"
NEAR = 1.5
"""Times the cycles of the best plan, up to which a family's best plan is searched in any case."""
LEAST = "rescaled"
"""The level below which no rewrite of sums has plans."""
NO_BODY = "its loops cannot be laid out as tile loops"
NO_NEST = "no instruction is worth it inside of the loops that choose"
NOT_CHOSEN = "only kernels of CPUs choose slices by data"
NOT_MADE = "none of it was laid out"
NOT_ASKED = "the request names other families"


def family_of(plan: Plan) -> str:
    """The family of a plan."""
    if (rewritten := family_of_names(r.name for r in plan.rewrites)) != AS_WRITTEN:
        return rewritten
    if any(t.nest.computed for t in plan.tensor_parts):
        return ON_THE_WAY
    return ADAPTED if any(m.adapters for m in plan.mappings) else AS_WRITTEN


def family_of_names(rewrites: Iterable[str]) -> str:
    """The family of plans that rewrites of these names lead to."""
    names = list(rewrites)
    if any(n.startswith("online") for n in names):
        return ONE_PASS
    if any(n.startswith("parts") for n in names):
        return PARTS
    if tiles := [n for n in names if n.startswith("tiles")]:
        return next((f"{TILES}, {b}" for b in (KEPT, TWICE) if tiles[0].endswith(b)), TILES)
    if SLICES in names:
        return SLICES
    if any(n.split()[0] == "defer" for n in names):
        return DEFERRED
    return ADAPTED if {"steps", GROUPS, ONE_HOT} & set(names) else AS_WRITTEN


def asked_for(plan: Plan, families: Collection[str]) -> bool:
    """Whether a plan is of one of these families; of any, where none is named."""
    return not families or family_of(plan).split(",")[0] in families


def with_each_family(best: Sequence[Plan], every: Sequence[Plan], cycles: Mapping[int, float]) -> list[Plan]:
    """The best plans, with the first plan of each family that has none, where it takes up to `NEAR` times the cycles of
    the best: what memory costs is not in these cycles. The last plan of a family with several makes room. `cycles` has
    those of each plan by its id; `every` begins with the plan of the fewest."""
    chosen = list(best)
    for plan in every:
        families = [family_of(p) for p in chosen]
        if family_of(plan) in families or cycles[id(plan)] > NEAR * cycles[id(every[0])]:
            continue
        last = _one_of_several(chosen)
        if last is None:
            break
        chosen = [*chosen[:last], *chosen[last + 1 :], plan]
    return chosen


def with_plain(best: Sequence[Plan], every: Sequence[Plan], most: int) -> list[Plan]:
    """The best plans, up to `most`, with the first plan without tile loops where none is among them: it is there if
    kernels of the others are refused. The last plan of a family with several makes room."""
    plain = next((p for p in every if not p.in_tile_loops), None)
    if plain is None or not all(p.in_tile_loops for p in best):
        return list(best)
    last = _one_of_several(best) if len(best) >= most else None
    return [*(p for k, p in enumerate(best) if k != last), plain]


def with_one_of(best: Sequence[Plan], wanted: Sequence[Plan], most: int) -> list[Plan]:
    """The best plans, up to `most`. Where none of the `wanted` is among them, the first of these of each family takes
    the place of the last ones."""
    if any(p is w for p in best for w in wanted):
        return list(best)
    first = [*{family_of(p): p for p in reversed(wanted)}.values()]
    return [*best[: most - len(first)], *first]


def _one_of_several(plans: Sequence[Plan]) -> int | None:
    """The place of the last plan whose family has others among these."""
    families = [family_of(p) for p in plans]
    return next((k for k in reversed(range(len(plans))) if families.count(families[k]) > 1), None)


def not_planned(
    program: Program, target: Target, numerics: str, left_out: Mapping[str, str], threads: int = 1
) -> Iterator[tuple[str, str]]:
    """Families that ask for slices or several stages, as far as the program has what they ask about, each with the
    reason why it has no plan of it; `left_out` as the planner has it (`Planned.left_out`). For a program that has none:
    where it has, the reason is wrong."""
    if program.symbolic:
        return
    if next(choices(simplify(program)[0], numerics), None) is not None:
        yield SLICES, NOT_CHOSEN if scheme_of(target) != "cpu" else left_out.get(SLICES, NOT_MADE)
    if len(program.stages) < 2:
        return
    spatial = "" if scheme_of(target) != "spatial" else f"{target.name} runs stages one after the other"
    separate = separate_versions(program).program
    (tile, block), *_ = BLOCK_SIZES if is_gpu(target) else SIZES
    found = next(online(separate, numerics == "real", block=block, tile=tile), None)
    if found is not None:
        level = found.numerics is not None and accepts(numerics, found.numerics)
        if found.reason is not None:
            reason = f"{found.reason.code} at {found.reason.stage}: {found.reason.message}"
            reason += f"; it needs --numerics {found.reason.level}" if found.reason.level is not None else ""
        elif not level:
            reason = f"it needs --numerics {found.numerics}"
        elif found.after is None or not has_products(program, found.after):
            reason = "the pass has no product of matrices (of one row they are sums); as written a row stays in a cache"
        elif extremes := _rescales_extremes(separate, found):
            reason = extremes
        else:
            reason = left_out.get(ONE_PASS, NOT_MADE)
        yield ONE_PASS, spatial or reason
        cascade = next((c for c in cascades_of(separate) if isinstance(c, Cascade)), None)
        if level and cascade is not None:
            whole = _rescales_extremes(separate, found) or why_whole(separate, cascade, target, threads)
            yield PARTS, spatial or whole or left_out.get(PARTS, NOT_MADE)
    yield from _no_tiles(program, own_caches(target), spatial, left_out)


def why_not_deferred(program: Program, target: Target, numerics: str) -> str:
    """Why no factor of a sum of products is applied afterwards."""
    if scheme_of(target) not in ("cpu", "gpu"):
        return f"{target.name} runs programs as they are written"
    if program.symbolic or not accepts(numerics, LEAST):
        return f"it needs --numerics {LEAST}" if not program.symbolic else "sizes are open"
    separate = separate_versions(program).program
    products = [s.name for s in separate.stages if is_product(s)]
    if not products:
        return "no stage is a product of matrices"
    found = [v for name in products for v in defer(separate, name) if v.reason is None]
    if not found:
        said = "no factor is the same along all of the sum, or in groups that an address divides it into"
        return f"{said} ({', '.join(products)})"
    return NOT_MADE


def weaker_levels(program: Program, target: Target, numerics: str) -> Iterator[tuple[str, str]]:
    """Families of which the program has no or fewer plans as `numerics` is too strict, as its rewrites say; each with
    the level that it needs."""
    scheme = scheme_of(target)
    if program.symbolic or scheme == "spatial":
        return
    separate = separate_versions(program).program
    found = next(online(separate, real=True), None) if len(program.stages) > 1 else None
    if found is not None and found.after is not None and found.numerics is not None:
        needed = max(found.numerics, LEAST, key=NUMERICS_LEVELS.index)
        if not accepts(numerics, needed) and _can_be_planned(program, separate, found, target):
            yield ONE_PASS, needed
    if scheme not in ("cpu", "gpu"):
        return
    each = (v for s in separate.stages if is_product(s) for v in defer(separate, s.name))
    levels = [max(v.numerics or LEAST, LEAST, key=NUMERICS_LEVELS.index) for v in each if v.reason is None]
    if levels and not any(accepts(numerics, level) for level in levels):
        yield DEFERRED, min(levels, key=NUMERICS_LEVELS.index)
    if scheme != "cpu":
        return
    simple = simplify(program)[0]
    for level in NUMERICS_LEVELS[NUMERICS_LEVELS.index(numerics) + 1 :]:
        if next(choices(simple, level), None) is not None:
            if next(choices(simple, numerics), None) is None:
                yield SLICES, level
            return


def _can_be_planned(program: Program, separate: Program, found: RewriteVerdict, target: Target) -> bool:
    """Whether a pass has plans at its level, as far as is known without laying them out."""
    (tile, block), *_ = BLOCK_SIZES if is_gpu(target) else SIZES
    tiled = next(online(separate, real=True, block=block, tile=tile), found)
    return tiled.after is not None and has_products(program, tiled.after) and not _rescales_extremes(separate, found)


def _no_tiles(
    program: Program, own: Sequence[int], spatial: str, left_out: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The families of tiles, each with the reason why there are none; one where that is so of tiles of any kind."""
    told = False
    for run in shared_runs(program, 0):
        if none := spatial or _not_tiled(run, own):
            if not told:
                yield TILES, none
            told = True
        elif not run.again:
            yield TILES, left_out.get(TILES, NOT_MADE)
        else:
            for keep, family in ((False, TILES_TWICE), (True, TILES_KEPT)):
                yield family, why_no_borders(run, own, keep) or left_out.get(family, NOT_MADE)


def _rescales_extremes(program: Program, found: RewriteVerdict) -> str:
    """Why kernels cannot be checked that compute a program in one pass; nothing where they can."""
    if any(program.stage(n).assign.op in ("max=", "min=") for n in (*found.rescale, *found.deferred)):
        return "a maximum or minimum in it would be rescaled, and kernels are checked for the same extremes"
    return ""


def _not_tiled(run: SharedRun, caches: Sequence[int]) -> str:
    """Why stages that share an axis have no tiles of it; nothing where they have."""
    if caches and run.handed_bytes <= caches[-1]:
        return f"stages hand on {_size(run.handed_bytes)}, which a core's own caches hold"
    each = run.row_bytes
    if caches and 2 * each > caches[-1]:
        return f"stages hand on {_size(each)} for each {run.axis}, more than half of a core's own caches hold"
    return ""


def _size(count: int) -> str:
    return f"{count / 1024:.0f} KiB" if count >= 1024 else f"{count} bytes"
