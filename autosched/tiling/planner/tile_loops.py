"""Tile loops of a plan: loops that dependences hold together, around a plan of their body.

for b, i_tile in grid(4, 8):        one part: loops over b, i_tile
    for i, j, p in grid(…): S …         a nest on an instruction
    for j_block in range(4): …          tile loops again
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product, zip_longest

from autosched.ir.nodes import Axis
from autosched.ir.program import Program
from autosched.logic import evaluate, free_vars, interval
from autosched.tensorize.reduction.partial_sums import of_turns
from autosched.tiling.analysis.dependence import together
from autosched.tiling.analysis.variable_names import told_apart
from autosched.tiling.analysis.windows import Windowed, nested, windowed
from autosched.tiling.planner.block_body import holding_first
from autosched.tiling.plans.plan import LiteralPart, Plan, TileLoop, TileLoopsPart
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.steps import is_gpu
from autosched.tiling.steps.gpu.block_tile import is_block_loop

MemberPlanner = Callable[[Program, str], Sequence[Plan]]
"""The plans of a body, the fastest first; the names of their decisions begin with the text."""
Held = Mapping[str, LiteralPart | TileLoopsPart]
"""For each stage that dependences hold together with others, the part that they are."""
MOST_MEMBERS = 1
"""Plans of a body that are laid out."""
MOST_POINTS = 4096
"""Combinations of the loops around that trips are averaged over."""


def tile_loops(
    program: Program,
    literal: Mapping[str, LiteralPart],
    members: MemberPlanner,
    prefix: str,
    shared: bool,
    kept: Collection[str] = (),
    gpu: bool = False,
) -> list[Held]:
    """What holds the stages of literal parts together, the best choice first: tile loops where the body is a program of
    its own, else the statements as written. `shared`: whether several workers may share loops, which have to be proved
    independent then. Loops named in `kept` stay around any statements. `gpu`: data choose slices for whole
    blocks of the grid there; else bodies gather what they need."""
    parts = list({id(p): p for p in literal.values()}.values())
    found: list[list[LiteralPart | TileLoopsPart]] = []
    for part in parts:
        given, inside_them = nested(part.body, kept)
        loops, body = told_apart(program, given, inside_them)
        called = {new.name: old.name for new, old in zip(loops, given, strict=True)}
        made = windowed(program, loops, body, choose=True) if loops else None
        inside = [*_tile_loops(program, part, loops, called, made, members, prefix, shared)] if made else []
        if gpu and made and made.chosen:
            inside = [p for p in inside if _by_blocks(p)]
            if not inside and (made := windowed(program, loops, body, choose=False)):
                inside = [*_tile_loops(program, part, loops, called, made, members, prefix, shared)]
        if gpu and inside:
            inside = holding_first(inside)
        found.append([*inside[:MOST_MEMBERS]] or [part])
    choices: list[Held] = []
    for turn in zip_longest(*found):
        chosen = [own if own is not None else first[0] for own, first in zip(turn, found, strict=True)]
        choices.append({name: part for part in chosen for name in part.stages})
    return choices or [{}]


def _tile_loops(
    program: Program,
    part: LiteralPart,
    loops: Sequence[Axis],
    called: Mapping[str, str],
    made: Windowed,
    members: MemberPlanner,
    prefix: str,
    shared: bool,
) -> Iterator[TileLoopsPart]:
    """The part as tile loops, once for each plan of their body. Nothing where that leaves single elements, or where a
    loop never runs. `called`: the loops' names in the program."""
    if not _worthwhile(made):
        return
    verdicts = together(program, part.stages, tuple(called.values())) if shared else ()
    independent = {a.axis for a in verdicts if a.kind == "independent"}
    meets = {a.axis: a for a in verdicts if a.kind != "independent"}
    ranges = {name: (low, high) for name, (low, high) in program.symbolic.items()}
    own = []
    for axis in loops:
        first, last = interval(axis.lower, ranges)[0], interval(axis.upper, ranges)[1] - 1
        if last < first:
            return
        ranges[axis.name] = first, last
        name = called[axis.name]
        own.append(TileLoop(axis, name in independent, first, last, meets.get(name), name))
    names = StepNames(f"{prefix}{called[loops[-1].name]}.")
    trips = _trips(loops, program.symbolic)
    for plan in members(_with_partial_sums(made, own), names.prefix):
        grid = not prefix and is_gpu(plan.target)
        yield TileLoopsPart(tuple(own), plan, made.windows, part.stages, names, trips, grid, made.chosen)


def _with_partial_sums(made: Windowed, loops: Sequence[TileLoop]) -> Program:
    """The body, of which is known what several iterations add to the same elements."""
    several = {loop.axis.name for loop in loops if loop.first < loop.last}
    starts = {name: frozenset().union(*map(free_vars, w.start)) for name, w in made.windows.items()}
    still = {name for name, moved in starts.items() if several - moved}
    return replace(made.program, partial_sums=of_turns(made.program, still))


def _by_blocks(part: TileLoopsPart) -> bool:
    """Whether data choose once for each block of the grid, or nothing."""
    blocks = {t.axis.name for t in part.loops if part.grid and is_block_loop(t.parallel, t.axis.lower, t.axis.upper)}
    return all(c.moved_by <= blocks for c in part.chosen)


def _worthwhile(made: Windowed) -> bool:
    """Whether some stage of the body has loops of its own, whatever the data are."""
    return any(s.axes and not s.seldom for s in made.program.stages)


def _trips(loops: Sequence[Axis], around: Mapping[str, tuple[int, int]]) -> float:
    """Iterations of all loops together, on average over the loops around."""
    ranges = [range(low, high + 1) for low, high in around.values()]
    counts = [_count(loops, dict(zip(around, at, strict=True))) for at in islice(product(*ranges), MOST_POINTS)]
    return sum(counts) / max(1, len(counts))


def _count(loops: Sequence[Axis], at: dict[str, int]) -> float:
    if not loops:
        return 1.0
    first, *rest = loops
    low, high = (int(evaluate(bound, at)) for bound in (first.lower, first.upper))
    steps = range(low, max(low, high))
    if not any(first.name in names for names in map(_names, rest)):
        return len(steps) * _count(rest, at | {first.name: low})
    return sum(_count(rest, at | {first.name: k}) for k in steps)


def _names(axis: Axis) -> frozenset[str]:
    return free_vars(axis.lower) | free_vars(axis.upper)
