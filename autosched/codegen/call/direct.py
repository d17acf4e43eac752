"""`Direct`: calls of compiled code on numpy arrays in about a microsecond.

A function in machine code stands before the kernel's. It is passed the arrays themselves, looks at the type, shape,
layout and place of each, and calls the kernel where all is as it should be. Anything unusual is left to the general
way of calling, which says what is wrong. Shapes, types and fixed pointers are constants in that function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numpy import ndarray, uint8, zeros

from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import scalar_type
from autosched.errors import UsageError
from autosched.ir.dtypes import DType

Array = npt.NDArray[Any]
ALIGNMENT = 64
"""A cache line, and the widest vector register, in bytes: where outputs begin that a call makes."""
SMALL = 1 << 13
"""Outputs below so many bytes lie where NumPy puts them: to align them takes longer than it saves."""
UNUSUAL: Final = object()
"""Answered in place of a result: nothing was called."""
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
"""Bits of an array's flags, as `flags.num` has them."""


class _Fields(ctypes.Structure):
    """An array in memory: PyArrayObject of NumPy's C interface, which extensions are compiled against."""

    _fields_ = (
        ("header", ctypes.c_char * (object.__basicsize__ - 8)),
        ("type", ctypes.c_size_t),
        ("data", ctypes.c_size_t),
        ("rank", ctypes.c_int),
        ("extents", ctypes.c_size_t),
        ("strides", ctypes.c_size_t),
        ("base", ctypes.c_size_t),
        ("dtype", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


def _readable() -> bool:
    """Whether arrays lie in memory as `_Fields` says, looked up in some."""
    whole = np.arange(8, dtype=np.float32)
    frozen = whole.copy()
    frozen.flags.writeable = False
    for array in (whole, whole[3:], whole.reshape(2, 4), whole.reshape(2, 4).T, frozen, np.zeros((), np.int8)):
        seen = _Fields.from_address(id(array))
        extents = (ctypes.c_ssize_t * array.ndim).from_address(seen.extents)[:] if array.ndim else []
        found = (seen.type, seen.data, seen.rank, tuple(extents), seen.dtype, seen.flags)
        told = (id(np.ndarray), array.ctypes.data, array.ndim, array.shape, id(array.dtype), array.flags.num)
        if found != told:
            return False
    return True


_DATA, _word_at = _Fields.data.offset, ctypes.c_size_t.from_address
READABLE = _readable()
"""Where not, every call goes the general way."""


@dataclass(frozen=True, slots=True)
class TensorParameter:
    """A tensor parameter. `place` is its number among the kernel's arguments, -1 where it takes none of this name."""

    dtype: DType
    shape: tuple[int, ...]
    written: bool
    place: int

    @property
    def stored(self) -> np.dtype[Any]:
        stored: np.dtype[Any] = np.dtype(self.dtype.numpy)
        return stored

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.stored.itemsize


class Direct:
    """The kernel at `address`, called on `tensors`, by name in the order of the parameters, and `scalars`, each after
    those tensors that stand before it. `fixed` has the kernel's pointers where no tensor goes; `held` are arrays that
    a written one must not overlap. `free` are outputs that a call may leave out, made of zeros then, `outputs` what it
    answers."""

    def __init__(
        self,
        address: int,
        parameters: Sequence[str],
        tensors: Mapping[str, TensorParameter],
        scalars: Mapping[str, tuple[DType, Any, Any]],
        fixed: Sequence[int],
        free: Sequence[str],
        outputs: Sequence[str],
        held: Sequence[Array] = (),
    ) -> None:
        self._dtypes = [t.stored for t in tensors.values()]  # the code has their addresses
        spans = [(a.ctypes.data, a.nbytes) for a in held]
        types = [scalar_type(dtype) for dtype, _, _ in scalars.values()]
        self._module = load("\n".join(_text(address, list(tensors.values()), types, fixed, spans)) + "\n")
        kinds = [ctypes.c_size_t] * len(tensors) + [kind for _, kind, _ in scalars.values()]
        self._function = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(self._module.address("call"))
        self._count = len(parameters)
        self._arrays = [n for n, p in enumerate(parameters) if p in tensors]
        self._scalars = [(n, scalars[p][2]) for n, p in enumerate(parameters) if p in scalars]
        made = [(n, tensors[p]) for n, p in enumerate(parameters) if p in free]
        self._made = [(n, t.shape, t.stored, t.bytes + ALIGNMENT) for n, t in made]
        self._answers = [n for n, p in enumerate(parameters) if p in outputs]
        self._named = dict(_named(list(parameters), [p for p in parameters if p not in free]))

    def call(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """The result, or UNUSUAL. `given` and `named` are the values of all parameters, or of all but the free
        outputs."""
        if named:
            rest = self._named.get((len(given), len(named)))
            if rest is None:
                return UNUSUAL
            try:
                given = given + rest(named)
            except KeyError:
                return UNUSUAL
        if len(given) != self._count:
            if len(given) != self._count - len(self._made):
                return UNUSUAL
            all_ = list(given)
            for at, shape, dtype, size in self._made:
                if size < SMALL:
                    all_.insert(at, zeros(shape, dtype))
                    continue
                raw = zeros(size, uint8)
                all_.insert(at, ndarray(shape, dtype, raw, -_word_at(id(raw) + _DATA).value % ALIGNMENT))
            given = tuple(all_)
        if self._scalars:
            passed = [id(given[n]) for n in self._arrays]
            try:
                passed += [convert(given[n]) for n, convert in self._scalars]
            except UsageError:  # something else may be wrong, which is said first
                return UNUSUAL
        else:
            passed = list(map(id, given))
        if self._function(*passed):
            return UNUSUAL
        answers = self._answers
        return given[answers[0]] if len(answers) == 1 else tuple(given[n] for n in answers)


def _named(every: list[str], needed: list[str]) -> Iterator[tuple[tuple[int, int], Callable[[Any], tuple[Any, ...]]]]:
    """For each number of values in order, with the number of values by name that complete `every` or `needed`: what
    takes those by name, in the parameters' order. Values in order end where the two differ."""
    alike = next((n for n, (a, b) in enumerate(zip(every, needed, strict=False)) if a != b), len(needed))
    for parameters in (needed, every):
        for given in range(min(alike + 1, len(parameters))):
            first, *others = parameters[given:]
            taken = itemgetter(first, *others) if others else _one(first)
            yield (given, 1 + len(others)), taken


def _one(name: str) -> Callable[[Any], tuple[Any, ...]]:
    """`itemgetter` answers no tuple where it takes one."""
    return lambda named: (named[name],)


def _text(
    address: int,
    tensors: Sequence[TensorParameter],
    scalars: Sequence[str],
    fixed: Sequence[int],
    held: Sequence[tuple[int, int]],
) -> Iterator[str]:
    """LLVM's text of `i32 call(arrays…, scalars…)`, which answers 0 where it has called the kernel, else 1."""
    parameters = [f"i64 %a{k}" for k in range(len(tensors))] + [f"{t} %s{k}" for k, t in enumerate(scalars)]
    yield f"define i32 @call({', '.join(parameters)}) {{"
    number = 0

    def needed(*lines: str) -> Iterator[str]:
        """What comes after is done where the last line's truth holds."""
        nonlocal number
        number += 1
        yield from (line.replace("?", f"%c{number}", 1) if line.startswith("?") else line for line in lines)
        yield f"br i1 %c{number}, label %l{number}, label %no"
        yield f"l{number}:"

    for k, t in enumerate(tensors):
        def field(name: str, type_: str, k: int = k) -> list[str]:
            at, offset = f"%{name}_at{k}", getattr(_Fields, name).offset
            return [f"{at} = getelementptr i8, ptr %p{k}, i64 {offset}", f"%{name}{k} = load {type_}, ptr {at}"]

        yield f"%p{k} = inttoptr i64 %a{k} to ptr"
        yield from needed(*field("type", "i64"), f"? = icmp eq i64 %type{k}, {id(np.ndarray)}")
        yield from needed(*field("dtype", "i64"), f"? = icmp eq i64 %dtype{k}, {id(t.stored)}")
        yield from needed(*field("rank", "i32"), f"? = icmp eq i32 %rank{k}, {len(t.shape)}")
        yield from field("extents", "ptr")
        for d, extent in enumerate(t.shape):
            yield f"%n_at{k}.{d} = getelementptr i64, ptr %extents{k}, i64 {d}"
            yield f"%n{k}.{d} = load i64, ptr %n_at{k}.{d}"
            yield from needed(f"? = icmp eq i64 %n{k}.{d}, {extent}")
        flags = _CONTIGUOUS | _ALIGNED | (_WRITEABLE if t.written else 0)
        some = [*field("flags", "i32"), f"%f{k} = and i32 %flags{k}, {flags}"]
        yield from needed(*some, f"? = icmp eq i32 %f{k}, {flags}")
        yield from field("data", "i64")
        yield f"%end{k} = add i64 %data{k}, {t.bytes}"
        yield f"%pointer{k} = inttoptr i64 %data{k} to ptr"

    spans = [(f"%data{k}", f"%end{k}") for k in range(len(tensors))]
    spans += [(str(start), str(start + size)) for start, size in held]
    for a, t in enumerate(tensors):
        for b in range(len(spans)) if t.written else ():
            if b != a and not (b < a and tensors[b].written):
                before, after = f"%before{a}.{b}", f"%after{a}.{b}"
                lines = [f"{before} = icmp ule i64 {spans[a][1]}, {spans[b][0]}"]
                lines += [f"{after} = icmp ule i64 {spans[b][1]}, {spans[a][0]}", f"? = or i1 {before}, {after}"]
                yield from needed(*lines)
    at = {t.place: f"ptr %pointer{k}" for k, t in enumerate(tensors)}
    arguments = [at.get(place, f"ptr inttoptr (i64 {pointer} to ptr)") for place, pointer in enumerate(fixed)]
    arguments += [f"{t} %s{k}" for k, t in enumerate(scalars)]
    yield f"call void inttoptr (i64 {address} to ptr)({', '.join(arguments)})"
    yield from ("ret i32 0", "no:", "ret i32 1", "}")
