"""How slices are copied into shared memory: by which copies, how wide, and how many are in flight."""

from __future__ import annotations

from collections.abc import Mapping

from autosched.logic import FALSE, TRUE, Bool, Const, Int, Var, all_of, ceil_div, maximum, where
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.gpu.operands.computed_slices import fetched_raw, raw_bytes
from autosched.tiling.steps.gpu.operands.operand_paths import CHUNK_BYTES, aligned_bytes
from autosched.tiling.steps.gpu.operands.operand_sources import DESCRIPTOR, stage_name
from autosched.tiling.steps.gpu.operands.shared_layout import slice_axes, slice_bytes, slice_extent
from autosched.tiling.steps.gpu.operands.tma_boxes import no_bulk_copy

SYNC, ASYNC, BULK = 0, 1, 2
LABELS = ("sync", "cp.async", "TMA")
STAGES = (1, 2, 3, 4, 6, 8, 12, 16)
SYNC_STAGES = 2
"""With copies through registers, one slice is copied beside the one that is used; more stages would change nothing."""
WIDTHS = {0: "element", 4: "4 B", 8: "8 B", 16: "16 B"}
BOX = 256  # the most elements of a side of a TMA box
BOX_BYTES = 128  # alignment of a box in shared memory; of a swizzled one eight spans
COPY = Handle("copy", SYNC)
STAGE_COUNT = Handle("stages", 1)
VECTOR = Handle("vector", 0)


def gpu_copy(
    nest: Nest, target: Target, pair: tuple[NestAxis, ...], staged: Mapping[str, Int], names: StepNames
) -> Step:
    """`copy`: threads copy through registers (`sync`) or start copies (`cp.async`), or TMA copies boxes; `stages`:
    slices in shared memory at a time; `vector`: bytes that a thread copies at once (0: one element).

    Derived: `slices_bytes` of all stages.
    """
    copy, stages, vector = Var(names(COPY.name)), Var(names(STAGE_COUNT.name)), Var(names(VECTOR.name))
    kinds = [SYNC]
    kinds += [ASYNC] if target.async_copies else []
    kinds += [BULK] if target.bulk_copies else []
    depths = STAGES if len(kinds) > 1 else tuple(s for s in STAGES if s <= SYNC_STAGES)
    rules = []
    aligned = {
        operand: aligned_bytes(nest, operand) if nest.depth in nest.operand_axes(operand) else 0 for operand in staged
    }
    copied = {operand: most for operand, most in aligned.items() if operand not in nest.computed}
    total: Int = Const(0)
    running_bytes: Int = Const(0)  # of copies that run on
    for operand, is_staged in staged.items():
        own = is_staged * slice_bytes(nest, operand, pair, names)
        total = total + own
        if fetched_raw(nest, operand):  # one slice is computed from several that are fetched
            running_bytes = running_bytes + own + is_staged * raw_bytes(nest, operand, pair, names) * stages
        else:
            running_bytes = running_bytes + own * stages
        most = aligned[operand]
        free = operand in nest.computed and not most  # its elements are stored one by one, whatever others are
        fits = is_staged.eq(0) | (vector <= most) if not free else TRUE
        sentence = f"{{{vector.name}}} bytes of {operand} at once, whose rows are aligned to {most or 'one element'}"
        rules.append(Rule(names(f"vector_{operand}"), fits, sentence))
        if BULK in kinds and (why := no_bulk_copy(nest, operand)):
            held = is_staged.eq(0) | copy.ne(BULK)
            rules.append(Rule(names(f"bulk_{operand}"), held, f"no TMA of {operand}: {why}"))
        elif BULK in kinds:
            rules += _box_rules(nest, operand, pair, is_staged.eq(0) | copy.ne(BULK), names)
    deep = all_of(copy.eq(SYNC).implies(stages <= SYNC_STAGES), copy.eq(ASYNC).implies(stages >= 2))
    label = "{" + stages.name + "}"
    # A producer of a persistent block goes on to the slices of its next tile.
    beyond: Bool = FALSE
    if BULK in kinds and nest.intrinsic.shared_memory:
        beyond = Var(names("roles")).ne(0) & Var(names("persistent")).ne(0)
    rules += [
        Rule(stages.name, deep, f"{label} stages: {SYNC_STAGES} at most with sync copies, 2 at least with cp.async"),
        Rule(
            names("stages_used"),
            (stages <= Var(names("slices"))) | stages.eq(1) | beyond,
            f"{label} stages are more than the {{{names('slices')}}} slices",
        ),
    ]
    if BULK in kinds:
        padding = Var(names("padding"))
        sentence = "rows of TMA's boxes follow each other, and {" + padding.name + "} are to lie between them"
        rules.append(Rule(padding.name, copy.ne(BULK) | padding.eq(0), sentence))
    if ASYNC in kinds:
        rules.append(Rule(copy.name, copy.ne(ASYNC) | (vector >= 4), "cp.async of {" + vector.name + "} bytes < 4"))
        running: Int = sum((staged[o] for o in copied), Const(0))
        if len(copied) < len(staged):
            sentence = "cp.async copies slices, and all that go through shared memory are computed"
            rules.append(Rule(names("running"), copy.ne(ASYNC) | (running > 0), sentence))
    nothing = Var(names("staged")).eq(0)
    inert = {copy.name: nothing, stages.name: nothing, vector.name: nothing | copy.eq(BULK)}
    widths = tuple(sorted({0, *aligned.values()}))
    wide = min((copied or aligned).values(), default=0) or None  # what all operands can have
    usual = BULK if BULK in kinds and not any(no_bulk_copy(nest, o) for o in staged) else min(kinds[-1], ASYNC)
    if not copied or nest.depth is None or nest.depth.full_units <= 1:
        usual = SYNC  # nothing is copied, or there is one slice
    decisions = (
        Decision(copy.name, tuple(kinds), tuple(LABELS[k] for k in kinds), held=usual),
        Decision(stages.name, depths),
        Decision(vector.name, widths, tuple(WIDTHS[w] for w in widths), held=wide),
    )
    all_bytes: Int = Var(names("slice_bytes")) * stages
    if any(fetched_raw(nest, operand) for operand in staged):
        all_bytes = where(copy.eq(ASYNC), running_bytes, all_bytes)
    derived = {names("slice_bytes"): total, names("slices_bytes"): all_bytes}
    return Step("gpu copy", decisions, tuple(rules), derived, inert)


