"""`InParts`: the axis in parts that know nothing of each other, and the merge of their states.

    for part: M_part, Z_part as in one pass          any order, any thread, any machine
    M = max(M, M_part …)
    Z = Σ Z_part * exp(M_part - M)                   the lemma `merge`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Axis, Loop, Statement
from autosched.ir.rewrites.algebra.sums import RealSum
from autosched.ir.rewrites.online.fused import UPDATE, Make, Moving, Pass, Places
from autosched.ir.rewrites.online.states import CarriedState, MemberStates, factor_of
from autosched.ir.rewrites.online.tiled import Tiled
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.value import Arith, Comparison, Read, Select, Value
from autosched.logic import Const, Int, Var, maximum, minimum
from autosched.logic.walk import substitute_int


@dataclass
class InParts(Pass):
    """Builds the pass over each of `parts` parts, and the merge in loops of its own behind all of them."""

    parts: int = 2
    part: str | None = None
    length: int = 0
    moving: Moving | None = None

    def statements(self) -> tuple[Statement, ...]:
        self.length = self.of_part()
        return self.over_rows(self.apart, self.merge)

    def of_part(self) -> int:
        """Elements of a part: whole blocks, so that the last parts may be shorter."""
        whole = self.cascade.axes[0]
        if not isinstance(whole.upper - whole.lower, Const):
            raise NotRewritten("UNSUPPORTED", f"the length of {whole.name} is not known, so it has no equal parts", "")
        return -(-self.total_length // (self.parts * self.block)) * self.block

    @property
    def total_length(self) -> int:
        length = self.cascade.axes[0].upper - self.cascade.axes[0].lower
        assert isinstance(length, Const)
        return length.value

    @property
    def equal(self) -> bool:
        """Whether every row has the whole of every part."""
        return self.unmasked and self.length * self.parts == self.total_length

    @property
    def unmasked(self) -> bool:
        """Whether every row has all of the axis."""
        whole, own = self.cascade.axes[0], self.skipped.reach
        return (whole.lower, whole.upper) == (own.lower, own.upper)

    @property
    def cut(self) -> bool:
        """Whether a mask cuts blocks of some row."""
        return not self.unmasked and self.skipped.cuts_blocks

    def apart(self, to: Places) -> tuple[Statement, ...]:
        """One row: each part by itself."""
        self.part = self.unlike_axes("part")
        self.moving, inside = self.carry(to | {self.part: Var(self.part)})
        return (Loop(self.each_part(self.part), tuple(inside)),)

    def each_part(self, name: str) -> Axis:
        return Axis(name, Const(0), Const(self.parts))

    def merge(self, to: Places) -> tuple[Statement, ...]:
        """One row: the parts' states merged, and what follows from them."""
        moving, part, self.part = self.moving, self.part, None
        assert moving is not None
        assert part is not None
        merged = {id(s): self.merged(c) for c in self.skipped.members for s in c.states}
        body: list[Statement] = []
        so_far: dict[Read, Read] = {}
        weights: dict[RealSum, Read] = {}
        for carried in self.skipped.members:
            target = carried.member.target
            for state in carried.states:
                into, kept = merged[id(state)], moving.states[id(state)]
                start = carried.member.init if carried.exact else self.start(carried)
                term: Value = kept
                if state.carried.terms:
                    if state.carried not in weights:
                        weights[state.carried] = self.weight(state, part)
                        value = factor_of(state, moving.running, so_far, state.term.dtype)
                        each = _one(partial(self.put, weights[state.carried], "=", value))
                        body += self.inside(to, partial(self.nest, (self.each_part(part),), make=each))
                    term = Arith("*", kept, weights[state.carried], state.term.dtype)
                if state.extreme is not None:
                    greatest = Comparison("==", moving.running[state.extreme], state.extreme)
                    term = Select(greatest, kept, carried.member.init, kept.dtype)
                update = _one(partial(self.put, into, UPDATE[carried.member.op], term))
                all_parts = partial(self.nest, (self.each_part(part),), make=update)
                body += self.elements(carried, _behind(partial(self.put, into, "=", start), all_parts), to)
            if target in moving.running:
                so_far[target] = self.like(target, "merged") if self.may_be_infinite(target) else target
                if so_far[target] != target:
                    body += self.one(so_far[target], "=", self.finite(target, target), to)
        return (*body, *self.results(merged, to))

    def weight(self, state: CarriedState, part: str) -> Read:
        """What a part's state is multiplied by, for each part."""
        self.part = part
        made = self.like(min(state.references, key=str), "weight", state.term.dtype)
        self.part = None
        return made

    def unlike_axes(self, like: str) -> str:
        """A free name that no axis of the cascade has: what stands for these here is told by their names."""
        extra = (a for c in self.skipped.members for a in c.member.extra)
        axes = {a.name for a in (*self.cascade.rows, *self.cascade.axes, *extra)}
        return next(n for n in iter(lambda: self.names(like), None) if n not in axes)

    def merged(self, carried: MemberStates) -> Read:
        """Where a state is once it is merged."""
        return super().state(carried)

    def state(self, carried: MemberStates) -> Read:
        """Where a part keeps a state."""
        return self.like(carried.member.target, "part", carried.member.term.dtype)

    def is_done(self, carried: MemberStates) -> bool:
        """A sum of parts may overflow where the program's does not."""
        return carried.exact and (carried.member.op != "+" or not carried.member.term.dtype.is_float)

    def start(self, carried: MemberStates) -> Value:
        anew = any(s.extreme is not None for s in carried.states)
        return carried.member.init if anew else self.neutral(carried)

    def like(self, read: Read, what: str, dtype: DType | None = None) -> Read:
        """A new intermediate of the shape of another tensor; inside a part, one for each part."""
        made = super().like(read, what, dtype)
        if self.part is None:
            return made
        tensor = self.tensors[made.tensor]
        self.tensors[made.tensor] = replace(tensor, shape=(Const(self.parts), *tensor.shape))
        return replace(made, index=(Var(self.part), *made.index))

    def span(self, to: Places) -> tuple[Int, Int]:
        """The bounds of one part. Parts are equal and hold whole blocks; masks bound what of them is left."""
        lower, upper = super().span(to)
        if self.part is None:
            return lower, upper
        start = substitute_int(self.cascade.axes[0].lower, to)
        first = substitute_int(Var(self.part), to) * self.length + start
        last = first + self.length
        return maximum(first, lower) if lower != start else first, last if self.equal else minimum(last, upper)

    def bounds(self, to: Places) -> tuple[Int, Int]:
        """Without masks only the end of the axis cuts blocks."""
        return self.span(to) if self.cut else super().bounds(to)

    def begins_inside(self, start: Int, lower: Int) -> bool:
        return not self.cut or super().begins_inside(start, lower)

    def whole_blocks(self, start: Int, upper: Int) -> bool:
        return (not self.cut and self.total_length % self.block == 0) or super().whole_blocks(start, upper)


