"""What z3 proves of a GPU space: its rules keep shared memory accessed inside, aligned, and without bank conflicts.

A layout depends on few decisions: the length of its rows, the swizzle and the padding. Each set of them that the rules
allow is a case; the number of rows, the row and the element stay symbolic, so that what is proved holds for all tiles.
That the slices of all stages fit is the rule `shared_bytes` itself, whose bytes are those of the shape that is proved
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

from autosched.logic import Var, evaluate, to_z3
from autosched.logic.solver import proving, z3
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.space.space import Space
from autosched.tiling.space.values import Lazy
from autosched.tiling.steps.gpu.block_tile import gpu_pair
from autosched.tiling.steps.gpu.operands.operand_paths import CHUNK_BYTES
from autosched.tiling.steps.gpu.operands.operand_sources import DESCRIPTOR, GLOBAL, stage_name
from autosched.tiling.steps.gpu.operands.shared_layout import (
    BANK_BYTES,
    SharedLayout,
    chunk_elements,
    slice_axes,
    slice_extent,
)

EFFORT = 20_000_000
"""Of z3, in its own count of steps (some seconds): the same answer on a busy machine."""
ANSWERS = 256
"""That are kept, to what was asked last: operands whose rows are of one length ask the same, and so do the plans of one
program. (The tests of these proofs ask 138 different things, 446 times.)"""
EIGHT = 8  # rows that are read together: 8 x 16 bytes fill the banks once


@dataclass(frozen=True)
class LayoutProof:
    """One statement about one operand in one case. `holds` is None where the solver gave up."""

    statement: str
    operand: str
    case: str
    holds: bool | None
    counterexample: str = ""


@proving
def prove_shared(part: TensorPart, space: Space, row: int | None = None) -> list[LayoutProof]:
    """All statements about the slices of a part, in each case that its space has, or only in that of a row."""
    names, nest = part.names, part.nest
    proofs: list[LayoutProof] = []
    for operand in (o.name for o in nest.intrinsic.inputs):
        stage = stage_name(names, operand)
        if nest.depth is None or stage not in space.position or max(space.decision(stage).domain) == GLOBAL:
            continue
        for layout, case in layouts(nest, operand, space, names, row):
            proofs += prove(layout, operand, case)
    return proofs


def layouts(
    nest: Nest, operand: str, space: Space, names: StepNames, row: int | None = None
) -> Iterator[tuple[SharedLayout, str]]:
    """The layouts of an operand that some row may have, or the one that `row` has, by what they depend on: length of a
    row, swizzle, padding.

    Rows are of one element each here: their number is symbolic in the proofs."""
    bits = nest.intrinsic.operands[operand].dtype.bits
    axes = slice_axes(nest, operand)
    major, swizzle = axes[-1], names("swizzle")
    length = slice_extent(nest, major, gpu_pair(nest), names)
    deciding = sorted(space.depends_on(length))
    chosen = None if row is None else space.values([row])

    def domain(name: str) -> tuple[int, ...]:
        return space.decision(name).domain if chosen is None else (int(chosen[name][0]),)

    domains = [domain(space.decisions[i].name) for i in deciding]
    lengths = set()
    for values in product(*domains):
        env: dict[str, object] = {space.decisions[i].name: v for i, v in zip(deciding, values, strict=True)}
        lengths.add(int(evaluate(length, Lazy(env, space.derived))))
    of_layout = {names(f"{what}_{operand}") for what in ("row", "span", "ways", "lines")}
    rules = [r for r in space.rules if r.name in of_layout]
    kinds = [kind for kind in domain(stage_name(names, operand)) if kind != GLOBAL]
    padding = names("padding")
    paddings = domain(padding) if padding in space.position else (0,)
    spans = domain(swizzle)
    for extent, bytes_of_span, more, kind in product(sorted(lengths), spans, paddings, kinds):
        extents = (*(1 for _ in axes[:-1]), extent)
        layout = SharedLayout(axes, extents, chunk_elements(bits), bytes_of_span, kind == DESCRIPTOR, more > 0)
        if more and (bytes_of_span or layout.shape == replace(layout, padded=False).shape):
            continue  # the padding changes nothing
        env = {
            swizzle: bytes_of_span,
            names(f"row_{operand}"): layout.chunks * CHUNK_BYTES,
            stage_name(names, operand): kind,
            names(f"ways_{operand}"): ways_of(layout),
        }
        if all(evaluate(r.holds, env) for r in rules):
            kept = f"swizzle {bytes_of_span} B" if not more else f"padded by {more} B"
            by = ", by descriptor" if layout.described else ""
            yield layout, f"rows of {extent} elements, {kept}{by}"


def ways_of(layout: SharedLayout) -> int:
    """Rows of eight that meet in one bank, as the space derives it."""
    width = layout.shape[2]
    return 1 if layout.swizzle or layout.described else max(k for k in (1, 2, 4, 8) if width % k == 0)


def prove(layout: SharedLayout, operand: str, case: str) -> Iterator[LayoutProof]:
    """The statements about one layout: `row` any row, `e` any element of it."""
    row, e, rows = z3.Ints("row e rows")
    place = [to_z3(i, {"row": row, "e": e}) for i in layout.index(Var("row"), Var("e"))]
    spans, _, span, chunk = layout.shape
    inside = z3.And(row >= 0, row < rows, e >= 0, e < layout.extents[-1])
    shape = (spans, rows, span, chunk)
    yield valid(
        "addresses are in range",
        operand,
        case,
        z3.Implies(inside, z3.And(*(z3.And(i >= 0, i < n) for i, n in zip(place, shape, strict=True)))),
    )
    other = z3.Int("other")
    there = [to_z3(i, {"row": row, "e": other}) for i in layout.index(Var("row"), Var("e"))]
    apart = z3.Implies(
        z3.And(inside, other >= 0, other < layout.extents[-1], e != other),
        z3.Or(*(a != b for a, b in zip(place, there, strict=True))),
    )
    yield valid("no two elements of a row share a place", operand, case, apart)
    # A copy's piece begins at a multiple of a chunk; its first element is the first of a chunk, and of 16 bytes.
    first = z3.Implies(z3.And(inside, e % chunk == 0), place[3] == 0)
    yield valid("chunks are aligned to 16 bytes", operand, case, first)
    yield valid("few rows meet in one bank", operand, case, _conflicts(layout))


def _conflicts(layout: SharedLayout) -> z3.BoolRef:
    """Of eight rows from a multiple of eight on, at one chunk, no more than `ways_of` share the 16 bytes of banks."""
    group, chunk = z3.Ints("group chunk")
    banks = []
    for k in range(EIGHT):
        env = {"row": EIGHT * group + k, "e": chunk * layout.chunk}
        _, row, swizzled, _ = (to_z3(i, env) for i in layout.index(Var("row"), Var("e")))
        banks.append((row * layout.shape[2] + swizzled) % (BANK_BYTES // CHUNK_BYTES))
    ways = ways_of(layout)
    crowds = [z3.Sum(*(z3.If(a == b, 1, 0) for b in banks)) <= ways for a in banks]
    return z3.Implies(z3.And(group >= 0, chunk >= 0, chunk < layout.chunks), z3.And(*crowds))


def valid(statement: str, operand: str, case: str, formula: z3.BoolRef) -> LayoutProof:
    """Whether z3 finds no values for which the formula is false."""
    return LayoutProof(statement, operand, case, *_answer(formula))


@lru_cache(maxsize=ANSWERS)
def _answer(formula: z3.BoolRef) -> tuple[bool | None, str]:
    """Whether it is valid, None where the solver gave up; what refutes it."""
    solver = z3.Solver()
    solver.set("rlimit", EFFORT)
    solver.add(z3.Not(formula))
    answer = solver.check()
    if answer == z3.sat:
        return False, str(solver.model())
    return (True if answer == z3.unsat else None), ""


def proof_lines(proofs: Sequence[LayoutProof]) -> list[str]:
    """Proofs to read: a statement of an operand once, with how many cases it holds in; what does not hold in full."""
    lines = []
    for operand, statement in dict.fromkeys((p.operand, p.statement) for p in proofs):
        same = [p for p in proofs if (p.operand, p.statement) == (operand, statement)]
        proved = [p for p in same if p.holds]
        if proved:
            cases = f"{len(proved)} cases" if len(proved) > 1 else proved[0].case
            lines.append(f"  {operand}: {statement} ({cases})")
        for p in same:
            if not p.holds:
                answer = "not known" if p.holds is None else f"REFUTED by {p.counterexample}"
                lines.append(f"  {operand}: {statement}: {answer} ({p.case})")
    return lines


def in_short(proofs: Sequence[LayoutProof]) -> list[dict[str, Any]]:
    """As data, a statement of an operand once: in how many cases it holds, is refuted and is not known."""
    found = []
    for operand, statement in dict.fromkeys((p.operand, p.statement) for p in proofs):
        answers = [p.holds for p in proofs if (p.operand, p.statement) == (operand, statement)]
        counted = {"holds": answers.count(True), "refuted": answers.count(False), "unknown": answers.count(None)}
        found.append({"operand": operand, "statement": statement} | counted)
    return found


def proof_json(proof: LayoutProof) -> dict[str, Any]:
    """As data: `holds` is null where the solver gave up."""
    return asdict(proof)
