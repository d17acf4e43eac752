"""Data with NaN and infinities in a few places, on which every candidate is checked once before it is timed.

An element that an output does not depend on must not change it, whatever it holds: what a guard excludes, what lies in
the next row, what stands past the end of a tile. The interpreter says which outputs such elements reach; all others
must be what they would be without. Tensors that a plan assumes to be finite hold no such values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf, nan, prod
from typing import Any

import numpy as np

from autosched.device.correctness.oracle import Oracle
from autosched.device.correctness.sampled import RUN, Expected, Sampled, is_large, whole_s
from autosched.ir.oracle.assumed import is_free
from autosched.ir.oracle.numerics import round_float, store
from autosched.ir.oracle.sets.domains import drawn_inputs, undecided
from autosched.ir.oracle.sets.ends import and_last
from autosched.ir.program import Program
from autosched.tensorize.conditions.origin import origin
from autosched.tiling.plans.plan import Plan, TileLoopsPart

VALUES = (nan, inf, nan, -inf)
APART = 64
"""Elements of a tensor for each place with such a value: fewer would leave few outputs to compare."""
MOST_REACHED = 0.5
"""The part of an output that such values may reach."""
MOST_S = 2.0
"""Programs that take the interpreter longer are checked so only where they exclude elements: by guards, or by loops of
uneven length."""
MOST_BYTES = 1 << 28
"""All tensors of programs that are checked so, together."""


@dataclass(frozen=True)
class Special:
    """`tensors` hold the values; `found` are all inputs and what the outputs must be."""

    tensors: tuple[str, ...]
    found: Expected

    @property
    def folder(self) -> str:
        """A name for the data set, which messages show."""
        return f"{and_last(self.tensors)} hold{'' if len(self.tensors) > 1 else 's'} NaN and infinities"


def assumed_finite(plan: Plan) -> frozenset[str]:
    """The program's inputs from which something is computed that a plan's mappings assume to be finite."""
    wanted = {n for r in plan.rewrites for n in r.finite}
    wanted |= _sources(plan.program, wanted)
    for part in plan.parts:
        if isinstance(part, TileLoopsPart):
            inside = assumed_finite(part.member)
            wanted |= {part.windows[n].tensor for n in inside if n in part.windows}
            wanted |= _sources(plan.program, wanted)
    for mapping in (part.nest.mapping for part in plan.own_tensor_parts):
        program = mapping.program
        names = set(mapping.finite)
        if any("NaN" in a for a in mapping.certificate.assumptions):
            names |= {r.tensor for r in mapping.operands.values()}
        wanted |= {made[0].tensor if (made := origin(program, n)) is not None else n for n in names}
        wanted |= _sources(program, wanted)
    return frozenset(wanted)


def _sources(program: Program, tensors: Iterable[str]) -> set[str]:
    """What the tensors are computed from, through all stages."""
    found = set(tensors)
    while True:
        more = {r.tensor for s in program.stages if s.assign.tensor in found for r in s.reads} - found
        if not more:
            return found
        found |= more


def special(
    program: Program, seed: int, finite: frozenset[str], compute: Callable[[Mapping[str, Any]], Expected]
) -> Special | None:
    """Such data for a program; `compute` makes inputs and expected outputs of the arrays given. None where no tensor
    may hold such values, where they would reach most of an output, or where looking would take long."""
    names = [n for n in program.inputs if n not in finite and _may_hold(program, n)]
    size = sum(prod(t.extents) * t.dtype.bytes for t in program.tensors.values())
    if not names or program.symbolic or size > MOST_BYTES:
        return None
    if whole_s(program) > MOST_S and not any(s.guards or _uneven(s) for s in program.stages):
        return None
    if undecided(program):
        compute({})
    found = _computed(program, names, seed, len(VALUES), compute)
    if found is not None:
        return found
    kept: list[str] = []
    for name in names:  # fewer values, and in as many tensors as leave most of each output alone
        more = _computed(program, [*kept, name], seed, 1, compute)
        if more is not None:
            kept, found = [*kept, name], more
    return found


def _computed(
    program: Program, names: list[str], seed: int, most: int, compute: Callable[[Mapping[str, Any]], Expected]
) -> Special | None:
    found = lenient(compute(_spoiled(program, names, seed, most)))
    return Special(tuple(names), found) if _reaches_little(found) else None


def _may_hold(program: Program, name: str) -> bool:
    tensor = program.tensors[name]
    has_nan = tensor.dtype.is_float and bool(np.isnan(float(round_float(np.float64(nan), tensor.dtype))))
    return has_nan and is_free(program, name) and prod(tensor.extents) >= APART // 2


def _uneven(stage: Any) -> bool:
    """Whether a loop's bounds depend on another loop."""
    return any(not hasattr(bound, "value") for a in stage.axes for bound in (a.lower, a.upper))


def _spoiled(program: Program, names: list[str], seed: int, most: int) -> dict[str, Any]:
    """The tensors' random values, with special ones in a few places, `most` at most."""
    drawn = drawn_inputs(program, np.random.default_rng(seed), RUN if is_large(program) else None)
    rng = np.random.default_rng([seed, 3])
    corners = (0, -1) if is_large(program) else ()  # boxes lie there, and guards tell there
    found = {}
    for name in names:
        values = np.array(drawn[name])
        count = int(np.clip(values.size // APART, 1, most))
        places = [*corners, *(int(rng.integers(values.size)) for _ in VALUES)]
        for value, place in zip(VALUES[:count], places, strict=False):
            rounded = round_float(np.float64(value), program.tensors[name].dtype)
            values.flat[place] = store(np.asarray(rounded), program.tensors[name].dtype)[()]
        found[name] = values
    return found


def lenient(found: Expected) -> Expected:
    """Where such a value reaches an element without making it one, no bound is known: it may then be any number."""
    if isinstance(found, Sampled):
        oracle = lenient(found.oracle)
        assert isinstance(oracle, Oracle)
        return replace(found, oracle=oracle)
    allowed = {n: None if t is None else np.where(np.isnan(t), inf, t) for n, t in found.tolerances.items()}
    return replace(found, tolerances=allowed)


def _reaches_little(found: Expected) -> bool:
    """Whether most of each output is as it would be without."""
    for want in found.oracle.wants.values():
        values = np.asarray(want)
        if values.dtype.kind == "f" or values.dtype.kind == "V":
            with np.errstate(all="ignore"):
                if np.count_nonzero(~np.isfinite(values.astype(np.float64))) > MOST_REACHED * values.size:
                    return False
    return True
