"""How far the one pass is from the program in exact arithmetic.

A state is a sum of n terms. Each addition and each multiplication by a factor rounds once; an exponential is off by
`TRANSCENDENTAL_ULPS`. The roundings of the exponents' arguments telescope: the distances that the reference moves
add up to at most the distance from a term to the greatest, x, as in the program's own exponent. With factors of at most
1, no error grows on the way (Higham, *Accuracy and Stability of Numerical Algorithms*, section 4.2, to first order).
"""

from __future__ import annotations

from dataclasses import dataclass

from autosched.ir.dtypes import DType
from autosched.ir.oracle.error_rules import TRANSCENDENTAL, TRANSCENDENTAL_ULPS
from autosched.ir.rewrites.algebra.sums import RealSum
from autosched.ir.rewrites.online.states import MemberStates
from autosched.ir.value import Arith, Call, Unary, walk

EXP = 2 * TRANSCENDENTAL_ULPS
"""Error of an exponential in units of u, half an ulp."""


@dataclass(frozen=True)
class PassError:
    """|computed - exact| <= (n + `per_block` b + 2 x + `once`) u Σ |terms|: n terms in b blocks and parts, x the
    greatest distance of a term's exponent from the greatest, u the unit roundoff of `dtype`."""

    per_block: int
    once: int
    dtype: DType

    def __str__(self) -> str:
        blocks = f" + {self.per_block} b + 2 x" if self.per_block else ""
        return f"(n{blocks} + {self.once}) u Σ|terms|, u = 2^-{self.dtype.mantissa + 1}"

    def relative(self, terms: int, blocks: int, exponent: float = 0.0) -> float:
        """The bound for that many terms and blocks, relative to Σ |terms|."""
        moved = self.per_block * blocks + (2 * exponent if self.per_block else 0)
        return (terms + moved + self.once) * self.dtype.unit_roundoff


def error_of(carried: MemberStates) -> PassError | None:
    """The bound of a member's result; None where several states cancel, or a factor is not bounded."""
    if len(carried.states) != 1 or carried.member.op != "+":
        return None
    state = carried.states[0]
    work = sum(_units(v) for v in walk(state.term)) + 1
    work += _size(state.deferred)
    return PassError(EXP + 1 if state.carried.terms else 0, work, carried.member.term.dtype)


def _units(node: object) -> int:
    match node:
        case Call(function, _, _):
            return EXP if function in TRANSCENDENTAL else 1
        case Arith() | Unary():
            return 1
    return 0


def _size(total: RealSum) -> int:
    """Roundings of a deferred factor and its product, at most."""
    return sum(1 + sum(EXP if p.denominator != 1 else abs(p.numerator) for _, p in m.powers) for m, _ in total.terms)