def _box_rules(nest: Nest, operand: str, pair: tuple[NestAxis, ...], other: Bool, names: StepNames) -> list[Rule]:
    """The rules of the boxes that TMA fetches of an operand; `other`: it fetches none in this row."""
    swizzle, described = Var(names("swizzle")), Var(stage_name(names, operand)).eq(DESCRIPTOR)
    *sides, row = (slice_extent(nest, a, pair, names) for a in slice_axes(nest, operand))
    short = (row <= BOX) | described | swizzle.ne(0)
    small = all_of(short, *(side <= BOX for side in sides))
    bits = nest.intrinsic.operands[operand].dtype.bits
    plain = where(described, CHUNK_BYTES, ceil_div(row * bits, 8 * CHUNK_BYTES) * CHUNK_BYTES)
    span = where(swizzle.ne(0), swizzle, plain)
    piece: Int = span
    for side in sides:
        piece = piece * side
    placed = (piece % where(swizzle.eq(0), BOX_BYTES, swizzle * 8)).eq(0)
    whole = (row * bits % (8 * CHUNK_BYTES)).eq(0)  # else blocks would begin in the middle of 16 bytes
    longer = f"a side of the box of {operand} has {{side}} elements > {BOX}"
    uneven = f"a row of the box of {operand} has {{bits}} bits, no multiple of {8 * CHUNK_BYTES}"
    return [
        Rule(names(f"bulk_{operand}"), other | small, longer, {"side": maximum(where(short, 0, row), *sides)}),
        Rule(names(f"whole_{operand}"), other | whole, uneven, {"bits": row * bits}),
        Rule(names(f"placed_{operand}"), other | placed, f"boxes of {operand} would begin where no swizzle does"),
    ]
