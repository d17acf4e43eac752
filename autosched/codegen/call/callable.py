"""`CompiledKernel`: a kernel's machine code as a function of numpy arrays.

>>> from autosched import api
>>> from autosched.codegen.llvm.machine.compile import compile_object
>>> from autosched.codegen.llvm.module import print_llvm
>>> from autosched.codegen.lower import lower
>>> from autosched.tiling.planner.plan_program import plan_program
>>> program = api.workload("matmul", m=2, n=2, k=2)
>>> plan = plan_program(program, api.target("portable"), api.catalogue(), ()).plans[0]
>>> lowered = lower(plan, plan.space.schedule(0))
>>> kernel = CompiledKernel(lowered, load(compile_object(print_llvm(lowered))))
>>> a, b = np.ones((2, 2), np.float32), np.eye(2, dtype=np.float32)
>>> kernel(a, b).tolist()
[[1.0, 1.0], [1.0, 1.0]]
>>> fast = kernel.prepack(B=b)          # B is packed once
>>> fast(a).tolist()
[[1.0, 1.0], [1.0, 1.0]]
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.c import CSource, print_c
from autosched.codegen.call.direct import ALIGNMENT, READABLE, UNUSUAL, Direct, TensorParameter
from autosched.codegen.call.index_ranges import IndexRange, index_ranges, refuse_indices
from autosched.codegen.llvm.machine.compile import host
from autosched.codegen.llvm.machine.engine import Module
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.tree.kernel import Kernel
from autosched.errors import UsageError
from autosched.ir.arguments import GivenScalar, all_constants, given_by_name, refuse_unfit
from autosched.ir.data import require_data
from autosched.ir.dtypes import DType
from autosched.ir.program import Program

Array = npt.NDArray[Any]
Call = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]
"""Runs on arguments in order and by name, or answers UNUSUAL."""


def aligned(shape: Sequence[int], dtype: DType) -> Array:
    """A zeroed array whose data starts on a multiple of 64 bytes."""
    storage = np.dtype(dtype.numpy)
    size = int(np.prod(shape, dtype=np.int64)) * storage.itemsize
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    result: Array = raw[start : start + size].view(storage).reshape(tuple(shape))
    return result


@dataclass(repr=False)
class CompiledKernel:
    """A loaded kernel. `module` holds the code of its functions (`codegen.llvm.machine.jit.load`); `target` is the name
    of the machine that it was built for; `direct`: calls on plain arrays go straight to the code.

    One call at a time: workspaces are allocated once and belong to the object. It can be pickled, with its machine
    code: processors of another kind refuse that (UsageError).
    """

    kernel: Kernel
    module: Module
    target: str = ""
    direct: bool = READABLE
    _workspaces: dict[str, Array] = field(default_factory=dict, init=False, repr=False)
    _main: Any = field(default=None, init=False, repr=False)
    _prepare: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        kernel = self.kernel
        self._main = self.module.function(
            kernel.main.name, [ctypes.c_void_p] * len(kernel.main.buffers) + [s[0] for s in self._scalar_types()]
        )
        self._prepare = {f.name: self.module.function(f.name, len(f.buffers)) for f in kernel.prepare}
        for name in {b for f in (*kernel.prepare, kernel.main) for b in f.buffers}:
            if kernel.buffers[name].scope == "workspace":
                self._workspaces[name] = aligned(kernel.buffers[name].shape, kernel.buffers[name].dtype)

    def __repr__(self) -> str:
        on = ", ".join(i.name for i in self.kernel.intrinsics) or "scalar code"
        where = f" for {self.target}" if self.target else ""
        return f"<CompiledKernel {self.kernel.program.signature}{where}, on {on}; .source is its C>"

    def __reduce__(self) -> tuple[Any, ...]:
        return loaded_again, (self.kernel, self.module.objects, self.target, host())

    # -- numpy in, numpy out ------------------------------------------------------------------------------------

    def __call__(self, /, *arrays: Any, **named: Any) -> Any:
        """Run on the program's parameters, in order or by name; pure outputs may be left out and are then allocated.

        Answers the output (a tuple where there are several). Raises UsageError for a missing argument, a wrong dtype,
        shape or layout, and for outputs that overlap another argument.
        """
        if self._direct is not None:
            result = self._direct(arrays, named)
            if result is not UNUSUAL:
                return result
        given = self._bind(arrays, named)
        return self._run(given, self.pack({n: given[n] for n in self.constants}))

    def prepack(self, **consts: Any) -> Prepacked:
        """Bind all `const` tensors by name and pack them once; answers a callable of the other parameters."""
        given = all_constants(self.kernel.program, consts)
        return Prepacked(self, {name: self._checked(name, array) for name, array in given.items()})

    @property
    def constants(self) -> tuple[str, ...]:
        """The program's `const` tensors, in order."""
        return self.kernel.program.constants

    def pack(self, consts: Mapping[str, Array]) -> dict[str, Array]:
        """Run the prepare functions; answers the packed buffers by name. UsageError for data that the kernel was not
        made for (`Program.data`)."""
        require_data(self.kernel.program, consts)
        packed: dict[str, Array] = {}
        for function in self.kernel.prepare:
            for name in function.buffers:
                buffer = self.kernel.buffers[name]
                if buffer.scope == "packed" and name not in packed:
                    packed[name] = aligned(buffer.shape, buffer.dtype)
            pointers = [self._place(name, consts, packed).ctypes.data for name in function.buffers]
            self._prepare[function.name](*pointers)
        return packed

    # -- the code -----------------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The kernel as the C that `autosched export` writes. Raises SpecError for an intrinsic that has no C text, and
        for one of your own whose text is wrong; warns of a text that could not be checked."""
        return self._printed.source

    @property
    def header(self) -> str:
        """The header that goes with `source`: the prototype, and what each argument is."""
        return self._printed.header

    @cached_property
    def _printed(self) -> CSource:
        from autosched.codegen.c.export.own_texts import doubtful  # checks load much, which calls do not need
        from autosched.tensorize.check.own import refuse_wrong

        for line in refuse_wrong(doubtful(self.kernel.intrinsics)):
            warnings.warn(line, stacklevel=4)
        return print_c(self.kernel)

    # -- for timers ---------------------------------------------------------------------------------------------

    def pointers(self, arrays: Mapping[str, Array], packed: Mapping[str, Array]) -> list[int]:
        """`main`'s pointer arguments, for `run_raw`; the caller keeps the arrays alive."""
        return [self._place(name, arrays, packed).ctypes.data for name in self.kernel.main.buffers]

    @property
    def run_raw(self) -> Any:
        """The ctypes function of `main`: call it with `pointers(…)` and then the scalars. Nothing is checked."""
        return self._main

    # -- inside -------------------------------------------------------------------------------------------------

    @cached_property
    def indices(self) -> tuple[IndexRange, ...]:
        """What is known of parameters whose elements are subscripts: each call is refused where one is outside."""
        return index_ranges(self.kernel.program)

    @cached_property
    def _direct(self) -> Call | None:
        """How calls run that pass every argument anew; None where constants have to be packed or looked at first."""
        return None if self.kernel.prepare or self.kernel.program.data else self._directly({}, {})

    def _directly(self, held: Mapping[str, Array], packed: Mapping[str, Array]) -> Call:
        if not self.direct or any(r.tensor not in held for r in self.indices):  # indices are looked at first
            return lambda arrays, named: UNUSUAL
        program, buffers = self.kernel.program, self.kernel.main.buffers
        parameters = [p for p in program.parameters if p not in held]
        places = {name: number for number, name in enumerate(buffers)}
        taken = {n: program.tensors[n] for n in parameters if n in program.tensors}
        tensors = {
            n: TensorParameter(t.dtype, t.extents, n in program.written, places.get(n, -1)) for n, t in taken.items()
        }
        kinds = zip(program.scalars.values(), self._scalar_types(), strict=True)
        scalars = {s.name: (s.dtype, *kind) for s, kind in kinds}
        fixed = {**self._workspaces, **held, **packed}
        pointers = [fixed[b].ctypes.data if b in fixed else 0 for b in buffers]
        free = [n for n in program.outputs if n not in program.inputs]
        address = self.module.address(self.kernel.main.name)
        outputs, spans = program.outputs, tuple(held.values())
        return Direct(address, parameters, tensors, scalars, pointers, free, outputs, spans).call

    def _run(self, given: Mapping[str, Any], packed: Mapping[str, Array]) -> Any:
        names = self.kernel.program.scalars
        scalars = [convert(given[s]) for s, (_, convert) in zip(names, self._scalar_types(), strict=True)]
        self._main(*self.pointers(given, packed), *scalars)
        outputs = tuple(given[n] for n in self.kernel.program.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _place(self, name: str, arrays: Mapping[str, Any], packed: Mapping[str, Array]) -> Array:
        found = packed.get(name, self._workspaces.get(name))
        array: Array = arrays[name] if found is None else found
        return array

    def _bind(
        self, arrays: tuple[Any, ...], named: Mapping[str, Any], held: Mapping[str, Array] | None = None
    ) -> dict[str, Any]:
        """Every parameter's value, those that are `held` among them."""
        program = self.kernel.program
        result: dict[str, Any] = dict(held or {})
        wanted = [p for p in program.parameters if p not in result]
        given = given_by_name(program, wanted, arrays, named)
        for name in wanted:
            if name in program.scalars:
                result[name] = given[name]
            elif name in given:
                result[name] = self._checked(name, given[name], writable=name in program.written)
            else:
                tensor = program.tensors[name]
                result[name] = aligned(tensor.extents, tensor.dtype)
        self._refuse_overlap({n: a for n, a in result.items() if n in program.tensors})
        refuse_indices(self.indices, {n: result[n] for n in wanted if n in program.inputs})
        return result

    def _checked(self, name: str, array: Any, writable: bool = False) -> Array:
        refuse_unfit(self.kernel.program.tensors[name], array, writable)
        found: Array = array
        if not found.flags.aligned:
            raise UsageError(f"{name} does not lie on whole elements of its memory", hint=f"pass a copy: {name}.copy()")
        return found

    def _refuse_overlap(self, arrays: Mapping[str, Array]) -> None:
        """Different parameters are different memory: the code relies on it where one of them is written."""
        for output in self.kernel.program.outputs:
            for name, array in arrays.items():
                if name != output and output in arrays and np.may_share_memory(arrays[output], array):
                    raise UsageError(f"{output} overlaps {name}", hint="an output needs memory of its own")

    def _scalar_types(self) -> list[tuple[Any, Callable[[Any], Any]]]:
        """For each scalar parameter: its ctypes type and the conversion to it."""
        program = self.kernel.program
        return [scalar_argument(GivenScalar.of(program, name)) for name in program.scalars]


class Prepacked:
    """A kernel whose constants are bound and packed, as a function of its other parameters (`CompiledKernel.prepack`).
    It keeps copies of the constants, since a kernel may read a constant where it lies and what was packed of it: what
    the caller writes into the arrays later changes neither. It can be pickled with them."""

    def __init__(self, kernel: CompiledKernel, given: Mapping[str, Array]) -> None:
        self._kernel = kernel
        self._held = held = {name: _copied(array, kernel.kernel.program, name) for name, array in given.items()}
        refuse_indices(kernel.indices, held)
        self._packed = kernel.pack(held)
        self._direct = kernel._directly(held, self._packed)

    def __call__(self, /, *arrays: Any, **named: Any) -> Any:
        """Run on the parameters that are left, as `CompiledKernel` does."""
        result = self._direct(arrays, named)
        if result is not UNUSUAL:
            return result
        kernel = self._kernel
        return kernel._run(kernel._bind(arrays, named, self._held), self._packed)

    def __repr__(self) -> str:
        return f"<Prepacked {', '.join(self._held)} of {self._kernel!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Prepacked, (self._kernel, self._held)

    def prepack(self, **consts: Any) -> Prepacked:
        """Always a UsageError: constants are bound once."""
        raise bound_already(self._held)

    @property
    def source(self) -> str:
        """The kernel's C, as `CompiledKernel.source`."""
        return self._kernel.source

    @property
    def header(self) -> str:
        """The header that goes with `source`."""
        return self._kernel.header


def _copied(array: Array, program: Program, name: str) -> Array:
    copy = aligned(array.shape, program.tensors[name].dtype)
    copy[...] = array
    return copy


def bound_already(consts: Iterable[str]) -> UsageError:
    """What a second `prepack` is told."""
    said = f"the constants are bound already: {', '.join(consts) or 'there are none'}"
    return UsageError(said, hint="call prepack of the kernel that study.best.build() gave")


def loaded_again(kernel: Kernel, objects: tuple[bytes, ...], target: str, built_on: tuple[str, str]) -> CompiledKernel:
    """A kernel that was pickled. UsageError where its code is for a processor of another kind."""
    if built_on != host():
        said = f"{kernel.program.signature} was built for {built_on[0]}, and this processor is {host()[0]}"
        hint = "build it here, or pass it on as C: `autosched export -o FILE.c`"
        if built_on[0] == host()[0]:
            said = f"{kernel.program.signature} was built for {built_on[0]} with other features than this one has"
        raise UsageError(said, hint=hint)
    return CompiledKernel(kernel, load(objects), target)


def scalar_argument(argument: GivenScalar) -> tuple[Any, Callable[[Any], Any]]:
    """How a run-time scalar is passed: the ctypes type, and a function from what a caller gives to it, which refuses
    what is no such number (UsageError)."""
    dtype = argument.dtype
    if dtype.name in ("f32", "f64"):
        return (ctypes.c_float if dtype.name == "f32" else ctypes.c_double), argument.quick
    if dtype.name == "tf32":
        return ctypes.c_float, lambda given: float(argument.stored(given))
    size = dtype.bytes
    kind = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}[size]
    if dtype.is_integer:
        mask, whole = (1 << dtype.bits) - 1, argument.quick
        return kind, lambda given: whole(given) & mask
    return kind, lambda given: int(argument.stored(given).view(f"u{size}"))
