"""What a mapping stages where the program has no element: past the end of a reduction, and where a guard fails."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from functools import cached_property
from math import log2
from typing import TypeAlias

from autosched.ir.dtypes import DType
from autosched.ir.value import Condition as Guard
from autosched.ir.value import Literal, Read, Value
from autosched.logic import Const, Int, interval
from autosched.tensorize.addresses.axes import Assignment, Tile, index_axes
from autosched.tensorize.addresses.points import condition_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.neutral import Factors, Neutral, in_program, shown_to_matter
from autosched.tensorize.match_types import Obligation, Reason
from autosched.tensorize.matcher.refused import Refused, Unproved
from autosched.tensorize.reduction.update import Update


@dataclass(frozen=True)
class Staging:
    """`guards`: operand to the guards staged into it; `padded`: reduction axis of the tile to the operands that hold
    their fill past its end."""

    guards: dict[str, tuple[Guard, ...]]
    padded: dict[str, tuple[str, ...]]
    obligations: tuple[Obligation, ...]
    finite: Factors
    """What meets a zero, in the program's elements: it must be finite."""
    sign_of_zero: bool


_Choice: TypeAlias = tuple[tuple[str, ...], Obligation, Factors]
"""The operands that hold their fill, that this adds nothing, and what must be finite for it."""


@dataclass(frozen=True)
class Stager:
    """Chooses the operands; `update` is the intrinsic's, in its own operands' names. `neutral` are the fills for
    elements that begin with their initial value, `unset` what the same fills do to elements that hold anything."""

    facts: StageFacts
    update: Update
    neutral: Neutral
    unset: Neutral
    tile: Tile
    roles: dict[str, Read]
    _choices: dict[object, _Choice] = field(default_factory=dict, compare=False, repr=False)
    _staged: dict[object, Staging] = field(default_factory=dict, compare=False, repr=False)
    """What was answered already: axis maps of the same roles ask for few different things."""

    def stage(
        self,
        assignment: Assignment,
        padding: MappingOf[str, tuple[int, int]],
        covers: MappingOf[Guard, tuple[str, ...] | None],
        barred: MappingOf[str, tuple[Guard, ...]],
    ) -> Staging:
        """`covers`: the operands that may hold a guard's fill, without those in `barred`. Refused where what would be
        staged changes the answer."""
        reduced = [x for x in self.tile.extents if x not in self.tile.spatial]
        padded = {x: may_pad(self.facts, assignment, x, padding) for x in reduced}
        # A real step besides: the axis is never empty, and no guard leaves its steps out.
        full = {x: set(assignment.axes[x]) <= self.facts.exact and not self.facts.guards for x in reduced}
        key = tuple(covers.items()), tuple(barred.items()), tuple(padded.items()), tuple(full.items())
        if key not in self._staged:
            self._staged[key] = self._stage([x for x in reduced if padded[x]], full, covers, barred)
        return self._staged[key]

    def _stage(
        self,
        axes: Iterable[str],
        full: MappingOf[str, bool],
        covers: MappingOf[Guard, tuple[str, ...] | None],
        barred: MappingOf[str, tuple[Guard, ...]],
    ) -> Staging:
        """As `stage`, for the axes that may be padded; `full` ones have a real step besides."""
        guards: dict[str, tuple[Guard, ...]] = dict.fromkeys(self.roles, ())
        padded: dict[str, tuple[str, ...]] = {}
        obligations: list[Obligation] = []
        finite: set[Value] = set()
        staged = False
        for x in axes:
            # Only operands that move with the axis can hold something else in its padding than elsewhere.
            moved = frozenset(o for o in self.roles if o in self.tile.moves[x])
            text = f"padding {x} with {{}} {self._effect}"
            fix = "choose sizes that fill whole tiles"
            padded[x] = self._chosen(self.neutral, moved, text, fix, obligations, finite, full[x])
            staged = True
        for condition, covering in covers.items():
            if self.update.combine is None:  # all axes are those of the target: the store sees it
                text = f"where {show_leaf(condition)} fails, nothing is stored"
                obligations.append(Obligation("body", text, "structure"))
            elif covering:
                text = f"where {show_leaf(condition)} fails, {{}} staged for it {self._effect}"
                only_stored = self.facts.free_axes(condition_axes(condition)) <= self.facts.spatial
                # Where a bound of spatial loops fails, the program does not begin the element either.
                neutral = self.unset if only_stored else self.neutral
                fits = neutral.choose(frozenset(covering)) is not None
                if only_stored and not fits:
                    continue  # the store sees it
                others = [o for o in self.roles if condition in barred.get(o, ())]
                if not fits and neutral.choose(frozenset((*covering, *others))) is not None:
                    raise Refused(shared_coordinates(condition, others))
                fix = "leave the guarded axes outside"
                chosen = self._chosen(neutral, frozenset(covering), text, fix, obligations, finite, False, condition)
                staged = True
                for o in chosen:
                    guards[o] = (*guards[o], condition)
        of_floats = self.update.target.dtype.is_float
        met = in_program(finite, self.given) if of_floats and finite else frozenset()
        return Staging(guards, padded, tuple(obligations), met, staged and of_floats and self.update.combine == "+")

    @property
    def _effect(self) -> str:
        return "adds nothing" if self.update.combine == "+" else "changes nothing"

    def _chosen(
        self,
        neutral: Neutral,
        allowed: frozenset[str],
        text: str,
        fix: str,
        obligations: list[Obligation],
        finite: set[Value],
        beside: bool,
        guard: Guard | None = None,
    ) -> tuple[str, ...]:
        """The operands that hold their fill; what that adds to the obligations and to what must be finite."""
        key = neutral is self.unset, allowed, text, beside, guard
        known = self._choices.get(key)
        if known is None:
            known = self._choices[key] = self._choose(neutral, allowed, text, fix, beside, guard)
        names, obligation, factors = known
        obligations.append(obligation)
        finite |= factors
        return names

    def _choose(
        self, neutral: Neutral, allowed: frozenset[str], text: str, fix: str, beside: bool, guard: Guard | None
    ) -> _Choice:
        """As `_chosen`. For a guard, an operand that moves with all axes of the guard, those outside the tile included,
        is taken before one that does not. Refused where none adds nothing."""
        named = guard is not None
        moving = () if guard is None else self.covering(condition_axes(guard))
        found = neutral.choose(allowed, beside, self._addressed_outside, frozenset(moving))
        if found is None:
            said = text.format(fills_in_words({o: neutral.fills[o] for o in sorted(allowed)}))
            if neutral.unknown:
                raise Refused(Unproved(said))
            example = shown_to_matter(self.update, {o: neutral.fills[o] for o in allowed}).counterexample
            if self.update.combine != "+":
                said += f": no value of {' and '.join(sorted(allowed))} does"
            raise Refused(Reason("BODY_DIFFERS", f"not so: {said}", self._as_read(example), fix))
        everywhere = found if found in neutral.beside else allowed
        names = tuple(o for o in self.roles if o in (found if named else everywhere))
        statement = text.format(fills_in_words({o: neutral.fills[o] for o in names}))
        where = f" (in {', '.join(names)})" if named else ""
        return names, Obligation("body", statement + where, "structure"), neutral.finite(frozenset(names))

    @cached_property
    def _moved_by(self) -> dict[str, frozenset[str]]:
        """The program axes that move each operand."""
        return {o: index_axes(read.index) for o, read in self.roles.items()}

    def covering(self, needed: frozenset[str]) -> tuple[str, ...]:
        """As `covering_operands`."""
        return tuple(o for o, axes in self._moved_by.items() if needed <= axes)

    @cached_property
    def given(self) -> dict[str, Value]:
        """What operands hold, in the elements that the program itself names."""
        return {o: self.facts.as_given(r) for o, r in self.roles.items()}

    @cached_property
    def _addressed_outside(self) -> frozenset[str]:
        """The operands whose elements may lie outside their tensors at some point of the loops: they hold fills there
        in any case."""
        found = set()
        for operand, read in self.roles.items():
            shape = self.facts.program.tensors[read.tensor].shape
            for part, extent in zip(read.index, shape, strict=True):
                low, high = interval(part, self.facts.ranges) if isinstance(part, Int) else (0, 0)
                if low < 0 or (isinstance(extent, Const) and high >= extent.value):
                    found.add(operand)
        return frozenset(found)

    def _as_read(self, example: dict[str, object] | None) -> dict[str, object] | None:
        """A counterexample with the program's elements in place of the operands."""
        if example is None:
            return None
        shown = {show_leaf(r): show_leaf(self.roles[r.tensor]) for r in self.update.operands}
        shown[show_leaf(self.update.target)] = show_leaf(self.facts.update.target)
        inputs = example["inputs"]
        assert isinstance(inputs, dict)
        return {**example, "inputs": {shown.get(k, k): v for k, v in inputs.items()}}


