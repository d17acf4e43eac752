"""For which integers a float sum is exact, and so the same as in any other order or precision.

An aligned sum cuts nothing below one while every addend's exponent is at most its fraction bits F: integers below
2^(F+1). Its result is exact while it fits the bits that are kept, P of them: integers below 2^(P+1). A sum that rounds
each addition is exact under the second alone. So with n the least of F and P, integers whose partial sums, in any
order, stay below 2^(n+1) come out exactly; K products of magnitude at most (2^(n+1) - 1) / K cannot do otherwise. The
program's own sum is exact there too, as it keeps at least as many bits or is bounded by its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from autosched.ir.dtypes import DTYPES, DType
from autosched.tensorize.numerics.contract import Numerics


@dataclass(frozen=True, slots=True)
class ExactRange:
    """Exact where all partial sums are integers of magnitude below 2^`bits`; with `terms` of them, `factors` gives
    the greatest magnitude of each factor that ensures it (0: only the sums themselves tell, as where they begin with an
    element of `start`)."""

    bits: int
    terms: int
    names: tuple[str, ...]
    factors: tuple[int, ...]
    start: str = ""

    def __str__(self) -> str:
        """`integers with |A| <= 2, |B| <= 2 (or any whose partial sums stay below 2^14)`."""
        begun = f", begun with {self.start}," if self.start else ","
        sums = f"partial sums{begun} in any order, stay below 2^{self.bits}"
        if not any(self.factors):
            return f"integers whose {sums}"
        each = ", ".join(f"|{n}| <= {f}" for n, f in zip(self.names, self.factors, strict=True))
        return f"integers with {each} (or any whose {sums})"


def exact_range(
    numerics: Numerics, dtype: DType, own: DType, factors: tuple[tuple[str, DType], ...], terms: int, start: str = ""
) -> ExactRange:
    """`dtype` is the intrinsic's accumulator, `own` the program's; `factors` the elements multiplied, with names;
    `start` the tensor that sums begin with, if they do not with zero."""
    inner = DTYPES[numerics.sum_as] if numerics.sum_as is not None else dtype
    bits = min(numerics.kept_bits(inner.mantissa), dtype.mantissa, own.mantissa) + 1
    if start:
        return ExactRange(bits, terms, tuple(n for n, _ in factors), (0,) * len(factors), start)
    most = (2**bits - 1) // terms
    limits = [2 ** (d.mantissa + 1) for _, d in factors]  # integers up to here are numbers of the type
    if len(factors) == 1:
        found = [min(most, limits[0])]
    else:
        root = isqrt(most)
        found = [min(root, n) for n in limits]
        for k in range(2):  # what the type of one factor leaves unused, the other may take
            if found[1 - k] < root:
                found[k] = min(limits[k], most // found[1 - k])
    return ExactRange(bits, terms, tuple(n for n, _ in factors), tuple(found))
