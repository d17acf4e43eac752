"""Coefficients of the polynomials in `functions.yaml` and `avx512_functions.yaml`: uniform approximations, by Lawson.

    python tools/minimax.py            # prints each polynomial, lowest power first, and its error as a power of two

Method. A polynomial is fitted by weighted least squares on a dense grid of Chebyshev points; each point's weight is
then multiplied by its error and the fit repeated, which converges to the polynomial whose greatest error is least
(C. L. Lawson 1961; J. R. Rice and K. H. Usow, "The Lawson algorithm and extensions", Mathematics of Computation 22,
1968). Coefficients are rounded to f32 one at a time, lowest power first, and the others fitted again around them (N.
Brisebarre, J.-M. Muller and A. Tisserand 2006 do so with an exact method). The functions come from mpmath at 40 digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
import numpy.typing as npt

Real = npt.NDArray[np.longdouble]
POINTS, ROUNDS = 1200, 120


@dataclass(frozen=True)
class Wanted:
    """A polynomial in `variable(x)` of so many coefficients for `function(x)` on [low, high]; its error at x counts
    `scale(x)` times."""

    name: str
    function: Callable[[mpmath.mpf], mpmath.mpf]
    scale: Callable[[mpmath.mpf], mpmath.mpf]
    variable: Callable[[mpmath.mpf], mpmath.mpf]
    low: float
    high: float
    coefficients: int


def fit(powers: Real, target: Real, scale: Real, fixed: list[float]) -> tuple[Real, Real]:
    """The minimax coefficients after `fixed`, and the scaled errors."""
    n = len(fixed)
    rest = target - powers[:, :n] @ np.array(fixed, np.longdouble) if n else target
    free = powers[:, n:] * scale[:, None]
    rhs = rest * scale
    weights = np.ones(len(rhs), np.longdouble) / len(rhs)
    best: tuple[Real, Real] | None = None
    size = np.abs(free).max(axis=0)
    for _ in range(ROUNDS):
        root = np.sqrt(weights).astype(np.float64)
        system = (free / size).astype(np.float64) * root[:, None]
        found, *_ = np.linalg.lstsq(system, rhs.astype(np.float64) * root, rcond=None)
        # One step of refinement: the residual is taken in long double.
        left = rhs - (free / size) @ found.astype(np.longdouble)
        more, *_ = np.linalg.lstsq(system, left.astype(np.float64) * root, rcond=None)
        solution = (found.astype(np.longdouble) + more) / size
        errors = rhs - free @ solution
        if best is None or np.abs(errors).max() < np.abs(best[1]).max():
            best = solution, errors
        weights = weights * np.abs(errors)
        weights /= weights.sum()
    assert best is not None
    return best


def polynomial(wanted: Wanted) -> tuple[list[float], float]:
    """Coefficients that f32 holds exactly, and log2 of the greatest scaled error."""
    angle = (np.arange(POINTS) + 0.5) * np.pi / POINTS
    xs = [mpmath.mpf(float(x)) for x in (wanted.low + wanted.high) / 2 + (wanted.high - wanted.low) / 2 * np.cos(angle)]
    variable, target, scale = (
        np.array([np.longdouble(mpmath.nstr(f(x), 30)) for x in xs])
        for f in (wanted.variable, wanted.function, wanted.scale)
    )
    powers = np.stack([variable**k for k in range(wanted.coefficients)], axis=1)
    fixed: list[float] = []
    errors = np.zeros(1, np.longdouble)
    for _ in range(wanted.coefficients):
        solution, errors = fit(powers, target, scale, fixed)
        fixed.append(float(np.float32(solution[0])))
    errors = (target - powers @ np.array(fixed, np.longdouble)) * scale
    return fixed, float(np.log2(np.abs(errors).max()))


WANTED = (
    # exp(r) = 1 + r P(r), |r| <= ln(2) / 2 and a little for the rounding of the multiple
    Wanted("exp", lambda r: mpmath.expm1(r) / r, lambda r: r / mpmath.exp(r), lambda r: r, -0.3468, 0.3468, 5),
    # with a table of 32nds: |r| <= ln(2) / 64 and a little for the rounding of the multiple
    Wanted("exp32", lambda r: mpmath.expm1(r) / r, lambda r: r / mpmath.exp(r), lambda r: r, -0.01085, 0.01085, 2),
    # log(1 + f) = f - f^2 / 2 + f^3 P(f), 1 + f between sqrt(1/2) and sqrt(2)
    Wanted(
        "log", lambda f: (mpmath.log1p(f) - f + f**2 / 2) / f**3, lambda f: f**3 / mpmath.log1p(f), lambda f: f,
        -0.2929, 0.4143, 8,
    ),
)  # fmt: skip


if __name__ == "__main__":
    mpmath.mp.dps = 40
    for wanted in WANTED:
        found, error = polynomial(wanted)
        print(f"{wanted.name}: error 2^{error:.2f}")
        print("  " + ", ".join(repr(float(np.float32(c))) for c in found))
