"""What matching answers: `Match` (a verdict), its `Mapping`s, their `Certificate`s, or a `Reason`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assume, Stage
from autosched.ir.program import Program
from autosched.ir.value import Condition as Guard
from autosched.ir.value import Literal, Read
from autosched.logic import Bool
from autosched.numerics_levels import NUMERICS_LEVELS
from autosched.tensorize.conditions.rule import GroupRule
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.numerics.bound import ErrorBound
from autosched.tensorize.numerics.exact_sums import ExactRange

VERDICTS = ("match", "conditional", "unknown", "no")
"""Nearest to a match first."""
REASON_CODES = (
    "UNSUPPORTED", "ALIAS", "WRITE_CONFLICT", "NO_AXIS", "DEPENDS", "DTYPE", "COMBINE_DIFFERS", "BODY_DIFFERS",
    "NUMERICS",
)  # fmt: skip
"""In the order in which a mapping gets further: the reason reported is the last one reached."""
FUSED = 0.1
"""The part of the lanes that fusing one axis more must win."""


def accepted(level: str, weakest: str) -> bool:
    """Whether a mapping of a level is one where the `weakest` is asked for. `special` is `reassociated` where nothing
    is assumed to be finite, and `rescaled` is of rewrites: a mapping's own level is one of the others."""
    order = {name: n for n, name in enumerate(NUMERICS_LEVELS)}
    return order[level] <= max(order[weakest], order["reassociated"] if weakest == "special" else 0)


@dataclass(frozen=True, slots=True)
class Obligation:
    """One proved statement: `method` says how (`z3`, `exhaustion`, `structure`). How long the proof took is no part of
    what was proved: it does not tell two obligations apart."""

    part: str  # adapter | axes | addresses | body | reduction
    statement: str
    method: str
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was proved and what is assumed. `error_bound` is a sentence, as `γ_512 · Σ|a·b|` (None: bitwise).
    `bound` is the same as a formula in K; `exact` says which integers a float sum adds exactly."""

    obligations: tuple[Obligation, ...]
    numerics: str
    assumptions: tuple[str, ...] = ()
    error_bound: str | None = None
    bound: ErrorBound | None = None
    exact: ExactRange | None = None

    def __str__(self) -> str:
        lines = [f"{o.part}: {o.statement} ({o.method})" for o in self.obligations]
        lines.append(f"numerics: {self.numerics}" + (f", error at most {self.error_bound}" if self.error_bound else ""))
        return "\n".join(lines + [f"assumes: {a}" for a in self.assumptions])


@dataclass(frozen=True, slots=True)
class Condition:
    """A precondition on the inputs, in `assume` syntax; `tight` when no weaker one of the lattice works.

    `alternatives`: others of which any one would do instead of all conditions of the mapping. `assume` is the text
    as a statement of the program, `rule` a weaker one on constant data that a check may look at instead.
    """

    kind: str
    text: str
    tight: bool = False
    alternatives: tuple[str, ...] = ()
    assume: Assume | None = field(default=None, compare=False, repr=False)
    rule: GroupRule | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Mapping:
    """One proved way for an intrinsic to compute a stage.

    `stage` is the program's, with choices between a value and zero in its body written as guards.
    `axes`: intrinsic axis to the program axes fused on it, outermost first (empty: padded from extent 1). `outer`: the
    program's other axes. `operands`: intrinsic operand to the program element it holds. `replicated`: operand to the
    intrinsic axes it does not depend on here. `padding`: intrinsic axis to (extent, extent rounded up to tiles).
    """

    program: Program
    stage: Stage
    intrinsic: Intrinsic
    axes: dict[str, tuple[str, ...]]
    outer: tuple[str, ...]
    operands: dict[str, Read]
    replicated: dict[str, tuple[str, ...]]
    padding: dict[str, tuple[int, int]]
    certificate: Certificate
    adapters: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    assumed: tuple[Condition, ...] = ()
    """Conditions that are taken for granted; the certificate lists them."""
    guards: dict[str, tuple[Guard, ...]] = field(default_factory=dict)
    """Operand to the stage's guards (one conjunct each) that are staged into it as fills; guards on axes outside the
    tile, and those of spatial axes that only the store sees, are in no operand."""
    fills: dict[str, Literal] = field(default_factory=dict)
    """What is staged in an operand where the program has no element; zero for those that are not named."""
    padded: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Reduction axis that may reach past its end to the operands that hold their fill there."""
    neutral: tuple[tuple[str, ...], ...] = ()
    """The least sets of operands that add nothing, whatever the others hold, once each of them holds its fill."""
    left_out: tuple[Bool, ...] = ()
    """Guards of floats whose steps kernels leave out; of all others fills are multiplied."""
    finite: tuple[str, ...] = ()
    """Tensors whose elements the certificate assumes to be finite where they meet a zero."""
    met: tuple[tuple[str, ...], ...] = ()
    """What of that is so because of an adapter's zeros: an assumption, and the tensors that it names."""
    rounded: tuple[DType, ...] = ()
    """Types to which an adapter rounds operands, one for each; the program's are equal over the reals only."""

    @property
    def numerics(self) -> str:
        return self.certificate.numerics

    @property
    def issued(self) -> dict[str, tuple[int, int]]:
        """`padding` as far as it takes time: a run-time length ends the last vector along its axis early."""
        length, found = self.intrinsic.length, dict(self.padding)
        if length is not None and length[1] in found:
            extent, whole = found[length[1]]
            size = next(a.extent for a in self.intrinsic.stage.axes if a.name == length[1])
            if rest := extent % size:
                found[length[1]] = extent, whole - size + self.intrinsic.lanes_for(length[1], rest)
        return found

    @property
    def utilisation(self) -> float:
        """Useful lanes over those whose time is taken, from 0 to 1: what padding leaves of the instruction's work."""
        issued = self.issued.values()
        return prod(extent for extent, _ in issued) / prod(whole for _, whole in issued)

    def adapted(self, names: tuple[str, ...], obligations: tuple[Obligation, ...]) -> Mapping:
        """The mapping with adapters that made its program from another one, and what was proved of them."""
        known = replace(self.certificate, obligations=(*obligations, *self.certificate.obligations))
        return replace(self, adapters=(*names, *self.adapters), certificate=known)

    def assuming(self, assumptions: tuple[str, ...], finite: tuple[str, ...]) -> Mapping:
        """The mapping with more assumptions, some of them that elements of these tensors are finite."""
        said = tuple(dict.fromkeys((*self.certificate.assumptions, *assumptions)))
        tensors = tuple(sorted({*self.finite, *finite}))
        return replace(self, certificate=replace(self.certificate, assumptions=said), finite=tensors)

    def adapted_as(self, other: Mapping) -> Mapping:
        """The mapping with the adapters of another one, of the same adapted program, and what was proved of them."""
        proved = tuple(o for o in other.certificate.obligations if o.part == "adapter")
        return self.adapted(other.adapters, proved).meeting(other.met).rounding(other.rounded)

    def meeting(self, met: tuple[tuple[str, ...], ...]) -> Mapping:
        """The mapping with assumptions on what meets an adapter's zeros, each with the tensors that it names."""
        found = replace(self, met=tuple(dict.fromkeys((*self.met, *met))))
        for said, *tensors in met:
            found = found.assuming((said,), tuple(tensors))
        return found

    def rounding(self, types: tuple[DType, ...]) -> Mapping:
        """The mapping with operands that are rounded to these types first: equal over the reals, each term within their
        unit roundoffs."""
        if not types:
            return self
        known = self.certificate
        grown = "·".join(f"(1 + 2^-{t.mantissa + 1})" for t in types)
        before = f"{known.error_bound} of the rounded operands, and " if known.error_bound else ""
        bound = f"{before}({grown} − 1) of each product"
        return replace(
            self, rounded=types, certificate=replace(known, numerics="real", error_bound=bound, bound=None, exact=None)
        )


