"""How far a sum under a contract may be from the exact one, as a formula in the number of terms K.

With S = Σ|term| (and the start's magnitude, where it is not zero):

- A sum whose every addition rounds once, in any order: a term meets at most K roundings of relative error u, and the
  error is at most γ_K · S, γ_n = n u / (1 - n u) (Higham 2002, section 4.2); u is half a unit in the last place to
  nearest, a whole one in the other modes.
- A sum of aligned blocks of T terms: cutting T + 1 addends at F bits below the largest loses less than (T + 1) 2^-F
  times it, and the largest is at most the sum of all magnitudes; rounding the block's result loses u of it. So each
  block stretches the magnitudes so far by at most 1 + α = (1 + (T + 1) 2^-F) (1 + u), and the error of B = ⌈K/T⌉ blocks
  is at most ((1 + α)^B - 1) S. Issues that start from zero do so on their own, and their results are then added with
  one rounding each. This takes factors for normal numbers: the exponent of a subnormal one is larger than its value.
  Of groups that are added exactly T counts the groups; the largest may be `below` bits less than the exponents of the
  scales say, so that F is less by as many. Subnormal factors are counted there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from autosched.ir.dtypes import DTYPES, DType
from autosched.tensorize.numerics.contract import Numerics


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """`formula` in K times `magnitudes`; `factor` is its value for `terms` terms. All relative to Σ|term|."""

    formula: str
    terms: int
    factor: float
    magnitudes: str = "S"

    def __str__(self) -> str:
        """With K filled in: `γ_512 · Σ|a·b|`."""
        filled = self.formula.replace("2K", str(2 * self.terms)).replace("K", str(self.terms))
        return f"{filled} · {self.magnitudes}"


def bound(
    numerics: Numerics, dtype: DType, terms: int, magnitudes: str = "S", issue: int = 1, issues: int | None = None
) -> ErrorBound:
    """The bound on a sum of `terms` products in an accumulator of `dtype`, `issue` of them at once, in `issues` issues
    (as many as it takes where none are padded)."""
    inner = DTYPES[numerics.sum_as] if numerics.sum_as is not None else dtype
    if numerics.sum != "aligned":
        roundings = 1 if numerics.rounding == "rne" else 2  # a directed rounding loses up to two of its halves
        formula = "γ_K" if roundings == 1 else "γ_2K"
        return ErrorBound(formula, terms, gamma(terms * roundings, inner.unit_roundoff), magnitudes)
    size = min(numerics.terms or issue, issue)
    issues = issues or -(-terms // issue)
    growth, words = block_growth(numerics, inner, size)
    each = -(-issue // size)
    if numerics.start == "zero":
        u = inner.unit_roundoff
        factor = math.expm1(each * math.log1p(growth) + issues * math.log1p(u))
        steps = _count(issues, terms, issue)
        return ErrorBound(f"(({words})^{each}·(1 + 2^-{inner.mantissa + 1})^{steps} − 1)", terms, factor, magnitudes)
    blocks = issues * each
    factor = math.expm1(blocks * math.log1p(growth))
    return ErrorBound(f"(({words})^{_count(blocks, terms, size)} − 1)", terms, factor, magnitudes)


def _count(steps: int, terms: int, size: int) -> str:
    """The number of steps as a function of K, where padding does not make them more."""
    return str(steps) if steps != -(-terms // size) else f"⌈K/{size}⌉" if size > 1 else "K"


def block_growth(numerics: Numerics, dtype: DType, size: int) -> tuple[float, str]:
    """α of one aligned block of `size` terms, and 1 + α as text."""
    assert numerics.fraction_bits is not None
    kept = min(dtype.mantissa, numerics.result_bits or dtype.mantissa)
    last = kept + 1 if numerics.rounding == "rne" else kept
    addends, bits = size // numerics.group + 1, numerics.fraction_bits - numerics.below
    cut = addends * 2.0**-bits
    words = f"1 + {addends}·2^-{bits}"
    if numerics.sum_bits is not None and numerics.accumulator_bits is not None:
        lost = [numerics.sum_bits, numerics.accumulator_bits, *[numerics.fraction_bits] * (numerics.parts - 1) * 2]
        cut += sum(2.0**-bits for bits in lost)
        words += "".join(f" + 2^-{bits}" for bits in lost)
    return (1 + cut) * (1 + 2.0**-last) - 1, f"({words})·(1 + 2^-{last})"


def gamma(n: int, u: float) -> float:
    """n u / (1 - n u); infinite where that says nothing."""
    return n * u / (1 - n * u) if n * u < 1 else math.inf


def promoted(numerics: Numerics, dtype: DType, terms: int, steps: int, issue: int) -> ErrorBound:
    """The bound on `terms` products of which every `steps` (Kp) are summed under the contract from zero, and the
    partial sums in `dtype`: relative errors e of the parts and γ of their sum make (1 + e) (1 + γ) - 1."""
    part = bound(numerics, dtype, steps, issue=issue)
    outer = gamma(-(-terms // steps), dtype.unit_roundoff)
    stretch = part.formula.replace("K", "Kp").removeprefix("(").removesuffix(" − 1)")
    if numerics.sum != "aligned":
        stretch = f"(1 + {stretch})"
    return ErrorBound(f"({stretch}·(1 + γ_⌈K/Kp⌉) − 1)", terms, (1 + part.factor) * (1 + outer) - 1)
