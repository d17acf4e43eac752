"""Proof 3 for floats: at which level an instruction's sum is the program's, how far apart, and where not at all."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from autosched.ir.dtypes import DType
from autosched.ir.nodes import is_zero
from autosched.ir.value import Arith, Cast, Read, Select, Value, added
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.equal import canonical, exact_product
from autosched.tensorize.numerics.bound import ErrorBound, bound
from autosched.tensorize.numerics.contract import Numerics
from autosched.tensorize.numerics.exact_sums import ExactRange, exact_range
from autosched.tensorize.reduction.update import Update, operand_reads

FLUSHED = "subnormal numbers count as zero"
NORMAL = "no factor and no sum is subnormal (for the error bound)"


@dataclass(frozen=True)
class FloatSum:
    """What is known of one float sum on an instruction."""

    level: str
    statement: str
    assumptions: tuple[str, ...]
    facts: tuple[str, ...]
    bound: ErrorBound | None = None
    exact: ExactRange | None = None


def float_sum(
    update: Update,
    intrinsic: Update,
    contract: Numerics,
    terms: int,
    tiled: bool,
    ordered: bool,
    partial: bool = False,
    issues: int | None = None,
) -> FloatSum:
    """`ordered`: the schedule keeps the program's order. `partial`: the sum is one of several that the program adds in
    its own precision (a promotion), so that fewer bits may do within it. `issues` sum the terms of one element."""
    accumulator = update.target.dtype
    facts: list[str] = []
    assumptions: list[str] = []
    level = "bitwise"
    if tiled:
        level = "reassociated"
        facts.append("the terms of one issue are summed in another order")
    if len(added(update.term)) > 1 and canonical(update.term) != canonical(intrinsic.term):
        level = "reassociated"
        facts.append("what one step adds is summed in another order")
    if (intrinsic.fused or contract.fused) != update.fused and not exact_product(update.term):
        level = "reassociated"
        facts.append(
            "a product and its addition round once" if not update.fused else "a product rounds before its addition"
        )
    if contract.rounding != "rne" or contract.sum == "aligned" or contract.start == "zero":
        level = "reassociated"
        facts.append(f"how sums are done: {contract}")
    if contract.flushed:
        level = "reassociated"
        assumptions.append(FLUSHED)
    magnitudes = magnitudes_of(update)
    several = len(added(update.term))  # which count as terms of their own: each may be added by itself
    issue = prod(a.extent for a in intrinsic.axes_reduced) * several
    found = bound(contract, accumulator, terms * several, magnitudes, issue, issues)
    kept = contract.kept_bits(accumulator.mantissa)
    if kept < accumulator.mantissa:
        facts.append(f"sums keep {kept} fraction bits, {accumulator} has {accumulator.mantissa}")
        factors = [d for _, d in factors_of(update.term)]
        level = "real"
        if partial and found.factor <= max((d.unit_roundoff for d in factors), default=0.0):
            level = "reassociated"
            facts.append(f"it is promoted to {accumulator} every {terms} terms")
    if level == "bitwise" and (ordered or not update.axes_reduced):
        order = ("the reduction keeps its order",) if update.axes_reduced else ()
        return FloatSum(level, f"the same {accumulator} operations", order, ())
    if level == "bitwise":  # one issue is exact, but a schedule that need not be may reorder the loops around it
        level = "reassociated"
    assumptions.insert(0, "inputs are finite (for the error bound)")
    if contract.sum == "aligned":
        assumptions.append(NORMAL)
    statement = f"the same {accumulator} sum of the same products in any order"
    exact = _exact(update, contract, terms)
    return FloatSum(level, statement, tuple(assumptions), tuple(facts), found, exact)


def magnitudes_of(update: Update) -> str:
    """What bounds are relative to: `Σ|A[i, p]·B[p, j]|`, with the start where that is not zero."""
    parts = added(update.term)
    shown = [
        "·".join(
            _multiplied(p) or tuple(map(show_leaf, update.operands if len(parts) == 1 else operand_reads(p)))
        )
        for p in parts
    ]
    sums = f"Σ|{shown[0]}|" if len(shown) == 1 else f"Σ({' + '.join(f'|{s}|' for s in shown)})"
    if update.init is not None and is_zero(update.init):
        return sums
    return f"({sums} + |{show_leaf(update.init or update.target)}|)"


def _multiplied(term: Value) -> tuple[str, ...]:
    """The elements that the term multiplies, one that is squared twice, of choices what is chosen from; () where it is
    no product of these alone."""
    match term:
        case Read():
            return (show_leaf(term),)
        case Cast(operand):
            return _multiplied(operand)
        case Arith("*", left, right):
            one, other = _multiplied(left), _multiplied(right)
            return one + other if one and other else ()
        case Select(_, then, last):
            chosen = dict.fromkeys((*_chosen(then), *_chosen(last)))
            return (f"({' or '.join(chosen)})",) if "" not in chosen else ()
    return ()


def _chosen(value: Value) -> tuple[str, ...]:
    """The elements among which choices choose; an empty text for anything else."""
    if isinstance(value, Select):
        return (*_chosen(value.then), *_chosen(value.other))
    elements = _multiplied(value)
    return elements if len(elements) == 1 else ("",)


def _exact(update: Update, contract: Numerics, terms: int) -> ExactRange | None:
    """None where the term is not an element or a product of two, each widened at most."""
    factors = factors_of(update.term)
    if update.combine != "+" or len(factors) not in (1, 2):
        return None
    dtype = update.target.dtype
    named = tuple((r.tensor, d) for r, d in factors)
    zero = update.init is not None and is_zero(update.init)
    start = "" if zero else show_leaf(update.init or update.target)
    return exact_range(contract, dtype, dtype, named, terms, start)


def factors_of(term: Value) -> list[tuple[Read, DType]]:
    """The elements that the term multiplies, with their own types; [] where it is anything else, or scales: nothing was
    rounded to these, and they hold no whole numbers but powers of two."""
    parts = [term.left, term.right] if isinstance(term, Arith) and term.op == "*" else [term]
    found: list[tuple[Read, DType]] = []
    for part in parts:
        inner = part
        while isinstance(inner, Cast) and inner.dtype.is_float and inner.operand.dtype.is_float:
            if inner.dtype.mantissa < inner.operand.dtype.mantissa:
                return []
            inner = inner.operand
        if not isinstance(inner, Read) or inner.dtype.scale:
            return []
        found.append((inner, inner.dtype))
    return found
