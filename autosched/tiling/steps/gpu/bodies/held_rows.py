"""Rows of a body in registers: which warps share them, and whether slices are fetched an iteration ahead.

With `held_rows` settled, each product of the body has the one share-out that leaves every lane its own elements, and
nothing is left between the products.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from autosched.logic import Var, all_of, any_of
from autosched.machine.target import Target
from autosched.tiling.plans.plan import Part, ScalarPart, TileLoopsPart, WarpCooperativePart
from autosched.tiling.plans.warp_rows import RowProduct, WarpRows, stages_of
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.gpu.block_tile import gpu_pair, is_block_loop, workers_name
from autosched.tiling.steps.gpu.operands.operand_sources import GLOBAL, SHARED, stage_name
from autosched.tiling.steps.gpu.operands.slice_copies import STAGE_COUNT

ROWS = Handle("held_rows", 0)
"""The warps that share a body's rows, and hold in registers what these are made of; 0: nothing is held."""

AHEAD = Handle("ahead", 0)
"""Whether slices are fetched while the iteration before computes: two of each in shared memory."""
WHEN_NEEDED, FETCHED, WITH_PRODUCT, BESIDE_LAST = 0, 1, 2, 3
WHEN = ("when needed", "an iteration ahead", "the first product, too", "the first product beside the last")
MEETING = Handle("meeting", 0)
"""When the warps of a block meet: in each iteration, or one later (each waits until the others have begun the iteration
before), for which slices take turns in twice as many places."""
EACH_ITERATION, LATER = 0, 1
MEETINGS = ("in each iteration", "an iteration later")
NEVER_LATER = (WHEN_NEEDED, BESIDE_LAST)
"""Where the warps of a block do not meet later: beside the last product that took 5 % longer (attention, H200)."""
RESIDENT = Handle("resident", 0)
"""Blocks that a core is to hold at once: threads take no more registers than that leaves. 0: as many as they like."""
FEWEST_RESIDENT = (0, 2, 3, 4)
MOST_BESIDE_KEPT = 2
"""Products of a body of which one may take an operand from registers that a loop keeps."""
MOST_TILES = 16
"""Of an instruction that a warp has along rows that it holds."""


def held_rows_step(
    rows: WarpRows, places: Collection[str], steps: Sequence[Step], target: Target, late: bool
) -> Step | None:
    """Which warps share the rows of a body, and hold what these are made of; None where decisions of its products (in
    `steps`) leave no choice. What is held lies nowhere else (`places`: the decisions on that), and what is computed in
    registers has no decisions of its own. `late`: whether warps may meet an iteration later.

    Decisions `held_rows`, `resident` (blocks that a core is to hold at once), and of a loop inside a block `ahead`
    (when its slices are fetched) and `meeting`."""
    domains = {d.name: d.domain for step in steps for d in step.decisions}

    def has(warps: int) -> bool:
        return all(value in domains[name] for p in rows.products for name, value in _split(rows, p, warps).items())

    splits = tuple(filter(has, rows.splits))
    if not splits:
        return None
    names = rows.loops.names
    handle = names(ROWS.name)
    most = target.limits.get("registers_per_thread", 255)
    rules = [r for warps in splits for product in rows.products for r in _splitting(rows, product, warps, handle, most)]
    held = Var(handle) > 0
    sentence = "an operand of a warpgroup comes from registers where these hold rows"
    rules += [Rule(f"{name} global", Var(name).ne(GLOBAL) | held, sentence) for name in from_registers(rows)]
    computed = (part for part in rows.loops.member.parts if rows.computes(part))
    inert = dict.fromkeys((*places, *(d for part in computed for d in decided(part, steps))), held)
    labels = ("in memory", *(f"in registers of {n} {rows.scope}{'s' if n > 1 else ''}" for n in splits))
    note = f"what rows of {', '.join(t.name for t in rows.loops.loops)} are made of"
    decisions = [Decision(handle, (0, *splits), labels, note)]
    rules += _kept_operands(rows)
    blocks = tuple(f"{n} blocks" if n else "any" for n in FEWEST_RESIDENT)
    decisions.append(Decision(names(RESIDENT.name), FEWEST_RESIDENT, blocks, "that a core is to hold at once"))
    inert[names(RESIDENT.name)] = ~held
    if fetches(rows):
        ahead = names(AHEAD.name)
        values = (WHEN_NEEDED, FETCHED, *((WITH_PRODUCT,) if issues(rows) else ()))
        values += (BESIDE_LAST,) if issues(rows) and ends_late(rows) else ()
        decisions.append(Decision(ahead, values, tuple(WHEN[v] for v in values)))
        rules += _fetching(rows, ahead)
        rules += _issuing(rows, ahead) if issues(rows) else ()
        sources = [Var(stage_name(p.part.names, o)).eq(GLOBAL) for p in rows.products for o in _from_outside(rows, p)]
        inert[ahead] = Var(handle).eq(0) | all_of(*sources)
        if late:
            meeting = names(MEETING.name)
            decisions.append(Decision(meeting, (EACH_ITERATION, LATER), MEETINGS))
            inert[meeting] = inert[ahead] | any_of(*(Var(ahead).eq(v) for v in NEVER_LATER)) | Var(handle).eq(1)
    return Step("held rows", tuple(decisions), tuple(rules), {}, inert)


