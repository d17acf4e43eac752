"""What a stage without an instruction of its own takes at least on a CPU: its arithmetic in full vectors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from autosched.costmodel.analytic.cpu.scalar_cycles import PER_CYCLE, SLOW
from autosched.ir.formula import Formula, Formulas
from autosched.ir.nodes import Stage
from autosched.ir.value import Arith, Call, Select, Value, walk
from autosched.ir.variables import value_vars
from autosched.logic import Const
from autosched.machine.target import Target


def least_cycles(stage: Stage, formulas: Formulas, target: Target) -> float:
    """Cycles of one thread at `PER_CYCLE` instructions on the target's widest vectors; functions are worked out by
    their formulas.

    Only what depends on every axis counts, once: all else may be computed beforehand. Nothing counts that a guard or a
    choice may leave out, and nothing of loops whose bounds depend on others.
    """
    width = target.limits.get("vector_bytes", 16)
    return _points(stage) * _bytes(stage, formulas) / width / PER_CYCLE


def _points(stage: Stage) -> int:
    known = all(isinstance(bound, Const) for a in stage.axes for bound in (a.lower, a.upper))
    return prod(a.extent for a in stage.axes) if known and not stage.guards else 0


def _bytes(stage: Stage, formulas: Formulas) -> float:
    """Of all instructions at one point, what they answer."""
    value, axes = stage.assign.value, {a.name for a in stage.axes}
    nodes = set(walk(value))
    if any(isinstance(node, Select) for node in nodes):
        return 0.0
    counted = [n for n in nodes if isinstance(n, Arith | Call) and axes <= value_vars(n)]
    inside = 0.0
    for call in counted:
        formula = _formula(call, formulas)
        if formula is not None:
            steps = {n for v in (*(step for _, step in formula.steps), formula.result) for n in walk(v)}
            inside += _instructions([n for n in steps if isinstance(n, Arith | Call)], 0) * call.dtype.bytes
    plain = [n for n in counted if _formula(n, formulas) is None]
    narrowest = min(n.dtype.bytes for n in (value, *plain))
    return inside + _instructions(plain, stage.assign.op != "=") * narrowest


def _instructions(nodes: Sequence[Value], summed: int) -> int:
    """Of these operations, and the sum at a point: a product and an addition are one. Bits of numbers cost nothing."""
    nodes = [n for n in nodes if not (isinstance(n, Call) and "bits_" in n.function)]
    products = sum(isinstance(n, Arith) and n.op == "*" for n in nodes)
    sums = summed + sum(isinstance(n, Arith) and n.op in ("+", "-") for n in nodes)
    return len(nodes) + summed - min(products, sums)


def _formula(node: Value, formulas: Formulas) -> Formula | None:
    if not isinstance(node, Call) or node.function not in SLOW:
        return None
    return formulas.get((node.function, node.dtype.name)) or formulas.get((node.function, "f32"))
