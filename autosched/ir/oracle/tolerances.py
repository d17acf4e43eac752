"""How far a kernel may be from the oracle: elementwise tolerances by running error analysis.

A kernel may add the terms of a float sum in any order and fuse a product with its addition. With K terms, each of the
two sums is within γ_{K+1}·Σ|term| of the exact one (Higham 2002, sections 3.1 and 4.2); so they differ by at most twice
that. Everything later propagates the difference (`error_rules`). Where nothing is reassociated and no transcendental
function occurs, the tolerance is zero, and so it is for integers.

An instruction that keeps fewer bits than its accumulator has makes that bound many times larger (`slack`). For a long
sum it would exceed the sum itself, and excuse any answer; what it makes larger therefore ends at `CREDIBLE`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from autosched.ir.nodes import Axis
from autosched.ir.oracle import blas_sums as contract
from autosched.ir.oracle.error_rules import TRANSCENDENTAL, Rules, gamma, least, number, off_by, plus
from autosched.ir.oracle.evaluate import Frame, both, fetch, put
from autosched.ir.oracle.interpreter import NestRun, execute, prepare, run_unit
from autosched.ir.oracle.nests import LoopNest, Serial, Unit, accesses, plan
from autosched.ir.oracle.numerics import store
from autosched.ir.oracle.slack import NO_SLACK, Allowed, Slack
from autosched.ir.program import Program
from autosched.ir.stages import condition_reads
from autosched.ir.value import Arith, Call, Read, Value, added, is_value, walk
from autosched.logic import evaluate

CREDIBLE = 0.25
"""Of a sum, or of Σ|term|/√K (what K terms of random sign amount to) where that is more. Rounding e4m3 products toward
zero at 13 fraction bits, 32 at a time, was off by at most 0.011 of it after 4,096 random terms and 0.034 after 32,768
(256 sums each)."""


def run_with_error(
    program: Program,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, Any] | None = None,
    fused_stages: Collection[str] = frozenset(),
    slack: Slack = NO_SLACK,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The program's outputs, and for each a float64 array of tolerances of the same shape.

    `fused_stages` names stages whose float sums a kernel may reassociate and whose products it may fuse with additions;
    `slack` says how many times larger the error of such a sum may be (an instruction keeps fewer bits than its
    accumulator has), as long as it is `CREDIBLE` (where it is more than 1, conversions may round other numbers, too),
    and what elements that an instruction approximates may be off.
    Errors as `run`.
    """
    program, memory, numbers = prepare(program, arrays, scalars or {})
    fused = allowances(program, fused_stages, slack)
    errors: dict[str, Any] = {}
    if not fused and not any(_transcendental(s.assign.value) for s in program.stages):
        execute(program, memory, numbers)
    else:
        run_units(plan(program.body), Frame(memory, numbers), errors, fused)
    outputs = {n: store(memory[n], program.tensors[n].dtype) for n in program.outputs}
    zero = {n: np.zeros(program.tensors[n].extents) for n in program.outputs if n not in errors}
    return outputs, {n: zero[n] if n in zero else errors[n] for n in program.outputs}


def allowances(program: Program, fused_stages: Collection[str], slack: Slack) -> dict[int, Allowed]:
    """What may be off of the assignments of floats of which something may, by `id`."""
    found: dict[int, Allowed] = {}
    for stage in program.stages:
        if stage.assign.value.dtype.is_float:
            name, inside = stage.assign.tensor, slack.inside(program.tensors)
            share, beside = slack.share(name), slack.number(name)
            fused = stage.name in fused_stages
            if fused or share or inside or beside:
                found[id(stage.assign)] = Allowed(fused, slack.sums if fused else 1.0, share, inside, beside)
    return found


def run_units(units: Iterable[Unit], frame: Frame, errors: dict[str, Any], fused: Mapping[int, Allowed]) -> None:
    """Run units on the frame's arrays, in place, and keep what their results may be off in `errors`. `fused` are the
    assignments, by `id`, that may be off by themselves."""
    with np.errstate(all="ignore"):
        for unit in units:
            _run_unit(unit, frame, errors, fused)


def _transcendental(value: Any) -> bool:
    return any(isinstance(v, Call) and v.function in TRANSCENDENTAL for v in walk(value))