def fetches(rows: WarpRows) -> bool:
    """Whether slices may be fetched an iteration ahead: there is one loop, which runs on inside of a block."""
    first, *others = rows.loops.loops
    axis = first.axis
    return not others and not (rows.loops.grid and is_block_loop(first.parallel, axis.lower, axis.upper))


def meets_late(rows: WarpRows, grid: TileLoopsPart) -> bool:
    """Whether warps may meet an iteration later: a block runs one loop, once, and all its products run on by themselves
    (barriers in shared memory, which count the iterations, came with these)."""
    blocks = all(is_block_loop(t.parallel, t.axis.lower, t.axis.upper) for t in grid.loops)
    alone = blocks and any(part is rows.loops for part in grid.member.parts)
    return alone and fetches(rows) and all(p.part.nest.intrinsic.shared_memory for p in rows.products)


def issues(rows: WarpRows) -> bool:
    """Whether the first of several products may be issued while the iteration before computes rows: it runs on by
    itself, and takes nothing that the body writes."""
    first, *others = rows.products
    runs_on = bool(first.part.nest.intrinsic.shared_memory)
    return bool(others) and runs_on and len(_from_outside(rows, first)) == len(first.part.nest.intrinsic.inputs)


def ends_late(rows: WarpRows) -> bool:
    """Whether the last of several products may be waited for where the next iteration begins: it runs on by itself,
    adds to what outlives an iteration, and nothing behind it in the body touches that or what it takes."""
    last, parts = rows.products[-1].part, rows.loops.member.parts
    sums = last.nest.stage.assign.tensor
    if not (last.nest.intrinsic.shared_memory and sums in rows.held and sums in rows.carried):
        return False
    takes = {t for s in last.computed_stages for t in (s.assign.tensor, *(r.tensor for r in s.reads))}
    stages = [s for part in parts[parts.index(last) + 1 :] for s in stages_of(part)]
    apart = all(s.assign.tensor not in takes and sums not in {r.tensor for r in s.reads} for s in stages)
    return apart and all(rows.computes(part) for part in parts[parts.index(last) + 1 :])


def _from_outside(rows: WarpRows, product: RowProduct) -> list[str]:
    """The operands of a product that the body does not write."""
    nest, written = product.part.nest, rows.loops.member.program.written
    return [o.name for o in nest.intrinsic.inputs if nest.mapping.operands[o.name].tensor not in written]


def _fetching(rows: WarpRows, ahead: str) -> Iterator[Rule]:
    """A product whose slices are fetched an iteration ahead has whole ones, which are copied in no other way beside."""
    for product in rows.products:
        names, stage = product.part.names, product.part.nest.stage.name
        whole = Var(names("slices")).eq(1) & Var(names(STAGE_COUNT.name)).eq(1)
        fits = Var(ahead).eq(0) | Var(names("staged")).eq(0) | whole
        counts = f"{{{names('slices')}}} slices in {{{names(STAGE_COUNT.name)}}} stages"
        yield Rule(f"{ahead} {stage}", fits, f"{stage} has {counts}; what is fetched ahead is one slice in one stage")
        inside = {o.name for o in product.part.nest.intrinsic.inputs} - set(_from_outside(rows, product))
        for operand in sorted(inside):
            here = Var(ahead).eq(0) | Var(stage_name(names, operand)).eq(GLOBAL)
            sentence = f"the body makes operand {operand} of {stage}: no slice of it is there ahead"
            yield Rule(f"{ahead} {stage} {operand}", here, sentence)


