"""`Intrinsic`: an instruction as a frozen value: a tiny program, its operands' registers, and text to emit it.

Built only by `tensorize.spec` from YAML; nothing here knows an instruction by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, prod
from typing import Any, TypeGuard

from autosched.backends import PORTABLE, backend_of
from autosched.ir.dtypes import DType
from autosched.ir.formula import Formula
from autosched.ir.map import Map
from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.value import Index, Read, Select, Value, is_value, reads, walk
from autosched.logic import Const, Int, Var
from autosched.tensorize.matrices import Matrices
from autosched.tensorize.numerics.contract import EXACT, Numerics


@dataclass(frozen=True, slots=True)
class Opaque:
    """A fragment of which nobody knows which lane holds what: `registers` of one lane (`8 x b32`), and the texts that
    `load` it from memory and `store` it there, with fields `{address}`, `{stride}` (elements from line to line),
    `{layout}` (`row`: lines are the first dimension's, `col`: the second's) and `{space}` (`.shared` or nothing)."""

    registers: str
    load: str
    store: str = ""


@dataclass(frozen=True)
class Operand:
    """One operand. `order` takes the register's element number `e` to the operand's coordinates; for operands held by
    a whole warp `fragment` takes (lane `t`, element `v`) to them instead. `registers` maps a printer (`llvm`, `c`) to
    the register's type there. Each element lies in `copies` lanes of a fragment, in a field of `bits` bits (0: as many
    as the type has) from bit `shift` of it on. Of each `distinct` neighbours along the last dimension no two may be
    equal in these bits (0: nothing is asked): the instruction means nothing else."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    order: Map
    fragment: Map | None = None
    registers: dict[str, str] = field(default_factory=dict)
    load: tuple[str, ...] = ()
    written: bool = False
    opaque: Opaque | None = None
    broadcast: tuple[str, ...] = ()  # axes over which the instruction can take one group of elements for all
    copies: int = 1
    bits: int = 0
    shift: int = 0
    distinct: int = 0
    state: str = ""  # of an accelerator: what holds it from one load to the next; empty where each issue reads it anew

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def field_bits(self) -> int:
        """Of a register, for one element."""
        return self.bits or self.dtype.bits

    @property
    def in_fields(self) -> bool:
        """Whether elements are put into registers bit by bit: they are no whole bytes, or lie otherwise in memory."""
        return self.field_bits < 8 or self.field_bits != self.dtype.bits or self.shift > 0

    def lane_elements(self, lanes: int) -> int:
        """Elements that each of so many lanes holds."""
        return self.elements * self.copies // lanes


def _keeps(value: Value, target: Read) -> TypeGuard[Select]:
    """Whether a value is a choice between something else and what its target holds, by what is not the target."""
    if not (isinstance(value, Select) and value.other == target):
        return False
    return not is_value(value.condition) or all(r.tensor != target.tensor for r in reads(value.condition))


@dataclass(frozen=True, slots=True)
class Outline:
    """What a list shows of an intrinsic. `printers` it has texts for; `family` is a glob over its entry's members."""

    name: str
    isa: str
    requires: frozenset[str]
    summary: str
    printers: frozenset[str]
    family: str
    kind: str


@dataclass(frozen=True)
class Pseudocode:
    """A second, independent description of an instruction: its `text`, and what makes a program of it, which is done
    when `program` is first asked for (SpecError where the text is none)."""

    text: str
    read: Callable[[], Program] = field(compare=False, repr=False)

    @cached_property
    def program(self) -> Program:
        return self.read()

    def __reduce__(self) -> tuple[object, ...]:
        return _read_before, (self.text, self.program)  # what reads it holds the whole file


def _read_before(text: str, program: Program) -> Pseudocode:
    return Pseudocode(text, lambda: program)


