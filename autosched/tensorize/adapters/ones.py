"""Ones to sum with: a sum of elements becomes a sum of products with one, or with one and zero by what data say.

    y[i] += f32(X[i, k])                            one[0] = 1
                                                    y[i] += f32(one[0]) * f32(X[i, k])

    O[i, j] += W[p, j] if I[i] == s32(p) else 0     O_indicator[i, p] = 1 if I[i] == s32(p) else 0
                                                    O[i, j] += s32(O_indicator[i, p]) * s32(W[p, j])

For instructions that sum products. One times x is x, bit for bit. Of floats zero times x adds nothing where x is
finite, and the sign of a zero may differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign, Axis, Guard, Statement, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.rewrites.nesting import under
from autosched.ir.rewrites.one_hot import without_one
from autosched.ir.stages import conjuncts_of
from autosched.ir.value import Arith, Condition, Literal, Logical, Read, Select, Value, converted, is_value, reads
from autosched.ir.value import substitute_condition as moved_condition
from autosched.logic import Bool, Const, Int, Var, all_of
from autosched.tensorize.adapters.factored import stays_inside
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, Proposal, adapted, lemma
from autosched.tensorize.adapters.site import Site, holds, nest
from autosched.tensorize.addresses.points import condition_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.exact import holds as holds_all
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.reduction.update import operand_reads

ONES = "supply ones"
"""The adapter's name where no data say anything."""


def ones(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The stage with one more factor, in each type of the instruction's operands, where that takes one more element."""
    update = facts.update
    plain = update.combine == "+" and not (update.saturate or update.fused or update.negated)
    term = without_one(update.term)
    if not plain or len(operand_reads(term)) + 1 != len(intrinsic.inputs):
        return []
    asked = tuple(c for g in update.guards for c in conjuncts_of(g) if is_value(c))
    types = dict.fromkeys(o.dtype for o in intrinsic.inputs)
    fitting = [t for t in types if holds_all(t, term.dtype) and not t.scale and t.is_integer == term.dtype.is_integer]
    return [_proposal(facts, term, asked, dtype) for dtype in fitting]


def _proposal(facts: StageFacts, term: Value, asked: tuple[Value, ...], dtype: DType) -> Proposal:
    def make() -> Adapted:
        site = Site(facts.program, facts.original, facts.update)
        element = _indicator(site, facts, asked, dtype) if asked else _one(site, dtype)
        target = facts.update.target
        value = Arith("*", converted(element, term.dtype), term, term.dtype)
        core = Assign(target.tensor, target.index, "+=", value, facts.original.assign.location)
        if not asked:
            after = site.with_assign(core)
            said = f"{show_leaf(element)} is 1, and 1 * {show_leaf(term)} is {show_leaf(term)}"
            return adapted(facts.program, after, core, (ONES,), [lemma(said, "structure")])
        stays_inside(facts, term)
        lifted = tuple(g for g in site.lifted if not is_value(g))
        after = site.with_statement(_without_conditions(site.top, facts.original.assign, under(lifted, core)))
        text = f"{element.tensor} holds 1 where {show_leaf(_whole(asked))}, else 0, and nothing that this asks changes"
        lemmas = (
            lemma(f"{text} before", "structure"),
            lemma(f"1 * {show_leaf(term)} is {show_leaf(term)}, and 0 times a finite one adds nothing", "structure"),
        )
        made = adapted(facts.program, after, core, (f"indicator {element.tensor}",), lemmas)
        return made.zeroing([term] if term.dtype.is_float else [])

    return Proposal(("ones", asked, dtype), make)


def _one(site: Site, dtype: DType) -> Read:
    name = site.fresh("one")
    site.tensors[name] = Tensor(name, dtype, (Const(1),), intermediate=True)
    site.first.append(Assign(name, (Const(0),), "=", Literal(1.0 if dtype.is_float else 1, dtype)))
    return Read(name, (Const(0),), dtype)


def _indicator(site: Site, facts: StageFacts, asked: tuple[Value, ...], dtype: DType) -> Read:
    """An element that says whether the conditions hold, of a tensor that a nest in front of the loops fills."""
    tested = {r.tensor for c in asked for r in reads(c)}
    if any(a.tensor in tested for a in assigns(site.top)):
        raise NoPlace("what the condition asks is written in the same loops")
    for condition in asked:
        stays_inside(facts, condition)
    needed = frozenset[str]().union(*map(condition_axes, asked))
    names = [a.name for a in facts.original.axes if a.name in needed]
    if not set(names) <= facts.exact or facts.program.symbolic or len(names) == len(facts.original.axes):
        raise NoPlace("the condition is not asked at fewer points, those of a box")
    low = {n: facts.ranges[n][0] for n in names}
    name = site.fresh(f"{facts.original.assign.tensor}_indicator")
    shape = tuple(Const(facts.extents[n]) for n in names) or (Const(1),)
    site.tensors[name] = Tensor(name, dtype, shape, intermediate=True)
    loops = [Axis(site.fresh(f"{n}_i"), Const(0), Const(facts.extents[n])) for n in names]
    moved: dict[str, Int] = {n: Var(a.name) + low[n] for n, a in zip(names, loops, strict=True)}
    one, zero = (Literal(float(x) if dtype.is_float else x, dtype) for x in (1, 0))
    bit = Select(moved_condition(_whole(asked), moved), one, zero, dtype)
    at = tuple(Var(a.name) for a in loops) or (Const(0),)
    site.before.append(nest(loops, (Assign(name, at, "=", bit),)))
    return Read(name, tuple(Var(n) - low[n] for n in names) or (Const(0),), dtype)


def _whole(asked: tuple[Value, ...]) -> Value:
    return asked[0] if len(asked) == 1 else Logical("and", asked)


def _without_conditions(stmt: Statement, old: Assign, core: Statement) -> Statement:
    """The statement with `core` in the place of `old`, and no condition on data around it."""
    if isinstance(stmt, Assign):
        return core if stmt is old else stmt
    if not holds(stmt, old):
        return stmt
    body = tuple(_without_conditions(s, old, core) for s in stmt.body)
    if isinstance(stmt, Guard):
        parts: tuple[Condition, ...] = conjuncts_of(stmt.condition)
        left = [p for p in parts if isinstance(p, Bool)]
        if len(left) < len(parts):
            if len(body) > 1:
                raise NoPlace("another statement stands under the condition")
            return Guard(all_of(*left), body) if left else body[0]
        return stmt.__class__(stmt.condition, body)
    return stmt.__class__(stmt.axis, body)