@dataclass(frozen=True, slots=True)
class Reason:
    """Why not. `counterexample` is `{inputs, program, intrinsic}` and differs when run. `distance` counts what is
    wrong, to choose the nearest of several reasons."""

    code: str
    message: str
    counterexample: dict[str, Any] | None = None
    fix: str | None = None
    distance: int = field(default=1, compare=False)
    proved: tuple[Obligation, ...] = field(default=(), compare=False, repr=False)
    """What holds of the mapping that got furthest."""
    tried: dict[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)
    """Its axes, as a mapping's."""
    verified: bool = field(default=False, compare=False)
    """Whether the program with the fix was matched again, and fits."""

    @property
    def rank(self) -> tuple[int, int]:
        """How far a mapping got that it refuses: greater is further."""
        return rank(self.code, self.distance)


def rank(code: str, distance: int) -> tuple[int, int]:
    """`Reason.rank` of a reason with this code and distance."""
    return REASON_CODES.index(code), -distance


@dataclass(frozen=True, repr=False)
class Match:
    """The answer for one stage and one intrinsic."""

    program: Program
    stage: str
    intrinsic: Intrinsic
    verdict: str
    mappings: tuple[Mapping, ...] = ()
    reason: Reason | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        why = f", {self.reason.code}: {self.reason.message}" if self.reason else ""
        count = f", mappings: {self.mapping_count}" if self.mappings else ""
        return f"<Match {self.intrinsic.name} for stage {self.stage}: {self.verdict}{count}{why}>"

    @property
    def ranked(self) -> tuple[Mapping, ...]:
        """The mappings, best first: without conditions, then of the most useful lanes."""
        return ranked(self.mappings)

    @property
    def mapping_count(self) -> int:
        """Mappings that differ in the axes on each intrinsic axis or in roles; the same with another adapter is not."""
        adapted = {
            (
                tuple((x, frozenset(fused)) for x, fused in m.axes.items()),
                tuple((o, r.tensor, r.dtype) for o, r in m.operands.items()),
            )
            for m in self.mappings
            if m.adapters
        }
        return sum(not m.adapters for m in self.mappings) + len(adapted)


def ranked(mappings: Iterable[Mapping]) -> tuple[Mapping, ...]:
    """`Match.ranked` of some mappings. Operands along fused axes are gathered as a rule: each such axis counts as so
    many lanes lost."""

    def worse(m: Mapping) -> tuple[bool, float]:
        more = sum(max(0, len(fused) - 1) for fused in m.axes.values())
        return bool(m.conditions), -m.utilisation * (1 - FUSED) ** more

    return tuple(sorted(mappings, key=worse))
