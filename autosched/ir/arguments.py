"""What a caller passes for a program's parameters: taken as the number that it is, or refused.

>>> from autosched.ir import parse
>>> program = parse('''
... def shift(A: s32[n], s: s32, C: s32[n], *, n=8):
...     for i in range(n):
...         C[i] = A[i] + s
... ''')
>>> s = GivenScalar.of(program, "s")
>>> s.number(7), s.number(np.int8(-1))
(7, -1)
>>> s.number(2**40)
Traceback (most recent call last):
    ...
autosched.errors.UsageError: the scalar s is s32, and 1099511627776 is not in -2147483648 to 2147483647
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from autosched.errors import UnknownNameError, UsageError
from autosched.ir.dtypes import DType
from autosched.ir.nodes import Tensor
from autosched.ir.oracle.assumed import assumed_range
from autosched.ir.oracle.numerics import Array, round_float, store
from autosched.ir.program import Program

_INTEGERS: frozenset[type] = frozenset([int, *(np.dtype(f"{s}{n}").type for s in "iu" for n in (1, 2, 4, 8))])
_FLOATS: frozenset[type] = frozenset([float, np.float16, np.float32, np.float64])


@dataclass(frozen=True)
class GivenScalar:
    """A run-time scalar: its type, and the least and greatest value that the program assumes (None: as the type)."""

    name: str
    dtype: DType
    least: float | None = None
    most: float | None = None

    @classmethod
    def of(cls, program: Program, name: str) -> GivenScalar:
        return cls(name, program.scalars[name].dtype, *assumed_range(program, name))

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Least and greatest finite value, both whole where the type is."""
        low, high = self.dtype.limits if self.dtype.is_integer else (-greatest(self.dtype), greatest(self.dtype))
        return low if self.least is None else max(low, self.least), high if self.most is None else min(high, self.most)

    @property
    def assumed(self) -> bool:
        """Whether the program states a range."""
        return self.least is not None or self.most is not None

    def number(self, given: Any) -> Any:
        """The Python number that `given` is: whole for an integer type (2.0 is 2), else a float, not rounded yet.
        UsageError for what is no number, and for one that the type does not hold or the program assumes away."""
        value = _plain(given)
        if value is None:
            raise UsageError(f"the scalar {self.name} is {self.dtype}, and {given!r} is no number", hint=self._hint)
        if self.dtype.is_integer:
            if not isinstance(value, int) and not value.is_integer():
                raise UsageError(f"the scalar {self.name} is {self.dtype}, and {given!r} is no integer")
            value = int(value)
        low, high = self.limits
        beyond = isinstance(value, float) and math.isinf(value) and not bool(given == value)  # Decimal("1e400")
        special = isinstance(value, float) and not math.isfinite(value) and not beyond
        if not low <= value <= high and not (special and self._holds(value)):
            raise UsageError(f"the scalar {self.name} is {self.dtype}, and {given!r} is not in {low} to {high}")
        return value if self.dtype.is_integer else float(value)

    def stored(self, given: Any) -> Array:
        """The element of a checked number, rounded once: a numpy array of rank 0. Raises as `number` does."""
        value = self.number(given)
        if self.dtype.is_integer:
            return np.asarray(value).astype(self.dtype.numpy)
        rounded: Array = np.asarray(store(np.asarray(round_float(np.float64(value), self.dtype)), self.dtype))
        return rounded

    @property
    def quick(self) -> Callable[[Any], Any]:
        """`number` as a function for every call: of the usual types, a comparison."""
        low, high = self.limits
        kind, number = int if self.dtype.is_integer else float, self.number
        usual = _INTEGERS if self.dtype.is_integer else _FLOATS

        def checked(given: Any) -> Any:
            if type(given) in usual:
                value = kind(given)
                if low <= value <= high:
                    return value
            return number(given)

        return checked

    @property
    def _hint(self) -> str:
        return f"pass {'an integer' if self.dtype.is_integer else 'a float'}"

    def _holds(self, special: float) -> bool:
        """Whether the type has this infinity or NaN, and the program does not state a range."""
        if self.assumed:
            return False
        with np.errstate(all="ignore"):
            kept = float(np.asarray(special).astype(self.dtype.numpy))
        return math.isnan(kept) if math.isnan(special) else kept == special


