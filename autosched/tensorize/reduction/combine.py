"""Proof 3, the reduction: is the combination the same, and how far may the answers lie apart?

Integers: addition, multiplication, minimum and maximum modulo 2^w are associative and commutative, so any order gives
the same bits; a clamped addition is none of these, and equals the wrapping one only where the clamp cannot act. Floats:
any order is a stated contract, with a bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from autosched.ir.data import known_values
from autosched.ir.nodes import Assume, Stage
from autosched.ir.oracle import numerics
from autosched.ir.program import Program
from autosched.ir.value import Value
from autosched.logic import Const, Var
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.counterexample import leaves, show_leaf
from autosched.tensorize.body.intervals import Range, exact_range
from autosched.tensorize.conditions.data import groups_hold, held_values
from autosched.tensorize.conditions.group import group_rule
from autosched.tensorize.conditions.origin import origin
from autosched.tensorize.conditions.stated import stated_ranges
from autosched.tensorize.conditions.weakest import ClampedSum, range_condition, weakest
from autosched.tensorize.match_types import Condition, Reason, accepted
from autosched.tensorize.numerics.bound import ErrorBound
from autosched.tensorize.numerics.contract import Numerics, in_powers
from autosched.tensorize.numerics.exact_sums import ExactRange
from autosched.tensorize.reduction.floats import FLUSHED, float_sum
from autosched.tensorize.reduction.start import contradicted, start_condition, start_of
from autosched.tensorize.reduction.update import Clamp, Update

_NAMES = {
    "+": "addition",
    "*": "multiplication",
    "min": "the minimum",
    "max": "the maximum",
    None: "a plain assignment",
}


@dataclass(frozen=True)
class Contract:
    """What the reduction guarantees: a numerics level, with conditions, assumptions and facts that went into it."""

    level: str
    statement: str
    conditions: tuple[Condition, ...] = ()
    assumptions: tuple[str, ...] = ()
    error_bound: str | None = None
    facts: tuple[str, ...] = field(default=())
    bound: ErrorBound | None = None
    exact: ExactRange | None = None


def combination_reason(program: Update, intrinsic: Update) -> Reason | None:
    """COMBINE_DIFFERS where the two stages combine in different ways."""
    if program.saturate is not None and program.axes_reduced:
        text = "the program clamps after every addition, so its additions cannot be regrouped"
        return Reason("COMBINE_DIFFERS", text, fix="clamp once after the reduction")
    if program.saturate != intrinsic.saturate and intrinsic.saturate is None:
        return Reason("COMBINE_DIFFERS", "the program clamps its sum and the intrinsic wraps")
    if program.combine == intrinsic.combine:
        return None
    text = f"the program's combination is {_NAMES[program.combine]}, the intrinsic's {_NAMES[intrinsic.combine]}"
    target = show_leaf(program.target)
    fix = None
    if program.combine is None and intrinsic.combine == "+":
        fix = f"initialise {target} = 0 and accumulate with +="
    return Reason("COMBINE_DIFFERS", text, fix=fix)


def overwriting_reason(program: Update, exact: frozenset[str], guarded: frozenset[str]) -> Reason | None:
    """Why an instruction that overwrites its target computes no stage of this form; `exact`: axes of a known extent,
    `guarded`: those that guards and bounds speak of.

    The stage must write each element once: of several turns the last would count.
    """
    target = show_leaf(program.target)
    if program.combine is not None:
        text = f"the program's combination is {_NAMES[program.combine]}, and the intrinsic overwrites its target"
        fix = "write each term to an intermediate and combine these, or describe an instruction that sums"
        return Reason("COMBINE_DIFFERS", text, fix=fix)
    over = [a for a in program.axes_reduced if a.name not in exact or a.extent > 1 or a.name in guarded]
    if over:
        text = f"{target} is written anew in every turn of {over[0].name}, and the last one counts"
        return Reason("COMBINE_DIFFERS", text, fix=f"index {program.target.tensor} by {over[0].name}")
    return None


def prove_reduction(
    program: Program,
    update: Update,
    intrinsic: Update,
    contract: Numerics,
    terms: int,
    tiled: bool,
    level: str,
    filled: int = 1,
    fused: tuple[str, ...] = (),
    partial: bool = False,
    issues: int | None = None,
    earlier: tuple[Stage, ...] = (),
) -> Contract | Reason:
    """The contract under which `intrinsic` accumulates what `update` does, or why there is none at `level`.

    `intrinsic` has the program's elements for its operands; `terms` is the greatest number of terms an element sums;
    `tiled` says that one issue sums several; `fused` are the program axes on the axis along which the intrinsic clamps
    in groups, and `filled` is their extent. `partial`: the program adds such sums up in its own precision.
    `issues` are those that sum one element; `earlier` stages of the program write the target before.
    """
    accumulator = update.target.dtype
    if accumulator.is_integer:
        found = _integer(program, update, intrinsic, terms, earlier)
        if intrinsic.clamp is None or isinstance(found, Reason):
            return found
        return _ungrouped(program, update, intrinsic, intrinsic.clamp, filled, fused, found)
    if contract.bounded:
        return _bounded(update, contract, level)
    if update.combine in (None, "min", "max"):
        text = f"{_NAMES[update.combine]} does not round"
        ordered = () if update.combine is None else ("no operand is NaN",)
        if not contract.flushed:
            return Contract("bitwise", text, assumptions=ordered)
        if level == "bitwise":
            text = "the intrinsic takes subnormal numbers for zeros of their sign, and the program keeps them"
            return Reason("NUMERICS", text, fix="accept --numerics reassociated")
        return Contract("reassociated", text, assumptions=(*ordered, FLUSHED))
    known = float_sum(update, intrinsic, contract, terms, tiled, level == "bitwise", partial, issues)
    found = Contract(
        known.level,
        known.statement,
        (),
        known.assumptions,
        None if known.bound is None else str(known.bound),
        known.facts,
        known.bound,
        known.exact,
    )
    if not accepted(found.level, level):
        text = f"the answers agree at the level {found.level} ({'; '.join(found.facts)}), and {level} was asked for"
        fix = f"accept --numerics {found.level}"
        if found.level == "real":
            fix = f"promote the accumulator to {accumulator} every few steps (an adapter), or " + fix
        return Reason("NUMERICS", text, fix=fix)
    return found


def _bounded(update: Update, contract: Numerics, level: str) -> Contract | Reason:
    """The contract of an instruction that approximates what it writes, which `real` alone accepts."""
    share = contract.bounds
    if not accepted("real", level):
        text = f"the intrinsic is off by up to {share}, which the program does not allow"
        return Reason("NUMERICS", text, fix="accept --numerics real")
    said = f"each element is off the exact one by at most {share}"
    relative = None if contract.relative is None else f"{in_powers(contract.relative)} · |{show_leaf(update.target)}|"
    number = None if contract.absolute is None else in_powers(contract.absolute)
    bound = " + ".join(b for b in (relative, number) if b)
    return Contract("real", said, assumptions=(FLUSHED,) if contract.flushed else (), error_bound=bound)


def _integer(
    program: Program, update: Update, intrinsic: Update, terms: int, earlier: tuple[Stage, ...]
) -> Contract | Reason:
    accumulator = update.target.dtype
    ring = f"{_NAMES[update.combine]} of {accumulator} is associative and commutative modulo 2^{accumulator.bits}"
    if intrinsic.saturate is None or update.saturate is not None:
        return Contract("bitwise", ring if update.combine else "one assignment to each element")
    return _unclamped(program, update, intrinsic, terms, ring, earlier)


def _ungrouped(
    program: Program,
    update: Update,
    intrinsic: Update,
    clamp: Clamp,
    filled: int,
    fused: tuple[str, ...],
    found: Contract,
) -> Contract | Reason:
    """A clamp of every few terms, left out of the term that was compared: where none of these sums reaches it."""
    known = stated_ranges(program, update.operands)
    ranges = {r.tensor: known.get(r, Range(*r.dtype.limits)) for r in update.operands}
    const = frozenset(t for t in ranges if program.known(t))
    derived = frozenset(t for t in ranges if program.tensors[t].intermediate and origin(program, t) is None)
    given = frozenset(t for t in ranges if program.data and known_values(program, t) is not None)
    count = min(clamp.group, filled)
    group = ClampedSum(update.term, count, clamp.dtype.limits, tuple(ranges.items()), const, derived, given)
    conditions = weakest(group)
    data = held_values(program, ranges)
    if conditions != () and data and (fact := groups_hold(program, update, group, clamp, fused)):
        return _by_data(found, f"{fact}, so the clamp to {clamp.dtype} never acts", data)
    if conditions is None:
        text = (
            f"the intrinsic clamps every {clamp.group} terms to {clamp.dtype}, which no range of one operand prevents"
        )
        return Reason("COMBINE_DIFFERS", text, fix="use an instruction that does not clamp on the way")
    if not conditions:
        fact = f"sums of {count} terms stay within {group.sums(ranges)}, so the clamp to {clamp.dtype} never acts"
        without = stated_ranges(replace(program, data={}), update.operands)
        open_ = {r.tensor: without.get(r, Range(*r.dtype.limits)) for r in update.operands}
        return _by_data(found, fact, () if group.safe(open_) else data)
    if len(conditions) == 1 and conditions[0].assume is not None and conditions[0].assume.subject in const:
        rule = group_rule(update, group, clamp, conditions[0].assume.subject)
        conditions = (replace(conditions[0], rule=rule),)
    text = " and ".join(c.text for c in conditions)
    for written in filter(None, (contradicted(program, update, c) for c in conditions)):
        said = f"the intrinsic clamps every {clamp.group} terms to {clamp.dtype}, unless {text}; the program writes"
        fix = "use an instruction that does not clamp on the way"
        return Reason("COMBINE_DIFFERS", f"{said} {written}", fix=fix)
    statement = f"{found.statement}; under {text} the clamp of every {clamp.group} terms to {clamp.dtype} never acts"
    return replace(found, statement=statement, conditions=(*found.conditions, *conditions))


def _by_data(found: Contract, fact: str, data: tuple[str, ...]) -> Contract:
    """The contract with one more fact, and the values that it was taken from."""
    statement = f"{found.statement}; {fact}"
    return replace(found, statement=statement, facts=(*found.facts, fact), assumptions=(*found.assumptions, *data))


def _unclamped(
    program: Program, update: Update, intrinsic: Update, terms: int, ring: str, earlier: tuple[Stage, ...]
) -> Contract | Reason:
    """A clamping instruction for a wrapping program: where no partial sum, in any order, reaches the clamp."""
    accumulator = update.target.dtype
    limits = accumulator.limits
    leaves = stated_ranges(program, update.operands)
    # The intrinsic's own term counts: it may be wider than the accumulator, and equal to the program's only modulo 2^w.
    term = exact_range(intrinsic.term, leaves)
    start = start_of(program, update, earlier)
    total = Range(start.low + min(term.low, 0) * terms, start.high + max(term.high, 0) * terms)
    if total.within(limits):
        fact = f"{terms} terms in {term} from {start} stay within {total}, so the clamp never acts"
        data = held_values(program, [r.tensor for r in update.operands])
        if data:
            open_ = _unclamped(replace(program, data={}), update, intrinsic, terms, ring, earlier)
            data = () if isinstance(open_, Contract) and not open_.conditions else data
        return _by_data(Contract("bitwise", ring), fact, data)
    condition = (
        _length_condition(program, update, intrinsic.term, term, start)
        or _value_condition(update, intrinsic.term, terms, leaves, start)
        or start_condition(program, update, earlier, term, terms)
    )
    if condition is not None and (written := contradicted(program, update, condition)) is not None:
        text = f"the intrinsic clamps where {accumulator} wraps, unless {condition.text}; the program writes {written}"
        return Reason("COMBINE_DIFFERS", text, fix="use the wrapping form of the instruction")
    if condition is None:
        text = f"the intrinsic clamps where {accumulator} wraps: {terms} terms in {term} may leave {accumulator}"
        return Reason("COMBINE_DIFFERS", text, fix="use the wrapping form of the instruction")
    return Contract("bitwise", f"{ring}; under {condition.text} the clamp never acts", (condition,))


def _length_condition(program: Program, update: Update, value: Value, term: Range, start: Range) -> Condition | None:
    """A bound on the one symbolic size that is the reduction's length."""
    low, high = update.target.dtype.limits
    bounds = []
    if term.low < 0:
        bounds.append(((start.low - low) // -term.low, term.low))
    if term.high > 0:
        bounds.append(((high - start.high) // term.high, term.high))
    symbolic, known = [], 1
    for axis in update.axes_reduced:
        if isinstance(axis.upper, Var) and axis.lower == Const(0) and axis.upper.name in program.symbolic:
            symbolic.append(axis.upper.name)
        elif isinstance(axis.upper, Const) and isinstance(axis.lower, Const):
            known *= axis.extent
        else:
            return None
    greatest, extreme = min(bounds, default=(0, 0))
    if len(symbolic) != 1 or greatest < known:
        return None
    tight = start.low == start.high and _attained(program, update, value, extreme)
    most = greatest // known
    return Condition("length", f"{symbolic[0]} <= {most}", tight, assume=Assume(symbolic[0], None, most))


def _attained(program: Program, update: Update, value: Value, extreme: int) -> bool:
    """Whether tensors filled with one value each make every term `extreme`, so that no longer sum is safe."""
    ranges = stated_ranges(program, update.operands)
    tensors = list(dict.fromkeys(r.tensor for r in update.operands))
    first = {r.tensor: r for r in reversed(update.operands)}
    corners = [ranges.get(first[t], Range(*first[t].dtype.limits)) for t in tensors]
    for choice in product(*((c.low, c.high) for c in corners)):
        filled = dict(zip(tensors, choice, strict=True))
        inputs = {r: numerics.container(r.dtype)(filled[r.tensor]) for r in update.operands}
        if set(leaves(value)) == set(update.operands) and int(evaluate(value, inputs)) == extreme:
            return True
    return False


def _value_condition(
    update: Update, value: Value, terms: int, leaves: Mapping[Value, Range], start: Range
) -> Condition | None:
    """The widest symmetric range of one operand under which the sum stays inside; at least -1 to 1."""
    limits = update.target.dtype.limits
    best: tuple[int, str, Range] | None = None
    for read in update.operands:
        whole = leaves.get(read, Range(*read.dtype.limits))
        low, high = 0, max(abs(whole.low), abs(whole.high))
        while low < high:
            middle = (low + high + 1) // 2
            narrowed = whole.clamped((-middle, middle))
            term = exact_range(value, {**leaves, read: narrowed})
            total = Range(start.low + min(term.low, 0) * terms, start.high + max(term.high, 0) * terms)
            if total.within(limits):
                low = middle
            else:
                high = middle - 1
        if low >= 1 and (best is None or low > best[0]):
            best = low, read.tensor, whole.clamped((-low, low))
    if best is None:
        return None
    return range_condition(best[1], best[2])
