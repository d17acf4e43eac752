"""The sums of `Numerics` on arrays: a block of products added to an accumulator.

Every function takes container values: `acc` of shape (n,), factors `left` and `right` of shape (terms, n) (or one
array `left` of whole terms, where `right` is None), and answers the accumulator's new values, rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle.evaluate import call
from autosched.ir.oracle.numerics import container
from autosched.tensorize.numerics.contract import Numerics
from autosched.tensorize.numerics.rounding import add_odd, exponents, flush, rounded


@dataclass(frozen=True)
class Adder:
    """Adds under one contract into an accumulator of `dtype`; `factors` are the types of the elements multiplied."""

    numerics: Numerics
    dtype: DType
    factors: tuple[DType, DType]

    def issue(self, acc: Any, left: Any, right: Any | None) -> Any:
        """The accumulator after all products, shape (terms, n), of one issue."""
        numerics, acc = self.numerics, self._flushed(np.asarray(acc))
        if numerics.order:
            order = list(numerics.order)
            left, right = left[order], None if right is None else right[order]
        start = np.zeros_like(acc) if numerics.start == "zero" else acc
        if numerics.sum == "lanes":
            total = self._lanes(start, left, right)
        else:
            total = start
            count = len(left)
            size = numerics.terms or count
            for first in range(0, count, size):
                span = slice(first, first + size)
                total = self._block(total, left[span], None if right is None else right[span])
        return self.add(acc, total, "rne") if numerics.start == "zero" else total

    def issue_aligned(self, acc: Any, terms: Any, places: Any) -> Any:
        """As `issue`, of exact terms (one for each group) and the exponents by which they are aligned."""
        numerics, acc = self.numerics, self._flushed(np.asarray(acc))
        if numerics.order:
            order = list(numerics.order)
            terms, places = terms[order], places[order]
        total = np.zeros_like(acc) if numerics.start == "zero" else acc
        size = (numerics.terms or len(terms) * numerics.group) // numerics.group
        for first in range(0, len(terms), size):
            total = self._aligned(total, terms[first : first + size], places[first : first + size])
        return self.add(acc, total, "rne") if numerics.start == "zero" else total

    def _block(self, acc: Any, left: Any, right: Any | None) -> Any:
        match self.numerics.sum:
            case "aligned":
                with np.errstate(all="ignore"):
                    return self._aligned(acc, *self._terms(left, right))
            case "tree":
                terms = [self._product(x, None if right is None else right[n]) for n, x in enumerate(left)]
                return self.add(acc, self._pairwise(terms))
            case _:
                return self._chain(acc, left, right)

    def _flushed(self, values: Any) -> Any:
        return flush(values, self.dtype) if self.numerics.flushed else values

    def add(self, a: Any, b: Any, mode: str | None = None) -> Any:
        """One rounded addition."""
        if self.dtype.name == "f64":
            return self._flushed(a + b)
        return self._flushed(rounded(add_odd(a, b), self.dtype, mode or self.numerics.rounding))

    def _product(self, left: Any, right: Any | None) -> Any:
        """One rounded product, or a term as it is."""
        if right is None:
            return left
        if self.dtype.name == "f64":
            return self._flushed(left * right)
        exact = left.astype(np.float64) * right  # at most 48 bits
        return self._flushed(rounded(exact, self.dtype, self.numerics.rounding))

    def _multiply_add(self, acc: Any, left: Any, right: Any) -> Any:
        if self.dtype.name == "f64":
            return self._flushed(call("fma", [left, right, acc], self.dtype))
        exact = left.astype(np.float64) * right
        return self._flushed(rounded(add_odd(exact, acc), self.dtype, self.numerics.rounding))

    def _chain(self, acc: Any, left: Any, right: Any | None) -> Any:
        for n, x in enumerate(left):
            if right is not None and self.numerics.fused:
                acc = self._multiply_add(acc, x, right[n])
            else:
                acc = self.add(acc, self._product(x, None if right is None else right[n]))
        return acc

    def _pairwise(self, terms: list[Any]) -> Any:
        if len(terms) == 1:
            return terms[0]
        half = len(terms) // 2
        return self.add(self._pairwise(terms[:half]), self._pairwise(terms[half:]))

    def _lanes(self, acc: Any, left: Any, right: Any | None) -> Any:
        count = self.numerics.terms or 1
        zero = np.zeros_like(acc)
        sums = [self._chain(zero, left[k::count], None if right is None else right[k::count]) for k in range(count)]
        return self.add(acc, self._pairwise(sums))

    def _aligned(self, acc: Any, terms: Any, places: Any) -> Any:
        numerics = self.numerics
        assert numerics.fraction_bits is not None
        with np.errstate(all="ignore"):
            start = np.asarray(acc, np.float64)
            plain = terms.sum(axis=0) + start  # infinities and NaN come out as IEEE says
            finite = np.isfinite(terms).all(axis=0) & np.isfinite(start)
            terms, start = np.where(finite, terms, 0.0), np.where(finite, start, 0.0)
            own = exponents(start, self.dtype)
            if numerics.sum_bits is None:
                top = np.maximum(places.max(axis=0), own)
                total = _cut(np.concatenate([terms, start[None]]), numerics.fraction_bits - top).sum(axis=0)
                total = np.ldexp(total, top - numerics.fraction_bits)
            else:
                assert numerics.accumulator_bits is not None
                total = self._two_stages(terms, places, start, own)
            result = rounded(total, self.dtype, numerics.rounding, numerics.result_bits)
            return self._flushed(np.where(finite, result + 0.0, rounded(plain, self.dtype, "rne")))

    def _two_stages(self, terms: Any, places: Any, start: Any, own: Any) -> Any:
        """The products' own sum, then that and the accumulator, cut downwards where they are aligned."""
        numerics = self.numerics
        bits = numerics.fraction_bits
        assert bits is not None
        top = places.max(axis=0)
        total = np.zeros_like(start)
        for k in range(numerics.parts):
            own_top = places[k :: numerics.parts].max(axis=0)
            part = _cut(terms[k :: numerics.parts], bits - own_top).sum(axis=0)
            total += _floored(np.ldexp(part, own_top - bits), bits, top)
        highest = np.maximum(top, own)
        if numerics.accumulator_reach is not None:
            start = np.where(own >= highest - numerics.accumulator_reach, start, 0.0)
        assert numerics.sum_bits is not None
        assert numerics.accumulator_bits is not None
        return add_odd(_floored(total, numerics.sum_bits, highest), _floored(start, numerics.accumulator_bits, highest))

    def _terms(self, left: Any, right: Any | None) -> tuple[Any, Any]:
        """Exact products and their exponents; the exponent of a product is the sum of its factors'."""
        if right is None:
            return np.asarray(left, np.float64), exponents(left, self.dtype)
        types = self.factors
        if self.numerics.operands_as is not None:
            types = (DTYPES[self.numerics.operands_as],) * 2
        found = left.astype(np.float64) * right
        return found, exponents(left, types[0]) + exponents(right, types[1])


def _cut(values: Any, scale: Any) -> Any:
    """Whole numbers: values · 2^scale towards zero."""
    return np.trunc(np.ldexp(values, np.minimum(scale, 2000)))


def _floored(values: Any, bits: int, top: Any) -> Any:
    """Values cut downwards to `bits` below 2^top."""
    return np.ldexp(np.floor(np.ldexp(values, np.minimum(bits - top, 2000))), top - bits)


def plain_fold(op: str, dtype: DType, flushed: bool) -> Any:
    """The function `(accumulator, term)` of an assignment's operator other than a float sum."""
    from autosched.ir.oracle.evaluate import arith

    operation = {"+=": "+", "-=": "-", "*=": "*", "min=": "min", "max=": "max"}.get(op)

    def fold(acc: Any, term: Any) -> Any:
        if operation is None:
            found = np.asarray(term, container(dtype))
            found = found if found.shape == np.shape(acc) else np.broadcast_to(found, np.shape(acc))
        else:
            found = arith(operation, flush(acc, dtype) if flushed else acc, term, dtype)
        return flush(found, dtype) if flushed else found

    return fold
