"""Integer expressions and conditions that depend on the lane: vectors of i64, masks of i1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autosched.codegen import workarounds
from autosched.codegen.analysis.lane_conditions import lane_truth
from autosched.codegen.llvm.accesses.indexing import COMPARES, Indexing, Linear, fixed
from autosched.codegen.llvm.types import splat_text, vector_text
from autosched.codegen.tree.kernel import Lane
from autosched.logic import And, Binary, Bool, Compare, Const, Int, Not, Or, Where, affine, evaluate, free_vars
from autosched.logic.walk import substitute_bool


@workarounds.CLEAN_WIDTH
def clean_width(lanes: int) -> int:
    """The least element width whose compare fills a vector register of 128 bits."""
    return max(8, 128 // lanes)


@dataclass(frozen=True, slots=True)
class Lanes:
    """A vector of i1, one for each lane."""

    name: str


def constant_mask(truth: list[bool]) -> bool | Lanes:
    """Known truth values, one answer where all lanes have the same."""
    return truth[0] if len(set(truth)) == 1 else Lanes(vector_text("i1", [str(t).lower() for t in truth]))


class LaneIndexing(Indexing):
    """Adds the lane: what `Indexing` says of one number, for every lane of a vector."""

    def at_lane(self, node: Int, lane: Lane | None) -> Linear:
        """`node` in the first lane."""
        if lane is None:
            return self.linear(node)
        self.env[lane.var] = fixed(0)
        result = self.linear(node)
        del self.env[lane.var]
        return result

    def mask(self, node: Bool, lane: Lane | None, bits: int = 32) -> bool | str | Lanes:
        """A condition in every lane: decided, one i1 for all lanes, or `Lanes` of i1.

        `bits` is the width of the elements that it will guard: comparing in that width spares conversions.
        """
        if lane is None or lane.var not in free_vars(node):
            return self.condition(node)
        if (known := self._known(node, lane)) is not None:  # as a whole, so that the store sees which lanes it keeps
            return constant_mask(lane_truth(known, lane.var, lane.width))
        match node:
            case And(parts) | Or(parts):
                op = "and" if isinstance(node, And) else "or"
                return self._join_masks(op, [self.mask(p, lane, bits) for p in parts], lane.width)
            case Not(part):
                inner = self.mask(part, lane, bits)
                if isinstance(inner, bool):
                    return not inner
                if isinstance(inner, str):
                    return self.out.pure(text := f"xor i1 {inner}, true", self.out.depth_of(inner), text, "c")
                kind = f"<{lane.width} x i1>"
                text = f"xor {kind} {inner.name}, {splat_text('i1', 'true', lane.width)}"
                return Lanes(self.out.pure(text, self.out.depth_of(inner.name), text, "m"))
            case Compare(op, a, b):
                return self._compare_lanes(op, a, b, lane, bits)
        raise AssertionError(f"not a condition: {node!r}")

    def _known(self, node: Bool, lane: Lane) -> Bool | None:
        """A condition on the lane alone, with numbers for the variables that have one here; None where others move."""
        others = free_vars(node) - {lane.var}
        if any(self.env[name].terms for name in others):
            return None
        return substitute_bool(node, {name: Const(self.env[name].constant) for name in others}) if others else node

    def _compare_lanes(self, op: str, a: Int, b: Int, lane: Lane, bits: int) -> bool | Lanes:
        n = lane.width
        difference = a - b
        if free_vars(difference) <= {lane.var}:
            return constant_mask(lane_truth(Compare(op, difference, Const(0)), lane.var, n))
        form = affine(difference)
        slope = form.coefficient(lane.var) if form is not None else 0
        if slope in (1, -1) and op not in ("==", "!="):
            base = self.at_lane(difference, lane)
            if slope == -1:  # base - lane op 0, the other way round
                base, op = base.times(-1), {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
            # lane + base < 0  <=>  lane < limit
            limit = base.times(-1).plus(Linear(1)) if op in ("<=", ">") else base.times(-1)
            return self._prefix(limit, n, bits, op in ("<", "<="))
        vector = self.lanes(difference, lane)
        text = f"icmp {COMPARES[op]} <{n} x i64> {vector}, zeroinitializer"
        return Lanes(self.out.pure(text, self.out.depth_of(vector), text, "m"))

    def _prefix(self, limit: Linear, n: int, bits: int, below: bool) -> bool | Lanes:
        """Lanes before (or, not `below`, from) `limit`."""
        bounds = self.range_of(limit)
        if bounds is not None and (bounds[0] >= n or bounds[1] <= 0):
            return (bounds[0] >= n) == below
        width = next(w for w in (8, 16, 32, 64) if w >= min(max(bits, clean_width(n)), 64) and n < 1 << (w - 1))
        kind, most = f"<{n} x i{width}>", 1 << (width - 1)
        moving = Linear(0, limit.terms)
        reached = self.range_of(moving)
        first, last = -limit.constant, n - 1 - limit.constant
        if reached is not None and min(reached[0], first) >= -most and max(reached[1], last) < most:
            # Lanes less the constant part: limits that differ in it alone, of unrolled vectors, are one register.
            wide = self._splat(self._truncated(self.operand(moving), width), f"i{width}", n)
            steps = vector_text(f"i{width}", [str(first + e) for e in range(n)])
            text = f"icmp {'slt' if below else 'sge'} {kind} {steps}, {wide}"
            return Lanes(self.out.pure(text, self.out.depth_of(wide), text, "m"))
        clamped = self._extreme("min", self._extreme("max", limit, Linear(0)), Linear(n))
        wide = self._splat(self._truncated(self.operand(clamped), width), f"i{width}", n)
        steps = vector_text(f"i{width}", [str(e) for e in range(n)])
        text = f"icmp {'ult' if below else 'uge'} {kind} {steps}, {wide}"
        return Lanes(self.out.pure(text, self.out.depth_of(wide), text, "m"))

    def _truncated(self, count: str, width: int) -> str:
        """The low bits of an i64."""
        if width == 64 or not count.startswith("%"):
            return count
        return self.out.pure(text := f"trunc i64 {count} to i{width}", self.out.depth_of(count), text)

    def _join_masks(self, op: str, parts: list[bool | str | Lanes], n: int) -> bool | str | Lanes:
        if not any(isinstance(p, Lanes) for p in parts):
            return self._join(op, parts)  # type: ignore[arg-type]
        known = [p for p in parts if isinstance(p, Lanes) and p.name.startswith("<")]
        if len(known) > 1:  # constants are joined here, so that a store sees which lanes it keeps
            columns = zip(*([x.split()[-1] for x in p.name.strip("<>").split(",")] for p in known), strict=True)
            truth = [(all if op == "and" else any)(x == "true" for x in column) for column in columns]
            return self._join_masks(op, [constant_mask(truth), *(p for p in parts if p not in known)], n)
        if len(parts) == 1:
            return parts[0]
        wide = [p if isinstance(p, bool) else self.as_mask(p, n) for p in parts]
        joined = self._join(op, wide, n)
        return joined if isinstance(joined, bool) else Lanes(joined)

    def as_mask(self, part: str | Lanes, n: int) -> str:
        """An i1 vector of a condition."""
        return part.name if isinstance(part, Lanes) else self._splat(part, "i1", n)

    def lanes(self, node: Int, lane: Lane) -> str:
        """`node` in every lane, a vector of i64."""
        n, kind = lane.width, f"<{lane.width} x i64>"
        names = free_vars(node)
        if lane.var not in names:
            return self._splat(self.operand(self.linear(node)), "i64", n)
        if names == {lane.var}:
            return vector_text("i64", [str(int(evaluate(node, {lane.var: e}))) for e in range(n)])
        form = affine(node)
        if form is not None:
            base = self._splat(self.operand(self.at_lane(node, lane)), "i64", n)
            steps = vector_text("i64", [str(form.coefficient(lane.var) * e) for e in range(n)])
            return self._pure(f"add {kind} {base}, {steps}", base)
        match node:
            case Binary("//" | "%" as op, a, b):
                x, y = self.lanes(a, lane), self.lanes(b, lane)
                return floor_divide_lanes(op, x, y, kind, b, lambda text: self._pure(text, x, y))
            case Binary("min" | "max" as op, a, b):
                x, y = self.lanes(a, lane), self.lanes(b, lane)
                name = self.out.declarations.need(kind, f"llvm.s{op}.v{n}i64", kind, kind)
                return self._pure(f"call {kind} {name}({kind} {x}, {kind} {y})", x, y)
            case Binary(op, a, b):
                x, y = self.lanes(a, lane), self.lanes(b, lane)
                return self._pure(f"{ {'+': 'add', '-': 'sub', '*': 'mul'}[op] } {kind} {x}, {y}", x, y)
            case Where(condition, a, b):
                chosen = self.mask(condition, lane, 64)
                if isinstance(chosen, bool):
                    return self.lanes(a if chosen else b, lane)
                x, y, m = self.lanes(a, lane), self.lanes(b, lane), self.as_mask(chosen, n)
                return self._pure(f"select <{n} x i1> {m}, {kind} {x}, {kind} {y}", x, y, m)
        raise AssertionError(f"not an integer expression: {node!r}")

    def _pure(self, text: str, *operands: str) -> str:
        return self.out.pure(text, self.out.depth_of(*operands), text, "v")

    def _splat(self, name: str, element: str, n: int) -> str:
        if not name.startswith("%"):
            return splat_text(element, name, n)
        depth, kind = self.out.depth_of(name), f"<{n} x {element}>"
        first = self.out.pure(text := f"insertelement {kind} poison, {element} {name}, i64 0", depth, text, "v")
        text = f"shufflevector {kind} {first}, {kind} poison, <{n} x i32> zeroinitializer"
        return self.out.pure(text, depth, text, "v")


def floor_divide_lanes(op: str, x: str, y: str, kind: str, divisor: Int, let: Callable[[str], str]) -> str:
    """Floor division or remainder of i64 vectors; `let` prints an instruction and names it."""
    if isinstance(divisor, Const) and divisor.value > 0 and divisor.value & (divisor.value - 1) == 0:
        lanes = int(kind[1:].split()[0])
        if op == "%":
            return let(f"and {kind} {x}, {splat_text('i64', str(divisor.value - 1), lanes)}")
        return let(f"ashr {kind} {x}, {splat_text('i64', str(divisor.value.bit_length() - 1), lanes)}")
    mask = f"<{kind[1:].split()[0]} x i1>"
    remainder = let(f"srem {kind} {x}, {y}")
    mixed = let(f"xor {kind} {remainder}, {y}")
    opposite = let(f"icmp slt {kind} {mixed}, zeroinitializer")
    inexact = let(f"icmp ne {kind} {remainder}, zeroinitializer")
    below = let(f"and {mask} {opposite}, {inexact}")
    if op == "%":
        lifted = let(f"add {kind} {remainder}, {y}")
        return let(f"select {mask} {below}, {kind} {lifted}, {kind} {remainder}")
    toward = let(f"sdiv {kind} {x}, {y}")
    borrow = let(f"sext {mask} {below} to {kind}")
    return let(f"add {kind} {toward}, {borrow}")
