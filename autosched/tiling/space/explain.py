"""Why a row is illegal, and why a whole space is empty: the sentence and z3 readings of the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

import numpy as np

from autosched.logic import Bool, Compare, Int, Or, evaluate, sentence, to_z3
from autosched.logic.expr import negate
from autosched.logic.solver import proving, z3
from autosched.tiling.space.base import RulePart, SpaceBase
from autosched.tiling.space.enumerate import Joiner
from autosched.tiling.step import Rule

MOST_LOOKED = 1 << 20
"""Combinations of decisions that are looked at for a row that comes near: spaces have up to 10¹⁸."""


@dataclass(frozen=True)
class Explanation:
    """`rules` cannot hold together, and any fewer of them can; `sentences` say each with the numbers of the row that
    satisfies the others and comes nearest to satisfying it."""

    rules: tuple[str, ...]
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "no schedule: " + " and ".join(self.sentences)


def holds(node: Bool, columns: Mapping[str, Any]) -> bool:
    """Whether `node` is true of one row."""
    return bool(np.all(evaluate(node, columns)))


class _Number(int):
    """An int that prints with thousands separators unless a format says otherwise."""

    def __format__(self, spec: str) -> str:
        return super().__format__(spec or ",")


class _Sentence(Formatter):
    """Fields are names of the space, dots included (`{C.2.registers}`): no attributes are looked up."""

    @proving
    def __init__(self, space: SpaceBase, columns: Mapping[str, Any], own: Mapping[str, Int]) -> None:
        self._space = space
        self._columns = columns
        self._own = own

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[object, str]:
        own = self._own.get(field_name)
        found = self._columns[field_name] if own is None else evaluate(own, self._columns)
        number = int(np.asarray(found).reshape(-1)[0])
        is_decision = field_name in self._space.position
        label = self._space.decision(field_name).label(number) if is_decision else number
        return (_Number(label) if isinstance(label, int) else label), field_name


def _filled(space: SpaceBase, rule: Rule, columns: Mapping[str, Any]) -> str:
    return _Sentence(space, columns, rule.numbers).format(rule.sentence)


def why_not(space: SpaceBase, row: int) -> list[str]:
    """See `Space.why_not`."""
    columns = space.values(row).columns
    said = []
    for rule in space.rules:
        if holds(rule.holds, columns):
            continue
        if rule.name != "canonical":
            said.append(_filled(space, rule, columns))
            continue
        numbers = {n: int(np.asarray(columns[n]).reshape(-1)[0]) for n in space.names}
        for name, when in space.inert:
            d = space.decision(name)
            if holds(when, columns) and numbers[name] != d.domain[0]:
                now, kept, why = d.label(numbers[name]), d.label(d.domain[0]), _because(when, numbers)
                said.append(f"{name} {now} changes nothing ({why}): only {kept} is kept")
    return said


def _because(condition: Bool, numbers: Mapping[str, int]) -> str:
    """A condition that holds, in words: of alternatives, those that do."""
    if isinstance(condition, Or):
        return " and ".join(_because(p, numbers) for p in condition.parts if holds(p, numbers))
    return sentence(condition, numbers)


@proving
def z3_reading(space: SpaceBase) -> tuple[dict[str, Any], list[Any]]:
    """z3 integer terms for all names (decisions are variables, derived quantities terms over them), and the formulas
    that hold the decisions to their domains."""
    env: dict[str, Any] = {n: z3.IntVal(v) for n, v in space.constants.items()}
    domains = []
    for d in space.decisions:
        env[d.name] = z3.Int(d.name)
        domains.append(z3.Or(*(env[d.name] == v for v in d.domain)))
    for name, expression in space.derived.items():
        env[name] = to_z3(expression, env)
    return env, domains


class _Contradiction:
    """Answers whether a set of rules can hold together: z3 first, the staged joins where z3 gives up (products of many
    decisions are hard for integer arithmetic, and easy to enumerate with early pruning)."""

    def __init__(self, space: SpaceBase, timeout_s: float) -> None:
        self.space = space
        env, domains = z3_reading(space)
        self.solver = z3.Solver()
        self.solver.set("timeout", max(1, int(timeout_s * 1000)))  # 0 would be no limit
        self.solver.add(*domains)
        self.tracks = [z3.Bool(f"rule {i}") for i in range(len(space.rules))]
        for track, rule in zip(self.tracks, space.rules, strict=True):
            self.solver.add(z3.Implies(track, to_z3(rule.holds, env)))

    @proving
    def core(self, rules: frozenset[int]) -> frozenset[int] | None:
        """A contradicting subset of `rules`; None where they can hold together."""
        answer = self.solver.check(*(self.tracks[i] for i in sorted(rules)))
        if answer == z3.sat:
            return None
        if answer == z3.unsat:
            named = {str(t) for t in self.solver.unsat_core()}
            return frozenset(i for i in rules if str(self.tracks[i]) in named)
        self.solver.set("timeout", 20)  # what it could not decide now it will hardly decide for a few rules less
        joiner = Joiner(self.space, parts=[p for p in self.space.parts if p.rule in rules])
        pruning = sum(1 for s in joiner.stages if s.parts)
        return None if any(len(p.ids) for p in joiner.run(pruning)) else rules


def explain(space: SpaceBase, timeout_s: float) -> Explanation | None:
    """See `Space.explain`. Each rule of the core is dropped in turn; one without which the rest can hold stays."""
    contradiction = _Contradiction(space, timeout_s)
    core = contradiction.core(frozenset(range(len(space.rules))))
    if core is None:
        return None
    for rule in sorted(core, reverse=True):
        if rule in core:
            smaller = contradiction.core(core - {rule})
            core = core if smaller is None else smaller
    chosen = sorted(core)
    said = tuple(_closest(space, core, i) for i in chosen)
    return Explanation(tuple(space.rules[i].name for i in chosen), said)


def _closest(space: SpaceBase, core: frozenset[int], broken: int) -> str:
    """The rule's sentence for the row that satisfies the rest of the core and misses this rule by least, of as many as
    are looked at."""
    rule = space.rules[broken]
    others = [p for p in space.parts if p.rule in core and p.rule != broken]
    miss = RulePart(broken, negate(rule.holds), space.depends_on(rule.holds))
    joiner = Joiner(space, parts=[*others, miss], most=MOST_LOOKED)
    comparisons = [p.holds for p in space.parts if p.rule == broken and isinstance(p.holds, Compare)]
    best: tuple[int, int] | None = None
    for prefixes in joiner.run(sum(1 for s in joiner.stages if s.parts)):  # open decisions are at their first value
        if not len(prefixes.ids):
            continue
        columns = space.values(prefixes.ids).columns
        slack = np.zeros(len(prefixes.ids), np.int64)
        for c in comparisons:
            gap = np.abs(np.asarray(evaluate(c.left, columns)) - np.asarray(evaluate(c.right, columns)))
            slack += np.where(evaluate(c, columns), 0, gap)
        at = int(np.argmin(slack))
        candidate = (int(slack[at]), int(prefixes.ids[at]))
        best = candidate if best is None else min(best, candidate)
    if best is None:
        return rule.name
    return _filled(space, rule, space.values(best[1]).columns)