@dataclass
class InTiledParts(InParts, Tiled):
    """Builds the pass over each part for tiles of rows. Blocks are counted along the whole axis, or where all parts are
    equal along each part."""

    def statements(self) -> tuple[Statement, ...]:
        return InParts.statements(self)  # blocks of other stages are made for each part

    def of_part(self) -> int:
        length = super().of_part()
        return self.total_length // self.parts if self.unmasked and self.total_length % self.parts == 0 else length

    def carry(self, to: Places) -> tuple[Moving, list[Statement]]:
        self.sink()  # each part has blocks of its own
        return super().carry(to)

    def merge(self, to: Places) -> tuple[Statement, ...]:
        part, self.part, block, self.block = self.part, None, self.block, 1
        self.keep_blocks()  # what is computed as the program writes it is computed by elements, and shared with no part
        self.part, self.block = part, block
        return super().merge(to)

    def bounds(self, to: Places) -> tuple[Int, Int]:
        """Blocks end where parts do."""
        return Tiled.bounds(self, to)

    def stretch(self, to: Places) -> tuple[Int, int]:
        return (self.span(to)[0], self.length) if self.equal else super().stretch(to)

    def cuts_apart(self, begun: bool) -> bool:
        """A part begins where its blocks do: one whose mask cuts off its beginning takes all blocks alike."""
        return begun

    def from_block(self, first: Int, full: int) -> Int:
        return maximum(first, full)


def _one(make: Callable[[Places], Statement]) -> Make:
    return lambda places: (make(places),)


def _behind(first: Callable[[Places], Statement], make: Make) -> Make:
    return lambda places: (first(places), *make(places))
