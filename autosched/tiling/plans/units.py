"""Units of an accelerator beside its array: what copies tiles, and what computes element by element.

Figures alone, as descriptions state them: instructions of kind `copy` and `function` of the target's isa, and the
target's `rates`. The clock and the simulator each count on their own how often a unit is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Call, Read, Select, Unary, Value
from autosched.machine.rate_names import FUNCTIONS
from autosched.machine.target import Target
from autosched.tensorize.held import as_it_is, loads
from autosched.tensorize.intrinsic import Intrinsic, Operand
from autosched.tensorize.lengths import at_length

Place = Literal["memory", "inputs", "accumulators"]
KINDS = ("copy", "function", "config")
"""Kinds of instructions beside those that compute."""
Unit = Literal["vector", "host"]
"""What computes an element: the accelerator, where the target states a rate of the operation, else its host."""
On = Literal["array", "vector"]
"""What issues an instruction: the array one that sums products, the unit for elements and rows all others."""

FUNCTION_OPERATIONS = 20.0
"""Scalar operations of the host for one element of a function that nothing describes: a round figure."""


@dataclass(frozen=True)
class Copying:
    """A copy instruction: `elements` of one issue, cycles from an issue to the next, and to its last byte (None where
    it does not say: the memory's latency). `ahead`: one that loads a state has room there for what comes next, and runs
    while the array still reads what it loaded last."""

    name: str
    elements: int
    interval: float
    latency: float | None
    ahead: bool = False

    def cycles(self, elements: int) -> float:
        """Of a tile of so many elements."""
        return ceil(elements / self.elements) * self.interval


@dataclass(frozen=True)
class AcceleratorUnits:
    """`copies` and `functions`: what the target's isa describes of either kind, and the target has; `configs` what sets
    state. `finishing`: of a plan, the instruction that computes a tensor out of finished sums; `passing`: those of
    these tensors that nothing reads but what follows on the same sums, so that they stay on the chip."""

    copies: tuple[Intrinsic, ...] = ()
    functions: tuple[Intrinsic, ...] = ()
    configs: tuple[Intrinsic, ...] = ()
    finishing: Mapping[str, Intrinsic] = field(default_factory=dict)
    passing: frozenset[str] = frozenset()

    @classmethod
    def of(cls, intrinsics: Iterable[Intrinsic], target: Target) -> AcceleratorUnits:
        """Those of the intrinsics that the target has."""
        own = [i for i in intrinsics if i.isa == target.isa and target.has(i.requires)]
        copies, functions, configs = (tuple(i for i in own if i.kind == kind) for kind in KINDS)
        return cls(copies, functions, configs)

    def setting(self, target: Target, state: str) -> float | None:
        """Cycles of the quickest instruction that sets a state; None where none does."""
        return min((1.0 / target.issues(c) for c in self.configs if state in c.sets), default=None)

    def configuring(self, target: Target, used: Iterable[Intrinsic], now: dict[str, object]) -> float:
        """Cycles to set what these instructions ask for and is not so `now`, which changes with it."""
        cycles = 0.0
        for state, value in (item for i in used for item in i.configured.items()):
            if state not in now or now[state] != value:
                now[state] = value
                cycles += self.setting(target, state) or 0.0
        return cycles

    def copying(self, target: Target, start: Place, end: Place, read: DType, written: DType) -> Copying | None:
        """The quickest instruction that copies elements between these places; None where nothing describes one, and
        the bus alone counts. One that does not say what it `moves` copies wherever its types fit. On a chip without a
        host, where nothing else would change an element, it takes each as it is."""
        ways = (c for c in self.copies if _moves(c, start, end) and _types(c) == (read, written))
        found = [_copying(c, target) for c in ways if target.host or as_it_is(c)]
        return min(found, key=lambda c: (c.interval / c.elements, c.name), default=None)

    def loading(self, target: Target, operand: Operand) -> Copying | None:
        """The quickest instruction that loads the state which holds an operand; None where none does."""
        found = [_copying(c, target) for c in self.copies if loads(c, operand)]
        return min(found, key=lambda c: (c.interval / c.elements, not c.ahead, c.name), default=None)

    def leaving(self, target: Target, tensor: str, sums: DType, dtype: DType) -> Copying | None:
        """What takes a tensor's elements to memory, as sums or as the instruction that finishes it leaves them."""
        made = self.finishing.get(tensor)
        return self.copying(target, "accumulators", "memory", sums if made is None else made.accumulator.dtype, dtype)

    def finish(self, target: Target, tensor: str, elements: int) -> float | None:
        """Cycles of the instruction that finishes so many elements of a tensor; None where none does."""
        made = self.finishing.get(tensor)
        if made is None:
            return None
        whole, left = divmod(elements, made.accumulator.elements)
        last = made if made.length is None or not left else at_length(made, left)
        return whole / target.issues(made) + (1.0 / target.issues(last) if left else 0.0)

    def price(self, target: Target, function: str, dtype: str) -> tuple[Unit, float]:
        """Cycles of one element of an operation of a type (`function` is empty for plain arithmetic), and whose."""
        if not function:
            rate = target.rates.get(f"ops.{dtype}")
            return ("vector", 1.0 / rate) if rate else ("host", 1.0 / target.rates.get("scalar", 1.0))
        for i in self.functions:
            stated = i.name in target.rates or "interval" in i.timing
            if stated and i.formula is not None and (i.formula.function, i.formula.dtype.name) == (function, dtype):
                return "vector", 1.0 / target.issues(i) / i.accumulator.elements
        rate = target.rates.get(f"ops.{function}")
        if rate:
            return "vector", 1.0 / rate
        return "host", FUNCTION_OPERATIONS / target.rates.get("scalar", 1.0)


NO_UNITS = AcceleratorUnits()


def unit_of(intrinsic: Intrinsic) -> On:
    """What an accelerator issues an instruction on."""
    summed = intrinsic.accumulates and not isinstance(intrinsic.stage.assign.value, Read)
    return "array" if summed else "vector"


def operation_of(node: Value) -> tuple[str, str] | None:
    """The function (empty for plain arithmetic) and the type of what an accelerator would compute for this node alone;
    None for what costs nothing: elements, numbers, conversions."""
    if isinstance(node, Call) and node.function in FUNCTIONS:
        return node.function, node.dtype.name
    return ("", node.dtype.name) if isinstance(node, Arith | Call | Unary | Select) else None


def _copying(copy: Intrinsic, target: Target) -> Copying:
    stated = copy.name in target.rates or "interval" in copy.timing
    interval = 1.0 / target.issues(copy) if stated else 0.0
    latency = copy.timing.get("latency")
    return Copying(copy.name, copy.accumulator.elements, interval, latency, copy.asynchronous)


def _moves(copy: Intrinsic, start: Place, end: Place) -> bool:
    return copy.moves is None or copy.moves == (start, end)


def _types(copy: Intrinsic) -> tuple[DType, DType]:
    """What it reads and what it writes."""
    return copy.inputs[0].dtype, copy.accumulator.dtype
