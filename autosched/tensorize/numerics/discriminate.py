"""Inputs on which two ways to sum give different results, found by construction and search, checked by running both.

Constructed are the vectors that experts use: a sum too large for small terms, terms that vanish one at a time and not
together, cancellation across places, a product cancelled but for its rounding, numbers at the ends of their types. What
differs is then made small: terms that do not matter become zero, numbers become powers of two, and terms move to the
front, as long as the results still differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from autosched.ir.dtypes import DType
from autosched.tensorize.numerics.dot import Dot, Vectors
from autosched.tensorize.numerics.rounding import least_exponent

CASES = 512
ROUNDS = 6


@dataclass(frozen=True)
class Discriminating:
    """`results` are the two sums of `c` and the products a[k]·b[k]; `exact` is the sum without any rounding."""

    names: tuple[str, str]
    a: tuple[float, ...]
    b: tuple[float, ...]
    c: float
    results: tuple[float, float]
    exact: float

    def terms(self) -> list[tuple[int, float, float]]:
        """The places where a product is not zero."""
        return [(k, x, y) for k, (x, y) in enumerate(zip(self.a, self.b, strict=True)) if x != 0 and y != 0]


def discriminate(first: Dot, second: Dot, rng: np.random.Generator) -> Discriminating | None:
    """The smallest such input that was found; None where all that was tried agrees to the bit."""
    length = int(np.lcm(first.step, second.step))
    for a, b, c in _candidates(first, second, length, rng):
        a, b = (_common(x, first.factors[n], second.factors[n]) for n, x in enumerate((a, b)))
        c = _common(c, first.accumulator, second.accumulator)
        with np.errstate(all="ignore"):
            differs = _differ(first.run(a, b, c), second.run(a, b, c))
        if differs.any():
            counts = (a * b != 0).sum(axis=1) + 2 * (c != 0) + 4096 * ~differs
            at = int(np.argmin(counts))
            return _shrunk(first, second, a[at], b[at], c[at])
    return None


def _differ(x: Vectors, y: Vectors) -> Vectors:
    return np.asarray((x != y) & ~(np.isnan(x) & np.isnan(y)))


def _candidates(first: Dot, second: Dot, length: int, rng: np.random.Generator) -> Iterator[tuple[Vectors, ...]]:
    bits = [d.accumulator.mantissa for d in (first, second)]
    kept = [
        n.kept_bits(d.accumulator.mantissa) for d in (first, second) if (n := getattr(d, "numerics", None)) is not None
    ]
    for scale in sorted({*bits, *kept, 13, 23, 24, 25}):
        yield _ladders(length, scale, rng)
    yield _subnormal(first, length, rng)
    yield _cancelled(first, second, length, rng)
    for spread in (2, 6, 12, 20, 6, 12)[:ROUNDS]:
        yield _random(first, length, spread, rng)


def _ladders(length: int, scale: int, rng: np.random.Generator) -> tuple[Vectors, ...]:
    """A large start (or product) and a few equal small terms, around 2^-scale of it."""
    a, b = np.zeros((CASES, length)), np.zeros((CASES, length))
    c = np.zeros(CASES)
    for case in range(CASES):
        small = scale + int(rng.integers(-1, 4))
        few = int(rng.choice([1, 2, 4, 8, 16]))
        places = rng.permutation(length)[: min(few, length)]
        a[case, places] = 2.0 ** -(small // 2) * rng.choice([1.0, 1.0, -1.0, 1.5])
        b[case, places] = 2.0 ** -(small - small // 2)
        c[case] = rng.choice([0.0, 1.0, -1.0, 2.0**scale, 1.0 + 2.0**-scale, 1.0 + 2.0 ** -(scale + 1)])
        if rng.random() < 0.5:
            a[case, rng.integers(0, length)] = b[case, rng.integers(0, length)] = 1.0
    return a, b, c


def _subnormal(dot: Dot, length: int, rng: np.random.Generator) -> tuple[Vectors, ...]:
    """Numbers at the lower end of the types."""
    found = []
    for dtype in dot.factors:
        low = 2.0 ** least_exponent(dtype)
        found.append(rng.choice([0.0, low, low / 2, -low / 2, 1.0, 2.0], (CASES, length)))
    low = 2.0 ** least_exponent(dot.accumulator)
    return (*found, rng.choice([0.0, low, low / 2, -low], CASES))


def _cancelled(first: Dot, second: Dot, length: int, rng: np.random.Generator) -> tuple[Vectors, ...]:
    """One product of factors 1 + 2^-n, and a start that takes it away but for what was rounded off: a product that is
    fused with its addition leaves that, one that is rounded first leaves nothing."""
    a, b = np.zeros((CASES, length)), np.zeros((CASES, length))
    for vector, kinds in ((a, (first.factors[0], second.factors[0])), (b, (first.factors[1], second.factors[1]))):
        vector[:, 0] = 1 + 2.0 ** -rng.integers(1, min(d.mantissa for d in kinds) + 1, CASES)
    held = min((first.accumulator, second.accumulator), key=lambda d: d.mantissa)
    return a, b, -_common(a[:, 0] * b[:, 0], held)


def _random(dot: Dot, length: int, spread: int, rng: np.random.Generator) -> tuple[Vectors, ...]:
    """Numbers of all signs whose exponents lie within `spread`, about a third of them zero."""

    def draw(shape: tuple[int, ...]) -> Vectors:
        values = rng.choice([-1.0, 1.0], shape) * (1 + rng.integers(0, 16, shape) / 16)
        return np.asarray(values * 2.0 ** rng.integers(-spread // 2, spread // 2 + 1, shape))

    keep = rng.random((CASES, length)) < 0.7
    return draw((CASES, length)) * keep, draw((CASES, length)), draw((CASES,))


def _common(values: Vectors, *dtypes: DType) -> Vectors:
    """The values as numbers of every one of the types; zero where that is none."""
    found = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        for dtype in dtypes:
            found = found.astype(np.float32).astype(dtype.numpy).astype(np.float64) if dtype.name != "f64" else found
            if dtype.padding:
                raw = found.astype(np.float32).view(np.uint32) >> dtype.padding << dtype.padding
                found = raw.view(np.float32).astype(np.float64)
    return np.where(np.isfinite(found), found, 0.0)


def _shrunk(first: Dot, second: Dot, a: Vectors, b: Vectors, c: float) -> Discriminating:
    """The same with as few terms, and as plain numbers, as still differ."""
    kinds = (*first.factors, *second.factors)

    def results(a: Vectors, b: Vectors, c: float) -> tuple[float, float]:
        with np.errstate(all="ignore"):
            one, two = (d.run(a[None], b[None], np.array([c])) for d in (first, second))
        return float(one[0]), float(two[0])

    def tells(a: Vectors, b: Vectors, c: float) -> bool:
        return bool(_differ(*(np.array([r]) for r in results(a, b, c)))[0])

    for k in np.nonzero(a * b)[0]:
        without = a.copy()
        without[k] = 0.0
        if tells(without, b, c):
            a = without
    a, b = np.where(b != 0, a, 0.0), np.where(a != 0, b, 0.0)
    if tells(a, b, 0.0):
        c = 0.0
    for k in np.nonzero(a)[0]:
        for vector, dtypes in ((a, kinds[0::2]), (b, kinds[1::2])):
            before = vector[k]
            for simple in (np.sign(before), np.sign(before) * 2.0 ** np.floor(np.log2(abs(before)))):
                vector[k] = _common(np.array([simple]), *dtypes)[0]
                if tells(a, b, c):
                    break
                vector[k] = before
    used = np.nonzero(a)[0]
    first_places = np.arange(len(used))
    front = np.zeros_like(a), np.zeros_like(b)
    front[0][first_places], front[1][first_places] = a[used], b[used]
    if tells(*front, c):
        a, b = front
    exact = Fraction(float(c)) + sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True))
    one, two = results(a, b, c)
    vectors = tuple(float(x) for x in a), tuple(float(y) for y in b)
    return Discriminating((first.name, second.name), *vectors, float(c), (one, two), float(exact))