def _issuing(rows: WarpRows, ahead: str) -> Iterator[Rule]:
    """A product that is issued ahead fills no registers in each iteration."""
    first = rows.products[0].part
    for operand, must in first.nest.intrinsic.shared_memory.items():
        if not must:
            name = stage_name(first.names, operand)
            sentence = f"{first.nest.stage.name} is issued ahead, and {{{name}}} fills registers for it"
            yield Rule(f"{ahead} {name}", (Var(ahead) < WITH_PRODUCT) | Var(name).ne(SHARED), sentence)


def decided(part: Part, steps: Sequence[Step]) -> Iterator[str]:
    """The decisions of one part."""
    if isinstance(part, ScalarPart | WarpCooperativePart):
        names, prefix = [d.name for step in steps for d in step.decisions], part.names.prefix
        yield from (n for n in names if n.startswith(prefix) and "." not in n.removeprefix(prefix))


def _split(rows: WarpRows, product: RowProduct, warps: int) -> dict[str, int]:
    """The decisions of a product that share its rows among so many warps, each with whole rows of what is held."""
    part, asked = product.part, dict[str, int]()
    made = {s.assign.tensor for s in part.computed_stages}
    for axis in gpu_pair(part.nest):
        mine = axis is product.rows
        asked[workers_name(part.nest, part.names, axis)] = warps if mine else 1
        if mine or made & rows.held.keys():
            asked[part.names.register(axis)] = axis.units // warps if mine else axis.units
    return asked


def _splitting(rows: WarpRows, product: RowProduct, warps: int, handle: str, most: int) -> Iterator[Rule]:
    """A product whose rows so many warps share takes from no slice what is in registers, of which a thread may have
    `most`."""
    part, here = product.part, Var(handle).eq(warps)
    asked = [Var(name).eq(value) for name, value in _split(rows, product, warps).items()]
    if product.taken:
        asked += [Var(stage_name(part.names, operand)).eq(GLOBAL) for operand in product.taken]
        asked.append(Var(part.names("staged")).eq(0) | Var(part.names("slices")).eq(1))
    stage = part.nest.stage.name
    sentence = f"{warps} warps share the rows, and {stage} is shared out otherwise"
    yield Rule(f"{handle} {stage} {warps}", here.implies(all_of(*asked)), sentence)
    beside = rows.registers(warps, frozenset({part.nest.stage.assign.tensor}))
    own = part.names("registers")
    sentence = f"{{{own}}} registers a thread beside {beside} that hold rows > {most:,}"
    yield Rule(f"{own} {warps}", here.implies(Var(own) <= most - beside), sentence)


def from_registers(rows: WarpRows) -> Iterator[str]:
    """The decisions on operands that an instruction takes from shared memory by itself, or else from registers."""
    for product in rows.products:
        nest = product.part.nest
        yield from (stage_name(product.part.names, o) for o, must in nest.intrinsic.shared_memory.items() if not must)


def _kept_operands(rows: WarpRows) -> Iterator[Rule]:
    """Of more than two products none takes an operand from registers that a loop keeps, and of two the later one where
    the first does: ptxas (of NVRTC 12.9; not 13.5) may give these registers to what another product takes, and the
    kernel's numbers are wrong."""
    outside: list[str] = []
    for product in rows.products:
        names, either = product.part.names, product.part.nest.intrinsic.shared_memory
        outside += [stage_name(names, o) for o in _from_outside(rows, product) if not either.get(o, True)]
    many = len(rows.products) > MOST_BESIDE_KEPT
    for number, name in enumerate(outside):
        if many or number > 0:
            fits = Var(name).ne(GLOBAL) if many else Var(name).ne(GLOBAL) | Var(outside[0]).eq(GLOBAL)
            yield Rule(f"{name} kept", fits, "a compiler writes over registers that a loop keeps for this operand")


def whole_rows(rows: WarpRows) -> Iterator[tuple[str, int]]:
    """The decisions of products by which a warp has whole rows of what is held, each with its tiles."""
    for product in rows.products:
        if product.columns is not None and product.columns in gpu_pair(product.part.nest):
            yield product.part.names.register(product.columns), product.columns.units
