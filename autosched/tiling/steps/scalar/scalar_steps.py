"""Decisions of scalar stages: which axis lies in the lanes, how wide, how many vectors and rows together, threads.

On a CPU a stage is laid out by `lanes` (an axis), `vector` (elements), `unroll` (vectors at once; for a sum, its
independent accumulators), `rows` (rows of a reduction at once), `block` (iterations of a reduction outside the
vectors), `math` (library or formulas) and `threads`. On a GPU only the width of a warp's work is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autosched.ir.formula import applies
from autosched.ir.nodes import Stage
from autosched.ir.value import Value
from autosched.logic import FALSE, Bool, Int, Var, any_of, free_vars
from autosched.machine.target import Target
from autosched.tiling.analysis.nontemporal import FAR, FAR_BYTES, LEAST_BYTES, NEXT, row_bytes
from autosched.tiling.plans.plan import FusedLoopsPart, Part, ScalarPart
from autosched.tiling.step import Decision, Rule, Step
from autosched.tiling.steps import StepNames
from autosched.tiling.steps.scalar import handles

VECTORS = (1, 4, 8, 16, 32)
GPU_VECTORS = (1, 32, 64, 128)
"""Elements of a scalar stage that one warp computes together."""
UNROLLS = (1, 2, 4, 8)
ROWS = (1, 2, 4, 8)
FEW_ROWS = (1, 8)
"""Rows at once of a stage that is beside others, whose elements each wait for the one before."""
ROWS_TOGETHER = (1, 2, 4)
"""Rows of several stages at once."""
BLOCKS = (0, 2, 4, 8)
MOST_VECTORS = 16
"""Vectors of one loop body: more only spill registers."""
SPATIAL, ACROSS = 0, 1
"""What lies in the lanes: elements of the result, or partial results of one."""


@dataclass(frozen=True)
class Choices:
    """The domains of one part. A part that is alone in its plan decides everything; beside others it decides little, so
    that the product of their spaces stays within reach."""

    vectors: tuple[int, ...] = VECTORS
    unrolls: tuple[int, ...] = UNROLLS
    rows: tuple[int, ...] = ROWS
    blocks: tuple[int, ...] = BLOCKS
    lanes: tuple[int, ...] = (SPATIAL, ACROSS)
    math: tuple[int, ...] = (handles.LIBRARY, handles.FORMULAS)
    together: tuple[int, ...] = ROWS_TOGETHER
    ahead: tuple[int, ...] = (0, NEXT, FAR)
    stores: tuple[int, ...] = (handles.CACHED, handles.PAST)


def choices_of(parts: Sequence[Part], target: Target) -> Choices:
    """What the scalar parts among these decide. Beside others: one width, of a register of 32-bit elements, or none,
    and the rest as it is best most often."""
    if len([p for p in parts if not (isinstance(p, ScalarPart) and p.prepared)]) == 1:
        return Choices()
    width = max(4, target.limits.get("vector_bytes", 16) // 4)
    return Choices((1, width), (4,), (4,), (4,), (ACROSS,), (handles.FORMULAS,), (1,), (NEXT,), (handles.CACHED,))


def lanes_of(part: ScalarPart, values: Mapping[str, int]) -> int:
    """SPATIAL or ACROSS in this row: its decision, else what the stage offers."""
    if part.across is None:
        return SPATIAL
    return values.get(part.names("lanes"), ACROSS)


def scalar_step(part: ScalarPart, threads: int, choices: Choices = Choices()) -> Step:
    """The one step of a scalar part."""
    names = part.names
    shared_out = part.parallel and part.scheme == "cpu"  # blocks of a GPU share the outermost axis in any case
    count = Decision(names(handles.THREADS.name), tuple(range(1, threads + 1)) if shared_out else (1,))
    if part.scheme == "gpu":
        return Step("scalar", (*([Decision(names(handles.VECTOR.name), GPU_VECTORS)] if part.vector else []), count))
    decisions: list[Decision] = []
    inert: dict[str, Bool] = {}
    single = Var(names("vector")).eq(1)
    across: Bool = FALSE
    if part.across and part.rows and len(choices.rows) == 1:
        choices = _rows_or_vectors(part, part.rows, choices)
    if part.vector or part.across:
        decisions.append(_vector(part, choices))
        decisions.append(Decision(names(handles.UNROLL.name), choices.unrolls))
        inert[names("unroll")] = single
    if part.vector and part.across:
        lanes = Var(names("lanes"))
        decisions.append(Decision(lanes.name, choices.lanes, (part.vector, part.across)[-len(choices.lanes) :]))
        inert[lanes.name] = single
        across = lanes.eq(ACROSS)
    elif part.across:
        across = ~FALSE
    rules: list[Rule] = []
    if part.vector and len(choices.unrolls) > 1:
        rules.append(_whole(names, part.vector, _extent(part, part.vector), across))
    vectors: Int = Var(names("unroll")) if decisions else Var(names("threads"))
    if part.across and part.rows:
        rows = Var(names("rows"))
        decisions.append(Decision(rows.name, choices.rows))
        inert[rows.name] = any_of(single, ~across)
        vectors = vectors * rows
        rules.append(Rule(names("rows"), vectors <= MOST_VECTORS, f"more than {MOST_VECTORS} accumulators"))
        rules += _as_many(rows, choices.rows, part.rows, _extent(part, part.rows))
    if part.carried and part.rows:
        rows = Var(names("rows"))
        domain = choices.rows if len(choices.rows) > 1 else FEW_ROWS
        decisions.append(Decision(rows.name, domain))
        rules += _as_many(rows, domain, part.rows, _extent(part, part.rows))
    if part.blocked and part.vector:
        block = Var(names("block"))
        decisions.append(Decision(block.name, choices.blocks))
        inert[block.name] = any_of(single, across, Var(names("vector")) > _extent(part, part.vector))
        rules += _as_many(block, choices.blocks, part.blocked, _extent(part, part.blocked))
    if part.nontemporal and part.vector:
        decisions.append(_stores(names, choices))
        inert[names("stores")] = _narrow(names, part.stage)
    if applies(_values(part), part.policy.formulas):
        decisions.append(_math(names, choices))
    return Step("scalar", (*decisions, count), tuple(rules), {}, inert)


def rows_step(part: FusedLoopsPart, threads: int, choices: Choices = Choices()) -> Step:
    """The one step of a rows part: one width and one number of vectors for all of its stages."""
    names = part.names
    decisions: list[Decision] = []
    rules: list[Rule] = []
    inert: dict[str, Bool] = {}
    if any(m.vector or m.across for m in part.members):
        decisions.append(Decision(names(handles.VECTOR.name), choices.vectors))
        decisions.append(Decision(names(handles.UNROLL.name), choices.unrolls))
        single = Var(names("vector")).eq(1)
        together = Var(names("rows"))
        bounds = [b for m in part.members for a in m.stage.axes for b in (a.lower, a.upper)]
        moving = any(part.shared[-1] in free_vars(b) for b in bounds)
        decisions.append(Decision(together.name, (1,) if moving else choices.together))  # rows at once are alike
        inert |= {names("unroll"): single, together.name: single}
        held = Var(names("unroll")) * together
        rules.append(Rule(names("rows"), held <= MOST_VECTORS, f"more than {MOST_VECTORS} vectors"))
        if not moving:
            inner = part.shared[-1]
            rules += _as_many(together, choices.together, inner, _extent(part.members[0], inner))
        if part.asked:
            ahead, row = Var(names("ahead")), row_bytes(part.members[0].stage, part.asked)
            domain = tuple(k for k in choices.ahead if k != FAR or (part.distant and 2 * row <= FAR_BYTES))
            decisions.append(Decision(ahead.name, domain, tuple(("no", "next row", "far")[k] for k in domain)))
            inert[ahead.name] = single
            if FAR in domain:
                few = any_of(ahead.ne(FAR), 2 * row * together <= FAR_BYTES)
                rules.append(Rule(ahead.name, few, f"{{{together.name}}} rows of {row:,} bytes are far enough"))
        if part.nontemporal:
            writer = next(m.stage for m in part.members if m.stage.name == part.nontemporal.writer)
            decisions.append(_stores(names, choices))
            inert[names("stores")] = _narrow(names, writer)
    if any(applies(_values(m), m.policy.formulas) for m in part.members):
        decisions.append(_math(names, choices))
    decisions.append(Decision(names(handles.THREADS.name), tuple(range(1, threads + 1))))
    return Step("rows", tuple(decisions), tuple(rules), {}, inert)


def _rows_or_vectors(part: ScalarPart, axis: str, choices: Choices) -> Choices:
    """Where nothing is to be searched: rows at once, whose lanes are combined together, where there are as many, else
    vectors of one row."""
    if _extent(part, axis) < choices.rows[0]:
        return replace(choices, rows=(1,))
    return replace(choices, unrolls=(1,))


def _extent(part: ScalarPart, axis: str) -> int:
    return next(a.extent for a in part.stage.axes if a.name == axis)


def _vector(part: ScalarPart, choices: Choices) -> Decision:
    """Where it cannot be searched: as wide as the elements along an axis fill, which is best most often."""
    axes = [a for a in part.stage.axes if a.name in (part.vector, part.across)]
    moving = any(free_vars(a.lower) | free_vars(a.upper) for a in axes)
    most = max(choices.vectors) if moving else max(a.extent for a in axes)
    held = max(v for v in choices.vectors if v == choices.vectors[0] or v <= most)
    return Decision(part.names(handles.VECTOR.name), choices.vectors, held=held)


def _whole(names: StepNames, axis: str, extent: int, across: Bool) -> Rule:
    """Several vectors of results at once are no more than there are: else each would be computed by itself."""
    unroll, vector = Var(names("unroll")), Var(names("vector"))
    sentence = f"{{{unroll.name}}} vectors of {{{vector.name}}} are more than the {extent} along {axis}"
    return Rule(unroll.name, any_of(unroll.eq(1), across, unroll * vector <= extent), sentence)


def _as_many(column: Var, domain: tuple[int, ...], axis: str, extent: int) -> list[Rule]:
    """No more iterations at once than there are: else each would run by itself."""
    if max(domain) <= extent or len(domain) == 1:
        return []
    few = any_of(column.eq(domain[0]), column <= extent)
    return [Rule(f"{column.name}_{axis}", few, f"{{{column.name}}} iterations of {axis} at once, which has {extent}")]


def _stores(names: StepNames, choices: Choices) -> Decision:
    return Decision(names(handles.STORES.name), choices.stores, ("cached", "past caches")[: len(choices.stores)])


def _narrow(names: StepNames, writer: Stage) -> Bool:
    """Where a vector of results is too small for a store past the caches."""
    return Var(names("vector")) * writer.assign.value.dtype.bytes < LEAST_BYTES


def _math(names: StepNames, choices: Choices) -> Decision:
    return Decision(names(handles.MATH.name), choices.math, ("library", "vector")[-len(choices.math) :])


def _values(part: ScalarPart) -> tuple[Value, ...]:
    stage = part.stage
    return (stage.assign.value, *([stage.init] if stage.init is not None else []))
