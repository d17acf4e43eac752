"""The program rebuilt around a restated term: converted elements and compensation sums before the stage that uses them.

    A_u8[i, p] = u8(A[i, p]) ^ 128                   a stage of its own, over the whole tensor
    B_sum[j] = 0; B_sum[j] += s32(B[p, j])           one for each sum that the restated term needs
    C[i, j] = 0 - 128 * B_sum[j]                     the initial value takes the compensation up
    C[i, j] += s32(A_u8[i, p]) * s32(B[p, j])

Where the product cannot be added to the program's own accumulator (a factor, another dtype, no initial value), it is
summed in a tensor of its own and joined to the target right behind the reduction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from autosched.ir.nodes import Assign, Axis, Guard, Stage, Statement, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.nesting import under
from autosched.ir.value import Arith, Literal, Read, Value, converted, is_value, reads, substitute
from autosched.logic import Bool, Const, Int, Var, free_vars, interval
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tensorize.adapters.integers.factor import AdaptedFactor
from autosched.tensorize.adapters.integers.polynomial import Polynomial
from autosched.tensorize.adapters.integers.restate import Restated, scaled, total
from autosched.tensorize.adapters.proposal import NoPlace
from autosched.tensorize.adapters.site import Site, holds, nest
from autosched.tensorize.addresses.axes import value_axes
from autosched.tensorize.reduction.update import Update


def rebuild(program: Program, stage: Stage, update: Update, restated: Restated) -> tuple[Program, Assign]:
    """The program with `stage` restated, and the assignment that the instruction computes now. Raises NoPlace.

    `stage` is the program's own; `update` its normal form, whose guards may be more than the stage's.
    """
    return _Rebuild(program, stage, update, restated).run()


@dataclass
class _Rebuild:
    program: Program
    stage: Stage
    update: Update
    restated: Restated

    def run(self) -> tuple[Program, Assign]:
        if any(is_value(g) for g in self.update.guards):
            raise NoPlace("a guard depends on data")
        if any(is_value(i) for i in self.update.target.index):
            raise NoPlace("the target is addressed by data")
        self.site = Site(self.program, self.stage, self.update)
        self.ranges: dict[str, tuple[int, int]] = dict(self.program.symbolic)
        for a in self.update.axes:
            low, high = interval(a.lower, self.ranges)[0], interval(a.upper, self.ranges)[1] - 1
            self.ranges[a.name] = low, max(low, high)
        top = self.site.top
        left, right = (self.element(f) for f in self.restated.factors)
        product = Arith("*", left, right, self.restated.wide)
        rest = self.compensation()
        if self.stage.init is not None:
            new, core = self.in_place(top, product, rest)
        else:
            new, core = self.apart(top, product, rest)
        return self.site.with_statement(new), core

    # -- what comes before ------------------------------------------------------------------------------------------

    def element(self, factor: AdaptedFactor) -> Value:
        """The factor as the new stage reads it, widened; a converted tensor is made for one of another type."""
        wide = self.restated.wide
        if not factor.converted:
            return converted(factor.read, wide)
        name = f"{factor.read.tensor}_{factor.dtype}"
        held = self.site.converted(factor.read, factor.dtype, lambda r: replace(factor, read=r).value(), name)
        return converted(held, wide)

    def compensation(self) -> Polynomial:
        """`rest` summed over the reduction: what moves along it replaced by its sum, the others times the points."""
        reduced = {a.name for a in self.update.axes_reduced}
        found: Polynomial = {}
        sums: dict[Value, Read] = {}  # by the summed term
        for monomial, coefficient in self.restated.rest.items():
            moving = [a for a in monomial if value_axes(a) & reduced]
            atoms = [a for a in monomial if a not in moving]
            count = None if moving else self.points()
            if count is not None:
                coefficient *= count
            else:
                term = scaled(moving[0], 1, tuple(moving[1:])) if moving else Literal(1, self.restated.dtype)
                if term not in sums:
                    sums[term] = self.sum_of(term)
                atoms.append(sums[term])
            found[tuple(atoms)] = found.get(tuple(atoms), 0) + coefficient
        modulus = 1 << self.restated.dtype.bits
        return {m: c for m, c in found.items() if c % modulus}

    def points(self) -> int | None:
        """How many terms every element sums, where that is one known number."""
        count = 1
        for axis in self.update.axes_reduced:
            if not (isinstance(axis.lower, Const) and isinstance(axis.upper, Const)):
                return None
            count *= axis.extent
        return None if self.update.guards else count

    def sum_of(self, atom: Value) -> Read:
        """A tensor with the sum of `atom` over the stage's points, for each value of the spatial axes that it has."""
        dtype = self.restated.dtype
        reduction = list(self.update.axes_reduced)
        used = set(value_axes(atom)) | {n for g in self.update.guards if isinstance(g, Bool) for n in free_vars(g)}
        needed = [a for a in self.update.axes if a in reduction]
        for axis in reversed(self.update.axes):  # bounds may depend on outer axes
            if axis.name in used or axis in needed:
                used |= free_vars(axis.lower) | free_vars(axis.upper)
        spatial = [a for a in self.update.axes if a not in reduction and a.name in used]
        if any(self.ranges[a.name][0] < 0 for a in spatial) or _bounded(spatial, reduction):
            raise NoPlace("a compensation sum has no rectangular place")
        tensor = next((r.tensor for r in reads(atom)), "points")
        name = self.site.fresh(f"{tensor}_sum")
        sizes = set(self.program.symbolic)
        shape = tuple(
            a.upper if free_vars(a.upper) <= sizes else Const(self.ranges[a.name][1] + 1) for a in spatial
        ) or (Const(1),)
        self.site.tensors[name] = Tensor(name, dtype, shape, intermediate=True)
        renamed: dict[str, Int] = {}
        outer = [self.renamed(a, renamed) for a in spatial]
        inner = [self.renamed(a, renamed) for a in reduction]
        index = tuple(renamed[a.name] for a in spatial) or (Const(0),)
        add: Statement = Assign(name, index, "+=", substitute(atom, renamed))
        for guard in reversed(self.update.guards):
            assert isinstance(guard, Bool)
            add = Guard(substitute_bool(guard, renamed), (add,))
        body = (Assign(name, index, "=", Literal(0, dtype)), nest(inner, (add,)))
        self.site.before += [nest(outer, body)] if outer else list(body)
        return Read(name, tuple(Var(a.name) for a in spatial) or (Const(0),), dtype)

    def renamed(self, axis: Axis, renamed: dict[str, Int]) -> Axis:
        name = self.site.fresh(f"{axis.name}2")
        new = Axis(name, substitute_int(axis.lower, renamed), substitute_int(axis.upper, renamed))
        renamed[axis.name] = Var(name)
        return new

    # -- the stage itself -------------------------------------------------------------------------------------------

    def in_place(self, top: Statement, product: Value, rest: Polynomial) -> tuple[Statement, Assign]:
        """The stage where it stands: its initial value is known, so the element is finished when its loops are."""
        init, old, target = self.stage.init, self.stage.assign, self.update.target
        assert init is not None
        plain = self.restated.plain
        if plain:
            first: Assign = Assign(target.tensor, target.index, "=", total(init, rest))
            core = Assign(target.tensor, target.index, "+=", product, old.location)
            last = None
        else:
            held = self.accumulator()
            first = Assign(held.tensor, held.index, "=", Literal(0, held.dtype))
            core = Assign(held.tensor, held.index, "+=", product, old.location)
            last = Assign(target.tensor, target.index, "=", total(self.joined(init, held), rest))
        extra = tuple(g for g in self.update.guards if g not in self.stage.guards)

        def visit(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
            result: list[Statement] = []
            open_ = False
            for stmt in body:
                if isinstance(stmt, Assign) and stmt.value is init and stmt.tensor == target.tensor and stmt.op == "=":
                    result.append(first)
                    open_ = True
                elif stmt is old:
                    result.append(under(extra, core))
                elif isinstance(stmt, Assign):
                    result.append(stmt)
                else:
                    within = holds(stmt, old)
                    if within and open_ and any(_touches(a, target.tensor) for a in assigns(stmt) if a is not old):
                        raise NoPlace("another statement of the reduction uses the sum")
                    result.append(replace(stmt, body=visit(stmt.body)))
                    if within and open_ and last is not None:
                        result.append(last)
                    open_ = open_ and not within
            return tuple(result)

        (new,) = visit((top,)) if not isinstance(top, Assign) else (top,)
        if not any(a is core for a in assigns(new)) or not any(a is first for a in assigns(new)):
            raise NoPlace("the initial value stands apart from the reduction")
        return new, core

    def apart(self, top: Statement, product: Value, rest: Polynomial) -> tuple[Statement, Assign]:
        """A live accumulator: the product is summed on its own, then joined, in loops of the stage alone."""
        if len(list(assigns(top))) != 1:
            raise NoPlace("the loops of a live accumulator hold other statements")
        spatial = [a for a in self.update.axes if a not in self.update.axes_reduced]
        reduction = list(self.update.axes_reduced)
        if _bounded(spatial, reduction):
            raise NoPlace("the reduction is not innermost")
        target, old = self.update.target, self.stage.assign
        extents = self.program.tensors[target.tensor].shape
        for part, size in zip(target.index, extents, strict=True):  # no guard of the reduction may be needed for this
            assert isinstance(part, Int)
            low, high = interval(part, self.ranges)
            if low < 0 or not isinstance(size, Const) or high >= size.value:
                raise NoPlace("only a guard keeps the target inside its tensor")
        held = self.accumulator()
        core = Assign(held.tensor, held.index, "+=", product, old.location)
        add = nest(reduction, (under(self.update.guards, core),))
        last = Assign(target.tensor, target.index, "+=", self.joined_sum(held, rest))
        body = (Assign(held.tensor, held.index, "=", Literal(0, held.dtype)), add, last)
        return nest(spatial, body), core

    def accumulator(self) -> Read:
        target = self.program.tensors[self.update.target.tensor]
        name = self.site.fresh(f"{target.name}_dot")
        self.site.tensors[name] = Tensor(name, self.restated.wide, target.shape, intermediate=True)
        return Read(name, self.update.target.index, self.restated.wide)

    def joined(self, start: Value, held: Read) -> Value:
        """`start` plus the product's sum, in the program's dtype."""
        restated = self.restated
        value: Value = converted(held, restated.dtype)
        minus = restated.coefficient == -1
        value = scaled(value, 1 if minus else restated.coefficient, restated.invariants)
        if isinstance(start, Literal) and start.value == 0 and not minus:
            return value
        return Arith("-" if minus else "+", start, value, restated.dtype)

    def joined_sum(self, held: Read, rest: Polynomial) -> Value:
        value = scaled(converted(held, self.restated.dtype), self.restated.coefficient, self.restated.invariants)
        return total(value, rest)


def _bounded(spatial: list[Axis], reduction: list[Axis]) -> bool:
    """Whether a spatial axis's bounds move with a reduction axis, so that it cannot stand outside it."""
    names = {a.name for a in reduction}
    return any((free_vars(a.lower) | free_vars(a.upper)) & names for a in spatial)


def _touches(assign: Assign, tensor: str) -> bool:
    return assign.tensor == tensor or any(r.tensor == tensor for r in reads(assign.value))
