"""Groups side by side: several small sums of products as one larger product, with zeros where no group is its own.

    for g, o: S[g * 8 + o] += X[g * 8 + c] * W[c, g * 8 + o]            c < 8

    W_blocks[h * 8 + c, (g * 4 + k) * 8 + o] = W[c, (g * 4 + k) * 8 + o] if h == k else 0
    for g, o: S[g * 32 + o] += X[g * 32 + c] * W_blocks[c, g * 32 + o]  c < 32

A group's own depth may fill a fraction of an instruction's, and of a line of memory. The matrix of the second factor is
block-diagonal: four groups in one product are four times the arithmetic, and a quarter of the slices. `const` data are
laid out so once, before the run. A term in which the second factor is zero must add nothing, and the float that meets
the zero must be finite.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from autosched.ir.nodes import Assign, Axis, Guard, Loop, Statement, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.value import FromIndex, Index, Literal, Read, Select, Value, is_value, map_value, reads
from autosched.logic import Bool, Compare, Const, Int, Var, affine, free_vars
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, adapted, lemma
from autosched.tensorize.adapters.site import Site, nest
from autosched.tensorize.addresses.axes import index_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.neutral import Factors, constant_of


@dataclass(frozen=True)
class Groups:
    """Axes of a stage's groups: of the groups, of a group's results, of its terms; and the factors that move with the
    groups alone (`dense`) and with results too (`blocks`)."""

    group: Axis
    result: Axis
    term: Axis
    dense: Read
    blocks: Read


def groups_of(facts: StageFacts) -> Groups | None:
    """The groups of a stage whose results lie group after group, as the terms of one factor do. None where there are
    none."""
    stage, update = facts.original, facts.update
    factors = tuple(dict.fromkeys(update.operands))
    exact = all(isinstance(a.lower, Const) and isinstance(a.upper, Const) for a in stage.axes)
    addressed = any(is_value(i) for r in factors for i in r.index)
    if len(factors) != 2 or update.combine != "+" or not exact or addressed:
        return None
    plain = [a for a in stage.axes if a.lower == Const(0) and a.extent > 1]
    guarded = frozenset[str]().union(*(free_vars(g) for g in stage.guards if isinstance(g, Bool)))
    spatial = [a for a in plain if a in stage.spatial and a.name not in guarded]
    summed = [a for a in plain if a in stage.reduction and a.name not in guarded]
    for dense, blocks in (factors, factors[::-1]):
        if blocks.dtype.scale:
            continue  # it has no zero to stand beside the blocks
        ours, others = index_axes(dense.index), index_axes(blocks.index)
        for term in summed:
            for group in spatial:
                for result in spatial:
                    both = {group.name, term.name} <= ours and {group.name, term.name, result.name} <= others
                    if not both or group == result or result.name in ours:
                        continue
                    if _joined(stage.assign.index, group, result) and _joined(dense.index, group, term):
                        return Groups(group, result, term, dense, blocks)
    return None


def met_by_zeros(facts: StageFacts, groups: Groups) -> Factors | None:
    """What must be finite where a term of another group holds a zero in place of `blocks`. None where such a term would
    add something: that of `abs(x - w)` adds `abs(x)`."""
    finite: set[Value] = set()
    term = map_value(facts.update.term, lambda v: _zero(groups.blocks) if v == groups.blocks else v)
    return frozenset(finite) if constant_of(term, finite) == 0 else None


def block_diagonal(facts: StageFacts, groups: Groups, together: int) -> Adapted | None:
    """The program in which `together` groups are one product. None where the stage leaves no room for that, or the
    number divides the groups unevenly."""
    if together < 2 or groups.group.extent % together:
        return None
    try:
        site = Site(facts.program, facts.original, facts.update)
        if not all(_apart(a, facts.original.assign.tensor, groups) for a in assigns(site.top)):
            return None
        copy = _copy(site, groups, together)
        wide = _Wider(groups.group, groups.result, together, groups.term)
        top = wide.statement(site.top, {groups.blocks: copy})
        (core,) = (a for a in assigns(top) if any(r == wide.read(copy) for r in reads(a.value)))
        program = _behind(site.with_statement(top), site.position + len(site.before), groups, together)
    except NoPlace:
        return None
    text = f"{copy.tensor} holds {show_leaf(groups.blocks)} where a term is of the result's own group, else 0"
    said = (
        lemma(text, "structure"),
        lemma(f"{together} groups of {groups.result.name} are the same results, in the same order", "structure"),
    )
    return adapted(facts.program, program, core, (f"{together} groups of {groups.blocks.tensor}",), said)


def _apart(assign: Assign, target: str, groups: Groups) -> bool:
    """Whether an assignment is the stage's own, and what it names beside the two factors lies group after group, or is
    the same for all groups."""
    group, result, term = groups.group, groups.result, groups.term
    rest = [r.index for r in reads(assign.value) if r not in (groups.dense, groups.blocks)]
    beside = not any(term.name in index_axes(i) for i in (assign.index, *rest))
    return assign.tensor == target and beside and _together(assign, group, result, (groups.dense, groups.blocks))


def _copy(site: Site, groups: Groups, together: int) -> Read:
    """The block-diagonal factor as the new stage reads it, but for the groups' steps. A nest in front fills it."""
    group, result, term = groups.group, groups.result, groups.term
    old = groups.blocks
    others = [a for a in site.stage.axes if a.name in index_axes(old.index) and a not in (group, result, term)]
    shape = [*(Const(a.extent) for a in others), Const(together * term.extent), Const(group.extent * result.extent)]
    name = site.fresh(f"{old.tensor}_blocks")
    site.tensors[name] = Tensor(name, old.dtype, tuple(shape), intermediate=True)
    sizes = [*((a.name, a.extent) for a in others), ("h", together), (term.name, term.extent)]
    sizes += [(group.name, group.extent // together), ("k", together), (result.name, result.extent)]
    loops = [Axis(site.fresh(f"{n}_b"), Const(0), Const(size)) for n, size in sizes]
    at = {a.name: Var(axis.name) + a.lower for a, axis in zip(others, loops, strict=False)}
    row, c, g, k, o = (Var(axis.name) for axis in loops[len(others) :])
    of_group = g * together + k
    at |= {group.name: of_group, term.name: c, result.name: o}
    element = map_value(old, on_int=lambda e: substitute_int(e, at))
    value = Select(Compare("==", row, k), element, _zero(old), old.dtype)
    first = tuple(Var(axis.name) for axis in loops[: len(others)])
    place = (*first, row * term.extent + c, of_group * result.extent + o)
    site.before.append(nest(loops, (Assign(name, place, "=", value),)))
    own = tuple(Var(a.name) - a.lower for a in others)
    return Read(name, (*own, Var(term.name), Var(group.name) * result.extent + Var(result.name)), old.dtype)


def _zero(like: Read) -> Literal:
    return Literal(0.0 if like.dtype.is_float else 0, like.dtype)


@dataclass(frozen=True)
class _Wider:
    """Statements in loops over so many groups at a time: `group` takes fewer and longer steps, `result` (and `term`)
    run over all of several groups."""

    group: Axis
    result: Axis
    together: int
    term: Axis | None = None

    def statement(self, stmt: Statement, moved: dict[Read, Read]) -> Statement:
        """The statement with its loops and subscripts so, and reads of one element in place of others."""
        match stmt:
            case Loop(axis, body):
                return Loop(self.axis(axis), tuple(self.statement(s, moved) for s in body))
            case Guard(condition, body):
                if not isinstance(condition, Bool):
                    raise NoPlace("a guard that looks at data")
                inside = tuple(self.statement(s, moved) for s in body)
                return Guard(substitute_bool(condition, self.steps), inside)
            case Assign():
                value = map_value(stmt.value, lambda v: moved.get(v, v) if isinstance(v, Read) else v)
                return replace(stmt, index=tuple(map(self.index, stmt.index)), value=self.value(value))

    @property
    def steps(self) -> dict[str, Int]:
        return {self.group.name: Var(self.group.name) * self.together}

    def axis(self, axis: Axis) -> Axis:
        if axis == self.group:
            return Axis(axis.name, axis.lower, Const(axis.extent // self.together))
        longer = axis in (self.result, self.term)
        return Axis(axis.name, axis.lower, Const(axis.extent * self.together)) if longer else axis

    def index(self, index: Index) -> Index:
        if not isinstance(index, Int):
            raise NoPlace("an address that data says")
        return substitute_int(index, self.steps)

    def value(self, value: Value) -> Value:
        return map_value(
            value,
            on_int=lambda i: substitute_int(i, self.steps),
            on_bool=lambda b: substitute_bool(b, self.steps),
        )

    def read(self, read: Read) -> Read:
        found = self.value(read)
        assert isinstance(found, Read)
        return found


def _behind(program: Program, position: int, groups: Groups, together: int) -> Program:
    """The program with elementwise statements behind the stage in loops like its own, so that they still follow on each
    result."""
    body = list(program.body)
    for k in range(position + 1, len(body)):
        axes, assign = _loops(body[k])
        sizes = groups.group.extent, groups.result.extent
        pairs = [(g, o) for g in axes for o in axes if g != o and (g.extent, o.extent) == sizes]
        fitting = [(g, o) for g, o in pairs if assign is not None and _together(assign, g, o)]
        if len(fitting) == 1:
            body[k] = _Wider(*fitting[0], together).statement(body[k], {})
    return replace(program, body=tuple(body))


def _loops(stmt: Statement) -> tuple[list[Axis], Assign | None]:
    """The loops around one elementwise assignment, from 0 to constants; none of other statements."""
    found: list[Axis] = []
    while isinstance(stmt, Loop) and len(stmt.body) == 1:
        found.append(stmt.axis)
        stmt = stmt.body[0]
    constant = all(a.lower == Const(0) and isinstance(a.upper, Const) for a in found)
    return (found, stmt) if isinstance(stmt, Assign) and constant else ([], None)


def _together(assign: Assign, group: Axis, result: Axis, beside: tuple[Read, ...] = ()) -> bool:
    """Whether what an assignment writes lies group after group, as each element that it reads does unless it is one
    for all groups or `beside`; and nothing counts groups or results."""
    names = {group.name, result.name}
    used = [r.index for r in reads(assign.value) if r not in beside]
    counted: set[str] = set()

    def number(value: Value) -> Value:
        counted.update(free_vars(value.index) if isinstance(value, FromIndex) else ())
        return value

    def formula(condition: Bool) -> Bool:
        counted.update(free_vars(condition))
        return condition

    map_value(assign.value, number, on_bool=formula)
    return (
        not counted & names
        and _joined(assign.index, group, result)
        and all(not index_axes(i) & names or _joined(i, group, result) for i in used)
    )


def _joined(index: tuple[Index, ...], outer: Axis, inner: Axis) -> bool:
    """Whether one subscript alone moves with the two axes, `outer` by as many elements as `inner` has values."""
    forms = [affine(i) if isinstance(i, Int) else None for i in index]
    if any(f is None for f in forms):
        return False
    moving = [f for f in forms if f is not None and {outer.name, inner.name} & set(f.coefficients)]
    if len(moving) != 1:
        return False
    step = moving[0].coefficient(inner.name)
    return step != 0 and moving[0].coefficient(outer.name) == step * inner.extent
