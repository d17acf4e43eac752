"""Coefficients of the quotients in `intrinsics/portable/functions.yaml`: x P(x^2) / Q(x^2) for odd functions.

    python tools/rational.py            # prints P and Q, lowest power first, and the errors

Method. Lawson's weights as in `minimax.py`, on the linear form P - f Q divided by the Q of the round before (C. K.
Sanathanan and J. Koerner 1963), in Chebyshev polynomials. Both polynomials may be scaled alike: of many scales the one
is kept whose coefficients, rounded to f32, give the least error in f32 arithmetic as the formulas do it, even and odd
powers apart (two short sums round less often than one long one).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev
from numpy.polynomial.polynomial import Polynomial
from scipy import special

Array = npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]
POINTS, ROUNDS, SCALES, SAMPLES = 3000, 300, 300, 60_000


@dataclass(frozen=True)
class Wanted:
    """`function` on [0, high] by polynomials of degrees `above` and `below` in x^2."""

    name: str
    function: Callable[[Array], Array]
    high: float
    above: int
    below: int


def fit(wanted: Wanted) -> tuple[Array, Array, float]:
    """P and Q with Q[0] = 1, and the greatest relative error."""
    angle = (np.arange(POINTS) + 0.5) * np.pi / POINTS
    x = wanted.high / 2 * (1 + np.cos(angle)) + 1e-9
    target, at = wanted.function(x) / x, 2 * (x / wanted.high) ** 2 - 1
    p_basis, q_basis = (chebyshev.chebvander(at, degree) for degree in (wanted.above, wanted.below))
    weights, below = np.full(POINTS, 1.0 / POINTS), np.ones(POINTS)
    least, best = np.inf, np.zeros(0)
    for _ in range(ROUNDS):
        scale = np.sqrt(weights) / (target * np.abs(below))
        system = np.hstack([p_basis, -target[:, None] * q_basis[:, 1:]]) * scale[:, None]
        found, *_ = np.linalg.lstsq(system, target * q_basis[:, 0] * scale, rcond=None)
        below = q_basis @ np.concatenate([[1.0], found[wanted.above + 1 :]])
        error = np.abs(p_basis @ found[: wanted.above + 1] / (below * target) - 1)
        if error.max() < least:
            least, best = float(error.max()), found
        weights = weights * error**0.7
        weights /= weights.sum()
    inside = Polynomial([-1.0, 2.0 / wanted.high**2])
    p, q = (
        Polynomial(chebyshev.cheb2poly(c))(inside).coef
        for c in (best[: wanted.above + 1], np.concatenate([[1.0], best[wanted.above + 1 :]]))
    )
    return p / q[0], q / q[0], least


def fma(a: Single, b: Single, c: Single | np.float32) -> Single:
    return (a.astype(np.float64) * b + np.asarray(c, np.float64)).astype(np.float32)


def summed(coefficients: Single, s: Single, s2: Single) -> Single:
    """The polynomial of s, even and odd powers apart."""

    def half(own: Single) -> Single:
        total = np.full_like(s, own[-1])
        for c in own[-2::-1]:
            total = fma(total, s2, c)
        return total

    return fma(half(coefficients[1::2]), s, half(coefficients[0::2]))


def ulps(wanted: Wanted, p: Single, q: Single, x: Single, exact: Array) -> float:
    """The greatest error on `x` in units of 2^-23; infinite where the last value is not 1."""
    a = np.minimum(x, np.float32(wanted.high))
    s = a * a
    s2 = s * s
    found = a * summed(p, s, s2) / summed(q, s, s2)
    at_end = found[x > wanted.high]
    return float((np.abs(found - exact) / exact).max() * 2**23) if (at_end == 1).all() else float("inf")


def rounded(wanted: Wanted, p: Array, q: Array, rng: np.random.Generator) -> tuple[float, Single, Single]:
    """The best of many scales: its error, P and Q."""
    x = np.concatenate([np.linspace(1e-4, wanted.high * 1.02, SAMPLES), 2.0 ** rng.uniform(-20, 2, SAMPLES // 3)])
    single = x.astype(np.float32)
    exact = wanted.function(single.astype(np.float64))
    tried = []
    for scale in 2.0 ** rng.uniform(-1, 1, SCALES):
        ps, qs = (p * scale).astype(np.float32), (q * scale).astype(np.float32)
        tried.append((ulps(wanted, ps, qs, single, exact), ps, qs))
    return min(tried, key=lambda t: t[0])


WANTED = (Wanted("erf", special.erf, 3.8325, 5, 5), Wanted("tanh", np.tanh, 8.6, 4, 4))


if __name__ == "__main__":
    for wanted in WANTED:
        p, q, error = fit(wanted)
        worst, ps, qs = rounded(wanted, p, q, np.random.default_rng(0))
        print(f"{wanted.name}: error 2^{np.log2(error):.2f}; {worst:.2f} units of 2^-23 in f32")
        print("  P", ", ".join(repr(float(c)) for c in ps))
        print("  Q", ", ".join(repr(float(c)) for c in qs))