def _exact(unit: Unit, errors: Mapping[str, Any], fused: Mapping[int, Allowed]) -> bool:
    """Whether the unit neither meets nor makes an error."""
    if isinstance(unit, Serial):
        guard = () if isinstance(unit.level, Axis) else (unit.level,)
        met = any(r.tensor in errors for r in condition_reads(guard))
        return not met and all(_exact(u, errors, fused) for u in unit.body)
    values = [unit.assign.value, *(c for c in unit.conditions if is_value(c))]
    made = id(unit.assign) in fused or any(_transcendental(v) for v in values)
    return not made and not any(a.tensor in errors for a in accesses(unit))


def _run_unit(unit: Unit, frame: Frame, errors: dict[str, Any], fused: Mapping[int, Allowed]) -> None:
    if _exact(unit, errors, fused):
        run_unit(unit, frame)
        return
    match unit:
        case LoopNest():
            ErrorRun(unit, frame, errors, fused.get(id(unit.assign))).go()
        case Serial(Axis() as axis, body):
            for k in range(int(evaluate(axis.lower, frame.env)), int(evaluate(axis.upper, frame.env))):
                inner = frame.with_slab([], {axis.name: k})
                for part in body:
                    _run_unit(part, inner, errors, fused)
        case Serial(test, body):
            assert not isinstance(test, Axis)
            chosen, _ = Rules(frame, errors).truth(test, None)
            if bool(np.all(chosen)):
                for part in body:
                    _run_unit(part, frame, errors, fused)