def fills_in_words(fills: MappingOf[str, Literal]) -> str:
    """`zeros`, or `-inf in a and 1 in b`."""
    if all(v.value == 0 for v in fills.values()):
        return "zeros"
    return " and ".join(f"{in_words(v)} in {o}" for o, v in fills.items())


def in_words(value: Literal) -> str:
    """A literal as a person writes it."""
    dtype: DType = value.dtype
    if dtype.scale:
        return f"2^{log2(value.value):g}"
    return f"{value.value:g}" if dtype.is_float else str(value.value)


def may_pad(facts: StageFacts, assignment: Assignment, axis: str, padding: MappingOf[str, tuple[int, int]]) -> bool:
    """Whether the last tile along an axis may reach past its end."""
    extent, rounded = padding[axis]
    return extent != rounded or not set(assignment.axes[axis]) <= facts.exact


def shared_coordinates(guard: Guard, operands: Iterable[str]) -> Reason:
    """Why a guard cannot be staged in operands of which two points of a tile share an element."""
    named = " and ".join(operands)
    text = f"the guard {show_leaf(guard)} tells points apart that share one element of {named} in a tile"
    return Reason("DEPENDS", text, fix="leave the guarded axes outside")


def covering_operands(roles: MappingOf[str, Read], needed: frozenset[str]) -> tuple[str, ...]:
    """The operands that move with all of these program axes."""
    return tuple(o for o, read in roles.items() if needed <= index_axes(read.index))
