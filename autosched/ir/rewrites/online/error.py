"""How far the one pass is from the program in exact arithmetic.

A state is a sum of n terms. Each addition and each multiplication by a factor rounds once; an exponential is off by
`TRANSCENDENTAL_ULPS`, and by what its argument is off: each operation of it by u times the size of its result, x in
all. The factors' arguments telescope: what the references move by adds up to at most x, too. With factors of at most 1,
no error grows on the way (Higham, *Accuracy and Stability of Numerical Algorithms*, section 4.2, to first order).

Sizes count a difference as the sum of its sides, as it may be taken apart; but X - M, M the maximum of the stored X,
as itself.
Functions other than exp, log and roots are computed as they are written: their values are taken as they were computed,
and so are the results of other stages.
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
    """|computed - exact| <= (n + `per_block` b + `per_exponent` x + `once`) u Σ |terms|: n terms in b blocks and parts,
    x the greatest sum of sizes in an exponent, u the unit roundoff of `dtype`."""

    per_block: int
    per_exponent: int
    once: int
    dtype: DType

    def __str__(self) -> str:
        blocks = f" + {self.per_block} b" if self.per_block else ""
        exponents = f" + {self.per_exponent} x" if self.per_exponent else ""
        return f"(n{blocks}{exponents} + {self.once}) u Σ|terms|, u = 2^-{self.dtype.mantissa + 1}"

    @property
    def order(self) -> tuple[int, int, int]:
        """What bounds of several results are compared by."""
        return self.per_block, self.per_exponent, self.once


def error_of(carried: MemberStates) -> PassError | None:
    """The bound of a member's result; None where several states cancel, or a factor is not bounded."""
    if len(carried.states) != 1 or carried.member.op != "+":
        return None
    state = carried.states[0]
    work = sum(_units(v) for v in walk(state.term)) + 1
    work += _size(state.deferred)
    exponents = sum(isinstance(v, Call) and v.function == "exp" for v in walk(state.term))
    exponents += sum(1 for m, _ in state.deferred.terms if m.exponent.terms)
    return PassError(EXP + 1 if state.carried.terms else 0, 2 * exponents, work, carried.member.term.dtype)


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
