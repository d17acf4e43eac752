"""`SpaceBase`: what the rows of a space mean: decisions and rules, ids, values, which rows are legal.

Enumeration, counting, sampling and explanation are functions of it, each in a module of its own; `Space` has them as
methods.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from math import prod
from string import Formatter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from autosched.errors import UnknownNameError, UsageError
from autosched.json_text import parse_json
from autosched.logic import TRUE, And, Bool, Expr, Int, Var, all_of, evaluate, free_vars
from autosched.tiling.space.schedule import Schedule
from autosched.tiling.space.values import Lazy, digit
from autosched.tiling.step import Decision, Rule, Step

Ids = npt.NDArray[np.int64]
CANONICAL = "canonical"
MOST_ROWS = 2**63
"""An id is a signed integer of 64 bits."""
BLOCK = 1 << 18
"""Rows that are evaluated together."""


@dataclass(frozen=True)
class RulePart:
    """A conjunct of the rule number `rule`, and the positions of the decisions that it depends on."""

    rule: int
    holds: Bool
    depends: frozenset[int]


class SpaceBase:
    """Decisions, rules and derived quantities of `steps`, in order.

    Derived quantities may refer to decisions (of any step), `constants` and quantities derived before them. `inert`
    conditions become one rule, `canonical`: where a decision changes nothing it has its domain's first value.
    Raises ValueError where names clash or are unknown (a mistake in a step), UsageError above 2^63 rows.
    """

    def __init__(self, name: str, steps: Sequence[Step], constants: Mapping[str, int] | None = None) -> None:
        self.name = name
        self.steps = tuple(steps)
        self.constants = dict(constants or {})
        self.decisions: tuple[Decision, ...] = tuple(d for s in steps for d in s.decisions)
        self.derived: dict[str, Int] = {}
        self._check_names()
        self.position = {d.name: i for i, d in enumerate(self.decisions)}
        self.inert = tuple((d, when) for s in steps for d, when in s.inert.items())
        held = [when.implies(Var(d).eq(self.decision(d).domain[0])) for d, when in self.inert]
        rules = [r for s in steps for r in s.rules]
        if held:
            rules.append(Rule(CANONICAL, all_of(*held), "a decision without effect is not at its first value"))
        self.rules: tuple[Rule, ...] = tuple(rules)
        self._check_rules()
        self.radices = tuple(len(d.domain) for d in self.decisions)
        self.size = prod(self.radices)
        if self.size >= MOST_ROWS:
            raise UsageError(f"the space {name!r} has {self.size:,} rows, more than an id can number",
                             hint="narrow the domains of its decisions")  # fmt: skip
        self.strides = tuple(prod(self.radices[i + 1 :]) for i in range(len(self.radices)))
        self._domains = {d.name: np.array(d.domain, np.int64) for d in self.decisions}
        self.reads: dict[str, frozenset[int]] = {}
        """Positions of the decisions that quantities were seen to read, by name (`tiling.space.memoize_columns`)."""
        self._reached: dict[str, frozenset[int]] = {}
        self.rates: dict[RulePart, float] = {}
        """Estimates of the share of rows for which a conjunct holds, filled by `tiling.space.enumerate`."""
        self.small: dict[RulePart, bool] = {}
        """Whether int32 holds all intermediate values of a conjunct, filled as needed."""
        self.cache: dict[Callable[[SpaceBase], Any], Any] = {}
        """Results of the functions that are decorated with `once_per_space`."""

    def _check_names(self) -> None:
        seen = set(self.constants)
        for d in self.decisions:
            if d.name in seen or not d.domain or len(set(d.domain)) != len(d.domain):
                raise ValueError(f"decision {d.name!r}: its name is taken, or its domain is empty or repeats a value")
            if d.labels and (len(d.labels) != len(d.domain) or len(set(d.labels)) != len(d.labels)):
                raise ValueError(f"decision {d.name!r}: one label for each value, all different")
            seen.add(d.name)
        for step in self.steps:
            for quantity, expression in step.derived.items():
                unknown = sorted(free_vars(expression) - seen)
                if quantity in seen or unknown:
                    raise ValueError(f"derived {quantity!r} of {step.name!r}: name taken, or refers to {unknown}")
                seen.add(quantity)
                self.derived[quantity] = expression
        self.names = frozenset(seen)

    def _check_rules(self) -> None:
        if len({r.name for r in self.rules}) != len(self.rules):
            raise ValueError(f"two rules have one name: {[r.name for r in self.rules]}")
        for rule in self.rules:
            fields = {f for _, f, _, _ in Formatter().parse(rule.sentence) if f is not None}
            used = frozenset().union(*map(free_vars, rule.numbers.values())) | (fields - rule.numbers.keys())
            unknown = sorted((free_vars(rule.holds) | used) - self.names)
            if unknown:
                raise ValueError(f"rule {rule.name!r} refers to {unknown}")

    def __repr__(self) -> str:
        return f"Space({self.name!r}, {len(self.decisions)} decisions, {len(self.rules)} rules, {self.size:,} rows)"

    def decision(self, name: str) -> Decision:
        """The decision called `name`; UnknownNameError where there is none."""
        if name not in self.position:
            raise UnknownNameError("decision", name, self.position)
        return self.decisions[self.position[name]]

    @cached_property
    def version(self) -> str:
        """16 hex digits over everything that decides what a row id means and which are legal."""
        text = json.dumps([
            [(d.name, d.domain, d.labels) for d in self.decisions],
            [(r.name, str(r.holds)) for r in self.rules],
            [(n, str(e)) for n, e in self.derived.items()],
            sorted(self.constants.items()),
        ])  # fmt: skip
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def depends_on(self, node: Expr) -> frozenset[int]:
        """Positions of the decisions that an expression depends on, through derived quantities too."""
        return frozenset().union(*(self._reach(name) for name in free_vars(node)))

    def _reach(self, name: str) -> frozenset[int]:
        if name not in self._reached:
            derived = self.derived.get(name)
            own = frozenset((self.position[name],)) if name in self.position else frozenset()
            self._reached[name] = own if derived is None else self.depends_on(derived)
        return self._reached[name]

    @cached_property
    def parts(self) -> tuple[RulePart, ...]:
        """The rules' conjuncts in order: what enumeration evaluates as early as each one can be."""
        return tuple(
            RulePart(i, part, self.depends_on(part))
            for i, rule in enumerate(self.rules)
            for part in (rule.holds.parts if isinstance(rule.holds, And) else (rule.holds,))
            if part != TRUE
        )

    # Rows, ids, values

    def rows(self, ids: npt.ArrayLike) -> dict[str, npt.NDArray[np.unsignedinteger]]:
        """Indices into the domains, one contiguous array for each decision (uint8, or wider where needed)."""
        numbers = self._checked(ids)
        return {
            d.name: digit(numbers, stride, radix).astype(np.min_scalar_type(radix - 1))
            for d, stride, radix in zip(self.decisions, self.strides, self.radices, strict=True)
        }

    def ids(self, rows: Mapping[str, npt.ArrayLike]) -> Ids:
        """The ids of rows given as indices (inverse of `rows`)."""
        total: Ids = np.zeros((), np.int64)
        for d, stride in zip(self.decisions, self.strides, strict=True):
            total = total + np.asarray(rows[d.name], np.int64) * stride
        return np.atleast_1d(total)

    def values(self, ids: npt.ArrayLike) -> Values:
        """The columns of these rows: decisions, constants and derived quantities by name."""
        numbers = self._checked(ids)

        def decided(name: str) -> npt.NDArray[np.int64]:
            at = self.position[name]
            return self._domains[name].take(digit(numbers, self.strides[at], self.radices[at]))

        return Values(Lazy(self.constants, self.derived, self.position, decided), len(numbers), self, numbers)

    def _checked(self, ids: npt.ArrayLike) -> Ids:
        numbers = np.atleast_1d(np.asarray(ids, np.int64))
        outside = (numbers < 0) | (numbers >= self.size)
        if outside.any():
            first = int(numbers[outside][0])
            raise UsageError(f"row {first} is not in the space {self.name!r} of {self.size:,} rows")
        return numbers

    def schedule(self, row: int) -> Schedule:
        """The row by names; UsageError for an id outside the space (an illegal row has a schedule too)."""
        self._checked(row)
        indices = [(int(row) // s) % r for s, r in zip(self.strides, self.radices, strict=True)]
        values = {d.name: d.domain[i] for d, i in zip(self.decisions, indices, strict=True)}
        return Schedule(int(row), values, {d.name: d.label(values[d.name]) for d in self.decisions})

    def row_of(self, values: Mapping[str, int | str]) -> int:
        """The id of the row with these values or labels; UsageError for a name or value that the space does not have.

        Decisions not named are at their first value.
        """
        for name in values:
            self.decision(name)
        row = 0
        for d, stride in zip(self.decisions, self.strides, strict=True):
            row += stride * (self._index(d, values[d.name]) if d.name in values else 0)
        return row

    @staticmethod
    def _index(d: Decision, value: int | str) -> int:
        if isinstance(value, str):
            if value not in d.labels:
                raise _no_text(d, value)
            return d.labels.index(value)
        if value not in d.domain:
            near = min(d.domain, key=lambda v: abs(v - value))
            raise UsageError(f"{d.name} cannot be {value}", hint=f"nearest is {near}; values: {list(d.domain)}")
        return d.domain.index(value)

    def to_json(self, row: int) -> str:
        """The schedule as a JSON object by names and labels, with the space's version."""
        schedule = self.schedule(row)
        return json.dumps({"space": self.name, "version": self.version, "schedule": schedule.named})

    def from_json(self, text: str) -> Schedule:
        """The schedule in `text`: what `to_json` wrote, or a bare object of names. It need not be of this version as
        long as every name and value exists here; UsageError otherwise."""
        try:
            data = parse_json(text)
        except (ValueError, TypeError) as e:
            raise UsageError(f"not a schedule: {e}") from e
        named = data.get("schedule", data) if isinstance(data, dict) else None
        if not isinstance(named, dict) or not all(isinstance(v, int | str) for v in named.values()):
            raise UsageError("not a schedule: expected an object of decision names with a number or label each")
        return self.schedule(self.row_of(named))

    def legal(self, ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which of these rows satisfy every rule."""
        return legal(self, self._checked(ids))


def _no_text(d: Decision, value: str) -> UsageError:
    """The error for a text that is no value of a decision."""
    if d.labels:
        return UnknownNameError(f"value of {d.name}", value, d.labels)
    known = ", ".join(map(str, d.domain))
    hint = f"write {value} without quotes" if value in map(str, d.domain) else f"its values: {known}"
    return UsageError(f"{d.name} is a number, and {value!r} is a text", hint=hint)


class Values(Mapping[str, npt.NDArray[np.int64]]):
    """One int64 array of shape (rows,) for each decision, constant and derived quantity.

    >>> Values(Lazy({"a": np.array([1, 2]), "k": 3}, {}), 2)["k"]
    array([3, 3])
    """

    def __init__(
        self, columns: Lazy, rows: int, space: SpaceBase | None = None, ids: npt.NDArray[np.int64] | None = None
    ) -> None:
        self.columns = columns
        """The same as they were computed: Python ints where a quantity is the same in all rows."""
        self.rows = rows
        self.space = space
        """The space whose rows `ids` these are, where nothing but their ids decides the columns."""
        self.ids = np.zeros(0, np.int64) if ids is None else ids

    def __getitem__(self, name: str) -> npt.NDArray[np.int64]:
        column = np.asarray(self.columns[name], np.int64)
        return column if column.ndim else np.broadcast_to(column, (self.rows,))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


_Fact = TypeVar("_Fact")


def once_per_space(work_out: Callable[[SpaceBase], _Fact]) -> Callable[[SpaceBase], _Fact]:
    """`work_out`, computed once for each space, which keeps the result (`SpaceBase.cache`): it must not be changed."""

    @wraps(work_out)
    def remembered(space: SpaceBase, /) -> _Fact:
        if remembered not in space.cache:
            space.cache[remembered] = work_out(space)
        fact: _Fact = space.cache[remembered]
        return fact

    return remembered


def legal(space: SpaceBase, ids: Ids, block: int = BLOCK) -> npt.NDArray[np.bool_]:
    """See `SpaceBase.legal`."""
    result = np.ones(len(ids), np.bool_)
    for start in range(0, len(ids), block):
        chunk = ids[start : start + block]
        env = space.values(chunk).columns
        for part in space.parts:
            result[start : start + block] &= truth(part.holds, env, chunk.shape)
    return result


def truth(holds: Bool, env: Lazy, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Where a condition holds, spread to `shape`."""
    with np.errstate(divide="ignore"):
        return np.broadcast_to(np.asarray(evaluate(holds, env), np.bool_), shape)