@dataclass(frozen=True)
class Intrinsic:
    """`name` is complete (`x86/vpdpbusd.zmm`). `program` has one stage, whose target is the accumulator: the register
    that takes the result, and unless `accumulates` is False, what the result is added to.

    `emit` maps a printer to a template with `{operand}` fields; `timing` holds `latency`, `interval` and `chain` in
    cycles.
    """

    name: str
    isa: str
    program: Program
    operands: dict[str, Operand]
    numerics: Numerics = EXACT
    contracts: tuple[tuple[frozenset[str], Numerics], ...] = ()
    """Contracts of targets that list certain features, the first that fits; `numerics` where none does."""
    sequences: tuple[tuple[frozenset[str], dict[str, int]], ...] = ()
    """Of targets whose machine runs a sequence of other instructions: 32-bit registers of a lane that operands take
    there; the first that fits."""
    sequence: dict[str, int] = field(default_factory=dict)
    """Those of the target that the intrinsic is on; empty where it is one instruction."""
    least_registers: int = 0
    """Of a thread: a kernel that is told to take fewer is refused by the assembler."""
    requires: frozenset[str] = frozenset()
    summary: str = ""
    source: str = ""
    scope: str = "thread"
    kind: str = "compute"
    asynchronous: bool = False
    overwrite: str | None = None
    from_zero: bool = False
    """Whether each issue starts its sum from zero: `program` is right where the target holds 0, and nowhere else."""
    written_out: tuple[str, ...] = ()
    """Operands whose elements the semantics names one by one, where it would sum them were these operands as a whole:
    nothing says that they are."""
    overwrite_flag: bool = False
    """Whether a call says by an operand (`keep`) if it starts from zero; `overwrite` says what that does."""
    moves: tuple[str, str] | None = None
    """Of a copy: from and to `memory`, `inputs` or `accumulators`, or to a state that holds an operand of others; None
    where it does not say."""
    state: dict[str, object] = field(default_factory=dict)
    sets: frozenset[str] = frozenset()
    """Of a config: the names under `state` of other instructions that it sets."""
    matrices: Matrices | None = None  # registers of its own, which hold its operands
    shared_memory: dict[str, bool] = field(default_factory=dict)
    """Operands that it reads in shared memory itself: whether they must be there, else they may be in registers too."""
    contiguous: dict[str, str] = field(default_factory=dict)
    """Operands whose elements must be neighbours in memory along an axis of the instruction."""
    rules: tuple[str, ...] = ()
    """What is legal, in words, with what `shared_memory` and `contiguous` say."""
    header: str | None = None
    emit: dict[str, str] = field(default_factory=dict)
    timing: dict[str, float] = field(default_factory=dict)
    interval_by_rows: tuple[tuple[int, float], ...] = ()  # where registers hold fewer rows than they could, ascending
    interval_by_lanes: tuple[tuple[int, float], ...] = ()  # at lengths shorter than all lanes, ascending
    length: tuple[str, str] | None = None
    """At one of its lengths (`tensorize.lengths`): the operand that held it, and the axis that was compared with it."""
    lengthened: Intrinsic | None = field(default=None, compare=False, repr=False)
    """The same with its length as an operand; None where no shorter one is proved to do."""
    lanes: int = 0  # of one that is issued with a shorter length: how many take part
    share: float = 1.0  # on fewer rows than its registers have, or lanes: of an issue's time on all of them
    timing_source: str = ""  # machine and document or measurement; "unverified" where there is none
    registered: Intrinsic | None = field(default=None, compare=False, repr=False)
    """The same with the operands that its text and its registers have, where matching takes one of them in parts."""
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of such a form: the parts of an operand by the number along the dimension that data select."""
    second: Pseudocode | None = None
    formula: Formula | None = None  # of a function: the steps that approximate it
    path: str = ""
    version: str = ""  # hash of what the YAML says of this intrinsic
    family: str = ""  # a glob over the members of its entry; its own name where it stands alone

    @property
    def pseudocode(self) -> Program | None:
        """A second, independent description of the same instruction; None where there is none."""
        return None if self.second is None else self.second.program

    def on(self, features: frozenset[str]) -> Intrinsic:
        """The intrinsic as a target with these features has it: with its contract, and as what its machine runs."""
        if not self.contracts and not self.sequences:
            return self
        registered = None if self.registered is None else self.registered.on(features)
        chosen = next((n for needed, n in self.contracts if needed <= features), self.numerics)
        sequence = next((s for needed, s in self.sequences if needed <= features), self.sequence)
        return replace(
            self, numerics=chosen, contracts=(), sequence=sequence, sequences=(), registered=registered
        )  # fmt: skip

    def chain_cycles(self, unknown: float) -> float:
        """Cycles after which the next issue may follow on the same accumulator: none where it overwrites that."""
        if not self.accumulates or self.from_zero:
            return 0.0
        return self.timing.get("chain", self.timing.get("latency", unknown))

    def lanes_for(self, axis: str, rest: int) -> int:
        """Lanes along an axis whose time an issue on the last `rest` elements takes: all, or as many as the cycles at a
        run-time length stand for."""
        lanes = next(a.extent for a in self.stage.axes if a.name == axis)
        if self.length is None or self.length[1] != axis:
            return lanes
        full = self.timing.get("interval", 1.0)
        cycles = next((c for n, c in self.interval_by_lanes if n >= rest), full)
        return max(rest, ceil(lanes * cycles / full))

    @property
    def configured(self) -> dict[str, object]:
        """The state that an instruction of kind config sets before: all but registers that hold matrices."""
        return {name: value for name, value in self.state.items() if name != "matrices"}

    @property
    def form(self) -> tuple[object, ...]:
        """What tells it from others of its target: one name may stand for several numbers of rows."""
        return self.name, self.lanes, *(o.shape for o in self.operands.values())

    @property
    def portable(self) -> bool:
        """Whether any machine has it: written as plain code, without an instruction of its own."""
        return self.isa == PORTABLE.isa

    @property
    def by_lane(self) -> bool:
        """Whether its sums lie lane by lane in the vectors of a CPU, so that a step can be left out of single lanes."""
        plain = self.scope == "thread" and self.matrices is None and not self.state
        return plain and not backend_of(self.isa).is_gpu

    @cached_property
    def cache(self) -> dict[object, Any]:
        """What other modules found out about this instruction, by their keys."""
        return {}

    @property
    def stage(self) -> Stage:
        return self.program.stages[0]

    @property
    def outline(self) -> Outline:
        family = self.family or self.name
        return Outline(self.name, self.isa, self.requires, self.summary, frozenset(self.emit), family, self.kind)

    @cached_property
    def operand_axes(self) -> dict[str, tuple[str | None, ...]]:
        """The axis that indexes each dimension of each operand; None for a dimension of extent 1 or a compound index.

        A dimension indexed only by constants is an axis of its own, named `operand.dimension`; dimensions of other
        operands that take the same constants in the same order are the same axis.
        """
        subscripts: dict[str, list[tuple[Index, ...]]] = {}
        for read in (*self.stage.reads, self.stage.target):
            subscripts.setdefault(read.tensor, []).append(read.index)
        loops = {a.name for a in self.stage.axes if a.extent > 1}
        constant_axes: dict[tuple[int, tuple[int, ...]], str] = {}
        found: dict[str, tuple[str | None, ...]] = {}
        for operand in self.operands.values():
            names: list[str | None] = []
            for d, extent in enumerate(operand.shape):
                parts = list(dict.fromkeys(index[d] for index in subscripts.get(operand.name, [])))
                if operand.name in self.parts and all(isinstance(p, Const) for p in parts):
                    names.append(None)  # data say which
                elif extent > 1 and parts and all(isinstance(p, Const) for p in parts):
                    key = extent, tuple(p.value for p in parts if isinstance(p, Const))
                    names.append(constant_axes.setdefault(key, f"{operand.name}.{d}"))
                elif len(parts) == 1 and isinstance(parts[0], Var) and parts[0].name in loops:
                    names.append(parts[0].name)
                else:
                    names.append(None)
            found[operand.name] = tuple(names)
        return found

    @cached_property
    def windows(self) -> dict[str, tuple[Int, ...]]:
        """The index of each windowed input: one with a dimension that a sum of axes indexes (`a[i + k]`), so that
        several steps read one element, or that has elements which no step reads."""
        extents, found = {a.name: a.extent for a in self.stage.axes}, {}
        for read in self.stage.reads:
            names, shape = self.operand_axes[read.tensor], self.operands[read.tensor].shape
            parts = list(zip(names, shape, strict=True))
            if any(n > 1 and (name is None or extents.get(name, n) < n) for name, n in parts):
                index = [p for p in read.index if isinstance(p, Int)]
                if read.tensor in self.parts:
                    numbers = {d: name for name, (operand, d) in self.selected.items() if operand == read.tensor}
                    index = [Var(numbers[d]) if d in numbers else p for d, p in enumerate(index)]
                found[read.tensor] = tuple(index)
        return {name: index for name, index in found.items() if not self.operands[name].written}

    @cached_property
    def selected(self) -> dict[str, tuple[str, int]]:
        """The dimensions of operands along which data say which element is meant, by names of their own (`b.1`); no
        loop goes along them."""
        found: dict[str, tuple[str, int]] = {}
        for name in self.parts:
            subscripts = [r.index for r in self.stage.reads if r.tensor == name]
            for d in range(len(self.operands[name].shape)):
                if all(isinstance(index[d], Const) for index in subscripts):
                    found[f"{name}.{d}"] = name, d
        return found

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes a mapping fills: loops of extent above one, then dimensions indexed by constants."""
        loops = tuple(a for a in self.stage.axes if a.extent > 1)
        extents = {
            name: extent
            for operand in self.operands.values()
            for name, extent in zip(self.operand_axes[operand.name], operand.shape, strict=True)
            if name is not None and "." in name
        }
        return loops + tuple(Axis(name, Const(0), Const(n)) for name, n in extents.items())

    @cached_property
    def spatial(self) -> tuple[Axis, ...]:
        names = {a.name for a in self.stage.spatial}
        return tuple(a for a in self.axes if a.name in names)

    @cached_property
    def reduction(self) -> tuple[Axis, ...]:
        names = {a.name for a in self.stage.spatial}
        return tuple(a for a in self.axes if a.name not in names)

    @property
    def accumulator(self) -> Operand:
        return self.operands[self.stage.assign.tensor]

    @cached_property
    def accumulates(self) -> bool:
        """Whether it takes what its target holds; else it overwrites that (`c[i] = a[i] + b[i]`)."""
        assign, value = self.stage.assign, self.stage.assign.value
        while _keeps(value, self.stage.target):
            value = value.then
        return assign.op != "=" or any(r.tensor == assign.tensor for r in reads(value))

    @cached_property
    def governed(self) -> bool:
        """Whether a condition on its operands says which elements take part (a mask, a length); the target keeps what
        it holds where it fails."""
        return _keeps(self.stage.assign.value, self.stage.target)

    @cached_property
    def chooses(self) -> bool:
        """Whether what its operands hold decides which of them it computes with."""
        return any(isinstance(v, Select) for v in walk(self.stage.assign.value))

    @property
    def inputs(self) -> tuple[Operand, ...]:
        return tuple(o for o in self.operands.values() if not o.written)

    @property
    def held(self) -> tuple[Operand, ...]:
        """The inputs that stay in a state, where another instruction loads them."""
        return tuple(o for o in self.inputs if o.state)

    @property
    def operations(self) -> int:
        """Scalar operations of one issue: two for each point of its loops (a multiply and an add), one where it
        overwrites its target."""
        return (2 if self.accumulates else 1) * prod(a.extent for a in self.axes)
