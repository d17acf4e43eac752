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
from autosched.ir.rewrites.online.fused import UPDATE, Pass, Places
from autosched.ir.rewrites.online.states import MemberStates, factor_of
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.value import Arith, Comparison, Read, Select, Value
from autosched.logic import Const, Int, Var, ceil_div, maximum, minimum
from autosched.logic.walk import substitute_int


@dataclass
class InParts(Pass):
    """Builds the pass over each of `parts` parts, and the merge."""

    parts: int = 2
    part: str | None = None

    def row(self, to: Places) -> tuple[Statement, ...]:
        self.part = self.unlike_axes("part")
        moving, inside = self.carry(to | {self.part: Var(self.part)})
        loop = Loop(Axis(self.part, Const(0), Const(self.parts)), tuple(inside))
        part, self.part = self.part, None
        merged = {id(s): self.merged(c) for c in self.skipped.members for s in c.states}
        body: list[Statement] = [loop]
        so_far: dict[Read, Read] = {}
        for carried in self.skipped.members:
            target = carried.member.target
            for state in carried.states:
                into, kept = merged[id(state)], moving.states[id(state)]
                start = carried.member.init if carried.exact else self.start(carried)
                term: Value = kept
                if state.carried.terms:
                    factor = factor_of(state, moving.running, so_far, state.term.dtype)
                    term = Arith("*", kept, factor, state.term.dtype)
                if state.extreme is not None:
                    greatest = Comparison("==", moving.running[state.extreme], state.extreme)
                    term = Select(greatest, kept, carried.member.init, kept.dtype)
                body += self.each(carried, to, partial(self.put, into, "=", start))
                update = partial(self.put, into, UPDATE[carried.member.op], term)
                body += self.nest((*carried.member.extra, Axis(part, Const(0), Const(self.parts))), to, _one(update))
            if target in moving.running:
                so_far[target] = self.like(target, "merged") if self.may_be_infinite(target) else target
                if so_far[target] != target:
                    body.append(self.put(so_far[target], "=", self.finite(target, target), to))
        return (*body, *self.results(merged, to))

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
        self.tensors[made.tensor] = replace(tensor, shape=(*tensor.shape, Const(self.parts)))
        return replace(made, index=(*made.index, Var(self.part)))

    def span(self, to: Places) -> tuple[Int, Int]:
        """The bounds of one part. Parts are equal and hold whole blocks; masks bound what of them is left."""
        lower, upper = super().span(to)
        if self.part is None:
            return lower, upper
        whole = self.cascade.axes[0]
        start, end = substitute_int(whole.lower, to), substitute_int(whole.upper, to)
        if not isinstance(end - start, Const):
            raise NotRewritten("UNSUPPORTED", f"the length of {whole.name} is not known, so it has no equal parts", "")
        length = ceil_div(ceil_div(end - start, self.parts), self.block) * self.block
        first = substitute_int(Var(self.part), to) * length + start
        return maximum(first, lower) if lower != start else first, minimum(first + length, upper)


def _one(make: Callable[[Places], Statement]) -> Callable[[Places], tuple[Statement, ...]]:
    return lambda places: (make(places),)