class ErrorRun(NestRun):
    """A nest that also updates the errors of the tensor it writes. `allowed` is None where nothing is off by itself."""

    def __init__(self, nest: LoopNest, frame: Frame, errors: dict[str, Any], allowed: Allowed | None) -> None:
        super().__init__(nest, frame)
        allowed = allowed or Allowed(False, 1.0, 0.0, 0.0)
        self.errors, self.fused, self.slack, self.share = errors, allowed.fused, allowed.sums, allowed.share
        self.inside, self.number = allowed.inside, allowed.number

    def go(self) -> None:
        tensor = self.assign.tensor
        self.errors.setdefault(tensor, np.zeros(self.frame.arrays[tensor].shape))
        super().go()

    def rules(self, frame: Frame, contracted: bool = False) -> Rules:
        return Rules(frame, self.errors, contracted, self.slack > 1, self.inside)

    def _masks(self, frame: Frame, rules: Rules) -> tuple[Any, Any]:
        """Where the nest's conditions hold, and where errors leave that open."""
        mask: Any = None
        unsure: Any = None
        for test in self.conditions:
            chosen, open_ = rules.truth(test, mask)
            if chosen is not True:
                mask = both(mask, chosen)
            if open_ is not None:
                unsure = open_ if unsure is None else unsure | open_
        return mask, unsure

    def step(self, frame: Frame) -> None:
        a = self.assign
        rules = self.rules(frame, self.fused)
        mask, unsure = self._masks(frame, rules)
        node = (
            a.value if a.op == "=" else Arith(a.op[:-1], Read(a.tensor, a.index, a.value.dtype), a.value, a.value.dtype)
        )
        if mask is not None and not np.any(mask) and unsure is None:
            return
        new, error = rules.pair(node, mask)
        error = plus(error, self._approximated(new))
        shape = tuple(e for _, _, e in sorted(frame.slab.values()))
        if unsure is not None:  # the store may or may not happen
            old, before = fetch(frame, a.tensor, a.index, mask), rules.error_of(a.tensor, a.index, mask)
            new, _ = rules.pair(node, None)
            gap = np.abs(number(new) - number(old)) + (0.0 if error is None else error) + before
            spread = np.where(unsure, gap, 0.0 if error is None else error)
            where = unsure if mask is None else np.logical_or(mask, unsure)
            self._put_error(frame, np.broadcast_to(spread, shape), where)
        else:
            self._put_error(frame, np.broadcast_to(0.0 if error is None else error, shape), mask)
        put(frame, a.tensor, a.index, np.array(new, copy=True), mask)

    def _put_error(self, frame: Frame, error: Any, mask: Any) -> None:
        a = self.assign
        arrays = {**frame.arrays, a.tensor: self.errors[a.tensor]}
        there = Frame(arrays, frame.scalars, frame.env, frame.slab, frame.rank, frame.lenient, frame.location)
        put(there, a.tensor, a.index, np.where(np.isnan(error), np.inf, error), mask)

    def reduce(self) -> None:
        a = self.assign
        base = self.slab([], {s.name: s.first for s in self.serial})
        base.lenient = True
        where = self.positions_inside(base)
        shape = tuple(s.count for s in self.vector)
        start = np.abs(number(np.broadcast_to(fetch(base, a.tensor, a.index), shape)))
        before = np.array(np.broadcast_to(self.rules(base).error_of(a.tensor, a.index), shape))
        size, moved = self._magnitudes(shape)
        super().reduce()
        after = np.abs(number(np.broadcast_to(fetch(base, a.tensor, a.index), shape)))
        bound = self._bound(start, before, size, moved, after)
        self._put_error(base, plus(bound, self._approximated(after)), where)

    def _approximated(self, new: Any) -> Any:
        """What an instruction may be off that approximates these values; None where none does."""
        found = off_by(new, self.share, self.assign.value.dtype) if self.share else None
        return plus(found, np.where(np.isfinite(number(new)), self.number, 0.0)) if self.number else found

    @cached_property
    def _terms(self) -> tuple[Value, ...]:
        """What one step adds: of floats, each part of a sum (`a * b - c * d`), since a kernel may add it by itself."""
        a = self.assign
        return added(a.value) if a.op in ("+=", "-=") and a.value.dtype.is_float else (a.value,)

    def _magnitudes(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Σ|term| (or for `min max *`, nothing of use) and the terms' summed (or greatest) error."""
        a = self.assign
        reads = {x.tensor for x in accesses(self.nest) if not x.written}
        exact_terms = reads.isdisjoint(self.errors) and not _transcendental(a.value) and not self.inside
        if exact_terms and a.op in ("+=", "-="):
            with_blas = [
                contract.sum_of_products(
                    part, self.conditions, self.frame, self.serial, self.vector, exact=False, magnitude=True
                )
                for part in self._terms
            ]
            if all(found is not None for found in with_blas):
                return sum(with_blas), None
        size, moved = np.zeros(shape), np.zeros(shape)
        extreme = a.op in ("min=", "max=")
        for fixed, inner in self.chunks():
            frame = self.slab(inner, fixed)
            rules = self.rules(frame)
            mask, unsure = self._masks(frame, rules)
            reached = mask if unsure is None or mask is None else np.logical_or(mask, unsure)
            parts = [rules.pair(part, reached) for part in self._terms]
            error = plus(*(e for _, e in parts))
            whole = (*(e for _, _, e in inner), *shape)
            axes = tuple(range(len(inner)))
            terms = np.broadcast_to(sum(np.abs(number(v)) for v, _ in parts), whole)
            counted = terms if reached is None else np.where(reached, terms, 0.0)
            if unsure is not None:
                error = plus(error, np.where(unsure, terms, 0.0))
            size = size + counted.sum(axis=axes)
            if error is not None:
                error = np.broadcast_to(error if reached is None else np.where(reached, error, 0.0), whole)
                if a.op == "*=":
                    error = np.where(error > 0, error / np.maximum(terms - error, 1e-300), 0.0)
                moved = np.maximum(moved, error.max(axis=axes)) if extreme else moved + error.sum(axis=axes)
        return size, moved

    def _bound(self, start: Any, before: Any, size: Any, moved: Any, after: Any) -> Any:
        a = self.assign
        dtype = a.value.dtype
        incoming = before if moved is None else before + moved
        if a.op in ("min=", "max="):
            return before if moved is None else np.maximum(before, moved)
        terms = prod(s.count for s in self.serial) * len(self._terms)
        if dtype.is_integer:
            if a.op == "*=":
                return np.where(incoming > 0, np.inf, 0.0)
            return np.where((incoming > 0) & (start + size + incoming > dtype.limits[1]), np.inf, incoming)
        factor = 2 * self.slack * gamma(terms + 1, dtype.unit_roundoff)
        if a.op == "*=":
            relative = (
                np.where(start > before, before / np.maximum(start - before, 1e-300), np.inf)
                if np.any(before > 0)
                else np.zeros_like(before)
            )
            relative = np.expm1(relative + (0.0 if moved is None else moved) + factor)
            return np.where(self.fused | (incoming > 0), after * relative + terms * least(dtype), 0.0)
        own = factor * (start + size + incoming) + terms * least(dtype)
        if self.slack > 1:
            typical = np.maximum(after, start + size / np.sqrt(max(1, terms)))
            own = np.maximum(own / self.slack, np.minimum(own, CREDIBLE * typical))
        return np.where(self.fused | (incoming > 0), incoming + own, 0.0)
