"""The layout of an operand's slice in shared memory: rows of 16-byte chunks, swizzled so that rows differ in banks.

A slice has the rows of all axes but one, the *major* one, along which elements are neighbours. Its rows are cut into
spans of the swizzle's bytes; inside a span, chunk `c` of row `r` lies at `c xor (r // (8 // m)) % m`, where a span has
`m` chunks: what NVIDIA's 32-, 64- and 128-byte modes do. Eight rows at one chunk then meet all 32 banks once. Where an
instruction takes a slice by descriptor and nothing is swizzled, a span is one chunk: it asks for blocks of 8 rows.

Instead of that, rows may be padded: those of an even number of chunks are one chunk longer than what they hold. Eight
rows at one chunk meet all banks once then too, and lie evenly apart, which is what fragments of WMMA are loaded from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from autosched.logic import Bool, Const, Int, Var, any_of, ceil_div, where
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.gpu.block_tile import TILES
from autosched.tiling.steps.gpu.operands.operand_paths import CHUNK_BYTES, depth_slices, layout_major
from autosched.tiling.steps.gpu.operands.operand_sources import DESCRIPTOR, stage_name

SWIZZLES = (0, 32, 64, 128)
PADDINGS = (0, CHUNK_BYTES)
BANK_BYTES = 128  # of all banks together, one word each
MOST_WAYS = 4
"""Rows of eight that may share their banks: more would keep the memory busy for longer than the copies save."""
SWIZZLE = Handle("swizzle", 0)
PADDING = Handle("padding", 0)


def chunk_elements(bits: int) -> int:
    """Elements of one chunk; those below a byte take a whole one in memory."""
    return CHUNK_BYTES * 8 // max(8, bits)


@dataclass(frozen=True)
class SharedLayout:
    """One operand's slice: elements along each of its axes, the major one last; `swizzle` in bytes (0: none);
    `described`: an instruction takes it by descriptor; `padded`: rows are of an odd number of chunks."""

    axes: tuple[NestAxis, ...]
    extents: tuple[int, ...]
    chunk: int
    swizzle: int
    described: bool = False
    padded: bool = False

    @property
    def rows(self) -> int:
        return prod(self.extents[:-1])

    @property
    def chunks(self) -> int:
        """Chunks of a whole row."""
        return -(-self.extents[-1] // self.chunk)

    @property
    def span(self) -> int:
        """Chunks of a span."""
        return self.swizzle // CHUNK_BYTES or (1 if self.described else self.chunks)

    @property
    def shape(self) -> tuple[int, ...]:
        """Spans, rows, chunks of a span with those that nobody uses, elements of a chunk."""
        padding = (1 - self.chunks % 2) if self.padded else 0
        return (-(-self.chunks // self.span), self.rows, self.span + padding, self.chunk)

    def row(self, place: Mapping[str, Int]) -> Int:
        """The row of an element at a position along each axis."""
        row: Int = Const(0)
        for axis, extent in zip(self.axes[:-1], self.extents[:-1], strict=True):
            row = row * extent + place[axis.name]
        return row

    def index(self, row: Int, element: Int) -> tuple[Int, ...]:
        """Where an element of a row lies, in terms of `shape`."""
        chunk, inside = element // self.chunk, element % self.chunk
        if not self.swizzle:
            return chunk // self.span, row, chunk % self.span, inside
        swizzled = exclusive_or(chunk % self.span, (row // (8 // self.span)) % self.span, self.span)
        return chunk // self.span, row, swizzled, inside


def exclusive_or(a: Int, b: Int, below: int) -> Int:
    """`a xor b` of two numbers below a power of two, in integer arithmetic."""
    total: Int = Const(0)
    bit = 1
    while bit < below:
        total = total + ((a // bit + b // bit) % 2) * bit
        bit *= 2
    return total


def slice_axes(nest: Nest, operand: str) -> tuple[NestAxis, ...]:
    """The axes of a slice, the major one last, and before it those along which an instruction's rows lie."""
    major = layout_major(nest, operand)
    others = [a for a in nest.operand_axes(operand) if a is not major]
    return (*sorted(others, key=lambda a: a.intrinsic_axis is not None), major)


def slice_extent(nest: Nest, axis: NestAxis, pair: tuple[NestAxis, ...], names: StepNames) -> Int:
    """Elements of a block's slice along an axis."""
    if axis is nest.depth:
        return Var(names.block(axis)) * axis.unit
    return Var(names(f"tile_{axis.name}")) * axis.unit if axis in pair else Const(axis.unit)


def slice_bytes(nest: Nest, operand: str, pair: tuple[NestAxis, ...], names: StepNames) -> Int:
    """Bytes of one slice of the operand in shared memory."""
    bits = nest.intrinsic.operands[operand].dtype.bits
    *rows, row = (slice_extent(nest, a, pair, names) for a in slice_axes(nest, operand))
    chunks, swizzle = ceil_div(row, chunk_elements(bits)), Var(names(SWIZZLE.name))
    chunks = where(Var(names(PADDING.name)).eq(0), chunks, chunks + padding_chunks(chunks))
    whole = ceil_div(chunks * CHUNK_BYTES, where(swizzle.eq(0), CHUNK_BYTES, swizzle)) * where(
        swizzle.eq(0), CHUNK_BYTES, swizzle
    )
    for extent in rows:
        whole = whole * extent
    return whole


