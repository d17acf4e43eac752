"""The published AMOS validity rule, as a sub-enumeration of the superset search.

A *base point* puts one program axis on each intrinsic axis, every other axis at its lower bound, such that each
dimension of an intrinsic operand finds a dimension of the program's tensor of its own (`x * positive + constant`) and
no other dimension moves. A mapping is valid by the rule iff each of its axes takes part in a base point inside it; the
valid mappings are then the distinct unions of base points (pku-liang/AMOS, src/auto_tensorize/matcher.cc and
compute_transform.py, commit 0f397424; before its filter on tile sizes, and without its fall-back above 15 points).

The rule fixes operand roles as written and leaves no axis empty. An operand that the instruction broadcasts along an
axis is described without that axis there, and so here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

from autosched.ir.value import Index, Read
from autosched.logic import Const, Int, Var, affine
from autosched.tensorize.addresses.axes import Assignment, Candidate, Tile, images, index_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.explanation.text import axes_in_words
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Mapping
from autosched.tensorize.reduction.update import Update

RULES = ("superset", "amos")


@dataclass(frozen=True)
class AmosRule:
    """The rule for one stage, intrinsic and assignment of roles (those as written)."""

    roles: dict[str, Read]
    points: tuple[dict[str, str], ...]

    def accepts(self, assignment: Assignment, roles: dict[str, Read]) -> bool:
        """Whether the mapping is a union of base points."""
        return roles == self.roles and not self.uncovered(assignment)

    def uncovered(self, assignment: Assignment) -> list[tuple[str, str]]:
        """(Intrinsic axis, program axis) pairs of the mapping that no base point inside it has; an empty axis counts as
        the pair with ''."""
        axes = assignment.axes
        inside = [p for p in self.points if all(p[x] in fused for x, fused in axes.items())]
        covered = {(x, p[x]) for p in inside for x in axes}
        return [(x, y) for x, fused in axes.items() for y in (fused or ("",)) if (x, y) not in covered]


def rule_of(facts: StageFacts, intrinsic: Intrinsic, update: Update, tile: Tile, roles: dict[str, Read]) -> AmosRule:
    """The base points under `roles`; none where the intrinsic's own indices are compound."""
    pairs = [(o, roles[o.tensor]) for o in update.operands] + [(update.target, facts.update.target)]
    wanted: list[tuple[list[str], list[_SubscriptAxes]]] = []
    for operand, read in pairs:
        broadcast = intrinsic.operands[operand.tensor].broadcast
        names = [p.name for p in operand.index if isinstance(p, Var) and p.name in tile.extents]
        if any(not isinstance(p, Var | Const) for p in operand.index):
            return AmosRule(roles, ())
        wanted.append((sorted(x for x in names if x not in broadcast), [_subscript_axes(p) for p in read.index]))
    kinds = {x: [y for y in facts.extents if (x in tile.spatial) == (y in facts.spatial)] for x in tile.extents}
    points = []
    for choice in product(*kinds.values()):
        if len(set(choice)) < len(choice):
            continue
        placed = dict(zip(choice, kinds, strict=True))
        if all(_matched(dims, placed) == names for names, dims in wanted):
            points.append({x: y for y, x in placed.items()})
    return AmosRule(roles, tuple(points))


@dataclass(frozen=True)
class _SubscriptAxes:
    """The axes that move one subscript; `coefficients` is None where it is not affine."""

    axes: frozenset[str]
    coefficients: dict[str, int] | None


def _subscript_axes(part: Index) -> _SubscriptAxes:
    form = affine(part) if isinstance(part, Int) else None
    return _SubscriptAxes(index_axes((part,)), None if form is None else form.coefficients)


def _matched(dimensions: list[_SubscriptAxes], placed: dict[str, str]) -> list[str] | None:
    """The intrinsic axes found by a tensor's dimensions, sorted; None where one is moved in another way."""
    found = []
    for d in dimensions:
        moved = [y for y in placed if y in d.axes]
        if not moved:
            continue
        if len(moved) > 1 or d.coefficients is None or d.coefficients.get(moved[0], 0) <= 0:
            return None
        found.append(placed[moved[0]])
    return sorted(found)


def compared(rule: AmosRule, tile: Tile, mappings: Iterable[Mapping]) -> tuple[str, ...]:
    """How many of the mappings the rule keeps; how many it rejects, the first of each kind, and why those are right
    all the same.

    Empty where it keeps them all.
    """
    whole = list(mappings)
    rejected: dict[str, list[Mapping]] = {}
    for mapping in whole:
        why = _why_not(rule, tile, mapping)
        if why is not None:
            rejected.setdefault(why, []).append(mapping)
    if not rejected:
        return ()
    kept = len(whole) - sum(map(len, rejected.values()))
    lines = [f"the AMOS rule keeps {kept} of the {len(whole)} mappings"]
    for why, those in rejected.items():
        shown = "" if len(those) == 1 else f"{len(those)}, such as "
        lines.append(f"it rejects {shown}{axes_in_words(those[0].axes)}: {why}")
    return tuple(lines)


def _why_not(rule: AmosRule, tile: Tile, mapping: Mapping) -> str | None:
    roles = {o: r for o, r in mapping.operands.items() if o in rule.roles}
    candidate: Candidate = Assignment(mapping.axes, mapping.outer), roles
    if any(rule.accepts(*image) for image in images(tile, candidate)):
        return None
    if roles != rule.roles:
        return "it keeps operand roles as written; they may be exchanged, since the bodies were proved equal so"
    missing = rule.uncovered(candidate[0])
    empty = list(dict.fromkeys(x for x, y in missing if not y))
    if empty:
        return f"it leaves no axis empty; {', '.join(empty)} may be padded from extent 1, since zeros add nothing"
    if mapping.replicated:
        names = ", ".join(f"{o} along {', '.join(axes)}" for o, axes in mapping.replicated.items())
        return f"it asks that operands move alike; {names} may be replicated, since each copy is the same element"
    axes = list(dict.fromkeys(y for _, y in missing))
    tangled = [show_leaf(r) for r in dict.fromkeys(roles.values()) if index_axes(r.index) & set(axes)]
    return (
        f"it finds no dimension for {', '.join(axes)} alone; an operand may be gathered all the same, since the "
        f"address of {' and '.join(tangled) or 'each operand'} was proved a function of its own coordinates"
    )


def without_symmetries(tile: Tile) -> Tile:
    """The rule counts mappings as written: none stands for another."""
    return replace(tile, symmetries=())
