"""`ValueContext` of an assignment in C: its lanes read memory, registers, conditions on the lane, formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from autosched.codegen import workarounds
from autosched.codegen.analysis.access import at_lane, classify, plain
from autosched.codegen.analysis.known import inside, known
from autosched.codegen.analysis.lane_conditions import lane_truth, split_valid
from autosched.codegen.c.vector_helpers import LaneHelpers, NotVector
from autosched.codegen.c.vectors import VectorPrinter
from autosched.codegen.c_like.ctypes import literal
from autosched.codegen.tree.kernel import Lane
from autosched.ir.dtypes import DType
from autosched.ir.oracle.numerics import wrap_int
from autosched.ir.value import FromIndex, Read, Value, is_plain
from autosched.logic import TRUE, And, Bool, Compare, Const, Int, Not, Or, evaluate, free_vars, minimum

if TYPE_CHECKING:
    from autosched.codegen.c.scope import FunctionScope


def vector_values(scope: FunctionScope, lane: Lane, wanted: Bool = TRUE) -> VectorPrinter:
    """A printer of values in the lanes of one assignment. `wanted` is a condition of the lane alone: elements read one
    by one are zero where it fails."""
    helpers = LaneHelpers(scope.vectors, lane.width, scope.kernel.vector_bytes)
    return VectorPrinter(_Lanes(scope, lane, helpers, wanted), helpers, lane.width, lane.var, {})


@dataclass(frozen=True)
class _Lanes:
    scope: FunctionScope
    lane: Lane
    helpers: LaneHelpers
    wanted: Bool = TRUE

    def in_memory(self, name: str) -> bool:
        return name not in self.scope.registers

    def there(self, read: Read) -> bool:
        shape = self.scope.kernel.buffers[read.tensor].shape
        return inside(read.index, shape, self.scope.ranges)

    def within(self, index: Int, limit: int) -> bool:
        return inside((index,), (limit,), self.scope.ranges)

    def from_index(self, index: Int, dtype: DType) -> str:
        offsets = classify((index,), (1,), self.lane).offsets
        if offsets is None:
            raise NotVector
        (first,) = at_lane((index,), self.lane.var)
        start = self.scope.values.value(FromIndex(first, dtype))
        steps = [literal(wrap_int(offset, dtype), dtype) for offset in offsets]
        return self.helpers.moved(dtype, start, steps)

    def uniform(self, value: Value, count: Int | None) -> str:
        text = self.scope.values.value(value)
        some = TRUE if count is None else known(count > 0, self.scope.ranges)
        return text if some == TRUE else f"{self.choice(some)} ? {text} : 0"

    def choice(self, condition: Bool) -> str:
        return self.scope.index.choice(condition)

    def formula(self, function: str) -> str | None:
        return self.scope.formulas.vector(function, self.helpers)

    def widening(self, dtype: DType) -> str:
        return self.scope.formulas.widening(dtype, self.helpers)

    def narrowing(self, dtype: DType) -> str:
        return self.scope.formulas.narrowing(dtype, self.helpers)

    def mask(self, condition: Bool, bits: int) -> tuple[str, Int | None]:
        width, var = self.lane.width, self.lane.var
        if free_vars(condition) == {var}:
            lanes = lane_truth(condition, var, width)
            count = lanes.index(False) if False in lanes else width
            below = Const(count) if not any(lanes[count:]) else None
            return self.helpers.constant_mask(lanes, bits), below
        valid = split_valid(condition, var)
        if valid.guard == TRUE and valid.rest == TRUE and valid.count is not None:
            return self.helpers.first(self.scope.index.number(valid.count), bits), valid.count
        return self._mask(condition, bits), None

    def _mask(self, condition: Bool, bits: int) -> str:
        """A condition in each lane, by its comparisons."""
        if free_vars(condition) == {self.lane.var}:
            return self.helpers.constant_mask(lane_truth(condition, self.lane.var, self.lane.width), bits)
        if self.lane.var not in free_vars(condition):
            return self.helpers.all_or_none(self.choice(condition), bits)
        match condition:
            case And(parts) | Or(parts):
                sign = " & " if isinstance(condition, And) else " | "
                return f"({sign.join(self._mask(part, bits) for part in parts)})"
            case Not(part):
                return f"(~{self._mask(part, bits)})"
            case Compare(op, left, right):
                offsets = classify((left - right,), (1,), self.lane).offsets
                if offsets is None:
                    raise NotVector
                (first,) = at_lane((right - left,), self.lane.var)
                return self.helpers.compared(offsets, op, self.scope.index.number(first), bits)
        raise NotVector

    def read(self, read: Read, count: Int | None) -> str:
        scope, lane = self.scope, self.lane
        if not is_plain(read.index):
            raise NotVector
        if not self.in_memory(read.tensor):
            if self.wanted != TRUE:
                raise NotVector
            return self._from_registers(read)
        register = self.helpers.register(read.dtype)
        access = classify(read.index, scope.kernel.buffers[read.tensor].shape, lane)
        first = at_lane(read.index, lane.var)
        at = f"&{scope.element(read.tensor, first)}"
        if self.wanted != TRUE and access.kind in ("contiguous", "group"):
            raise NotVector
        if access.kind == "contiguous":
            if count is None:
                return f"{scope.vectors.load(register)}({at})"
            bound = scope.index.number(minimum(count, lane.width) if isinstance(count, Const) else count)
            return f"{scope.vectors.load_first(register)}({at}, {bound})"
        if count is not None or access.offsets is None:
            raise NotVector
        if access.kind == "group" and (function := scope.vectors.repeat(register, access.size)):
            return f"{function}({at})"
        elements = [at_lane(read.index, lane.var, e) for e in range(lane.width)]
        there = lane_truth(self.wanted, lane.var, lane.width)
        if not any(there):
            raise NotVector
        if all(there) and (function := scope.vectors.pick(register, access.offsets, scope.kernel.vector_bytes)):
            nearest = access.offsets.index(min(access.offsets))
            return f"{function}(&{scope.element(read.tensor, elements[nearest])})"
        texts = [scope.element(read.tensor, element) for element in _repeated(elements, there)]
        text = f"({self.helpers.vector(read.dtype)}){{{', '.join(texts)}}}"
        if all(there):
            return text
        mask = self.helpers.constant_mask(there, 8 * read.dtype.bytes)
        return self.helpers.select(read.dtype, mask, text, f"({self.helpers.vector(read.dtype)}){{0}}")

    def maskable(self, read: Read) -> bool:
        if not is_plain(read.index) or self.wanted != TRUE:
            return False
        return classify(read.index, self.scope.kernel.buffers[read.tensor].shape, self.lane).kind == "contiguous"

    def read_where(self, read: Read, mask: str, count: Int | None) -> str:
        if not is_plain(read.index):
            raise NotVector
        scope, register = self.scope, self.helpers.register(read.dtype)
        if count is not None:
            mask = f"({mask}) & {self.helpers.first(scope.index.number(count), 8 * read.dtype.bytes)}"
        offset = scope.flat(read.tensor, at_lane(read.index, self.lane.var))
        return f"{scope.vectors.load_where(register)}({scope.names(read.tensor)}, {offset}, {mask})"

    def _from_registers(self, read: Read) -> str:
        """Elements of one register at subscripts of the lane alone."""
        scope, var, width = self.scope, self.lane.var, self.lane.width
        register = scope.registers[read.tensor]
        *outer, last = plain(read.tensor, read.index)
        if register.style != "vector" or free_vars(last) != {var} or register.elements < width:
            raise NotVector
        scope.vectors.vector(register)
        text = register.cast_to_vector(scope.register(read.tensor, tuple(outer)))
        elements = [int(evaluate(last, {var: e})) for e in range(width)]
        if elements == list(range(register.elements)):
            return text
        return f"__builtin_shufflevector({text}, {text}, {', '.join(map(str, elements))})"


@workarounds.REPEATED_ELEMENT
def _repeated(elements: list[tuple[Int, ...]], there: list[bool]) -> list[tuple[Int, ...]]:
    """The elements, and in place of one that is not `there` the last before it that is, or else the first."""
    last, found = elements[there.index(True)], []
    for element, wanted in zip(elements, there, strict=True):
        last = element if wanted else last
        found.append(last)
    return found