def greatest(dtype: DType) -> float:
    """The greatest finite number that rounds to a finite value of the type."""
    largest = dtype.greatest
    if dtype.name == "f64":
        return largest
    # What lies half a unit in the last place above it is the first that may round away.
    half = math.ulp(largest) * 2.0 ** (52 - dtype.mantissa - 1)
    return math.nextafter(largest + half, 0.0)


def given_by_name(
    program: Program, wanted: Sequence[str], arrays: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """What a call of a kernel was given, in order and by name, for these parameters: pure outputs may be left out, all
    of them or none in order. UsageError for what is missing, twice or too many; UnknownNameError."""
    needed = [p for p in wanted if p in program.inputs or p in program.scalars]
    slots = list(wanted) if len(arrays) > len(needed) else needed
    listed = f"pass {', '.join(slots)}"
    if len(arrays) > len(slots):
        raise UsageError(f"{program.name} takes {len(slots)} arguments, got {len(arrays)}", hint=listed)
    given = dict(zip(slots, arrays, strict=False))
    for name, value in named.items():
        if name not in wanted:
            raise UnknownNameError("argument", name, wanted)
        if name in given:
            raise UsageError(f"the argument {name} is given twice")
        given[name] = value
    missing = next((n for n in needed if n not in given), None)
    if missing is not None:
        lacking = f"value for the scalar {missing}" if missing in program.scalars else f"array for {missing}"
        raise UsageError(f"no {lacking}", hint=listed)
    return given


def all_constants(program: Program, consts: Mapping[str, Any]) -> dict[str, Any]:
    """The program's `const` tensors as `prepack` was given them, in order. UsageError, UnknownNameError."""
    for name in consts:
        if name not in program.constants:
            raise UnknownNameError("const tensor", name, program.constants)
    for name in program.constants:
        if name not in consts:
            raise UsageError(f"prepack needs the const tensor {name}", hint=f"pass {name}=array")
    return {name: consts[name] for name in program.constants}


def refuse_unfit(tensor: Tensor, array: Any, written: bool, wrong: str = "not a numpy array") -> None:
    """UsageError for what is no numpy array of the tensor's type, shape and layout; `wrong` says what else it is."""
    name, stored = tensor.name, np.dtype(tensor.dtype.numpy)
    refuse_masked(name, array)
    fine = isinstance(array, np.ndarray) and array.dtype == stored and array.shape == tensor.extents
    expected = "" if fine else f"{stored}{list(tensor.extents)}"
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{name} is a {type(array).__name__}, {wrong}", hint=f"pass {expected}")
    if not fine:
        raise UsageError(f"{name} is {array.dtype}{list(array.shape)}", hint=f"the kernel takes {expected}")
    if not array.flags.c_contiguous:
        raise UsageError(f"{name} is not contiguous", hint="pass np.ascontiguousarray(…)")
    if written and not array.flags.writeable:
        raise UsageError(f"{name} is written, and the array is read-only")


def refuse_masked(name: str, array: Any) -> None:
    """UsageError for an array with a mask: kernels compute with every element."""
    if isinstance(array, np.ma.MaskedArray):
        raise UsageError(f"{name} is a masked array, and masks are not looked at", hint=f"pass {name}.filled(value)")


def _plain(given: Any) -> Any:
    """The int or float that a number of Python, numpy or another library is; None for anything else."""
    kind = type(given)
    if kind is int or kind is float:
        return given
    if isinstance(given, (str, bytes, np.character, np.complexfloating)) or getattr(given, "ndim", 0) != 0:
        return None
    if isinstance(given, np.ma.MaskedArray) or (isinstance(given, np.ndarray) and given.dtype.kind in "cSUOMm"):
        return None
    try:
        return operator.index(given)
    except TypeError:
        pass
    if not hasattr(kind, "__float__"):
        return None
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError):
        return None