def padding_chunks(chunks: Int) -> Int:
    """Chunks that padding adds to a row."""
    return 1 - chunks % 2


def across_bytes(nest: Nest, operand: str) -> int:
    """Bytes of a row that one instruction takes of an operand which runs along its own axis; 0 of one along the depth,
    of which any 32 bytes are in reach."""
    major = layout_major(nest, operand)
    return 0 if major is nest.depth else major.unit * nest.intrinsic.operands[operand].dtype.bits // 8


def _reaches(nest: Nest, operand: str, swizzle: int) -> bool:
    """Whether some slice of the operand has rows of whole spans of so many bytes."""
    spec, major = nest.intrinsic.operands[operand], slice_axes(nest, operand)[-1]
    if not swizzle or spec.opaque is not None:
        return not swizzle
    units = depth_slices(major) if major is nest.depth else [n for n in TILES if n <= max(1, major.units)]
    lengths = (-(-n * major.unit // chunk_elements(spec.dtype.bits)) * CHUNK_BYTES for n in units)
    across = across_bytes(nest, operand)
    fits = not across or swizzle % across == 0 or across % swizzle == 0
    return fits and any(length % swizzle == 0 for length in lengths)


def gpu_layout(nest: Nest, pair: tuple[NestAxis, ...], staged: Mapping[str, Int], names: StepNames) -> Step:
    """`swizzle`: bytes of the span in which chunks change places; `padding`: bytes that rows of an even number of
    chunks get in addition, for instructions that do not read shared memory themselves. `staged`: 1 where an operand
    goes through shared memory. Derived for each operand: `ways_a`, rows of eight that meet in one bank."""
    swizzle, padding = Var(names(SWIZZLE.name)), Var(names(PADDING.name))
    derived: dict[str, Int] = {}
    rules: list[Rule] = []
    anything: Int = Const(0)
    even: list[Bool] = []
    for operand, is_staged in staged.items():
        spec = nest.intrinsic.operands[operand]
        row = slice_extent(nest, slice_axes(nest, operand)[-1], pair, names)
        chunks = ceil_div(row, chunk_elements(spec.dtype.bits))
        ways, length = names(f"ways_{operand}"), names(f"row_{operand}")
        odd = where((chunks % 8).eq(0), 8, where((chunks % 4).eq(0), 4, where((chunks % 2).eq(0), 2, 1)))
        derived[length] = chunks * CHUNK_BYTES
        described = Var(stage_name(names, operand)).eq(DESCRIPTOR)
        derived[ways] = where(swizzle.eq(0) & padding.eq(0) & ~described, odd, 1) * is_staged
        whole = swizzle.eq(0) | (Var(length) % where(swizzle.eq(0), 1, swizzle)).eq(0)
        sentence = "rows of {" + length + f"}} bytes of {operand} are no whole spans of {{" + swizzle.name + "}"
        rules.append(Rule(length, is_staged.eq(0) | whole, sentence))
        twice = where(swizzle.eq(0), 1, swizzle * 2)
        widest = swizzle.eq(0) | swizzle.eq(SWIZZLES[-1]) | (Var(length) % twice).ne(0)
        sentence = "rows of {" + length + f"}} bytes of {operand} hold wider spans than {{" + swizzle.name + "}"
        rules.append(Rule(names(f"span_{operand}"), is_staged.eq(0) | widest, sentence))
        sentence = "{" + ways + f"}} of eight rows of {operand} meet in one bank > {MOST_WAYS}"
        rules.append(Rule(ways, Var(ways) <= MOST_WAYS, sentence))
        if spec.opaque is not None:
            sentence = f"fragments of {operand} are lines evenly apart, and a swizzle of {{{swizzle.name}}} bends them"
            rules.append(Rule(names(f"lines_{operand}"), is_staged.eq(0) | swizzle.eq(0), sentence))
        if unit := across_bytes(nest, operand):
            span = where(swizzle.eq(0), 1, swizzle)
            fits = ~described | (span % unit).eq(0) | (unit % span).eq(0)
            sentence = f"an instruction takes {unit} bytes of a row of {operand}, and spans have {{{swizzle.name}}}"
            rules.append(Rule(names(f"across_{operand}"), fits, sentence))
        anything = anything + is_staged
        even.append(is_staged.ne(0) & padding_chunks(chunks).ne(0))
    reached: int = max(s for s in SWIZZLES if all(_reaches(nest, o, s) for o in staged))
    usual = reached if nest.intrinsic.shared_memory else None  # with others, what else is held may rule the widest out
    decisions = [Decision(swizzle.name, SWIZZLES, ("none", "32 B", "64 B", "128 B"), held=usual)]
    inert = {swizzle.name: anything.eq(0)}
    if nest.intrinsic.shared_memory:
        derived = {padding.name: Const(0), **derived}
    else:
        decisions.append(Decision(padding.name, PADDINGS, ("none", f"{CHUNK_BYTES} B")))
        inert[padding.name] = swizzle.ne(0) | ~any_of(*even)
    return Step("gpu layout", tuple(decisions), tuple(rules), derived, inert)
