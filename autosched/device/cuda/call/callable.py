"""`CudaKernel`: a built candidate as a function of arrays.

    kernel = study.best.build()
    c = kernel(a, b)                            # numpy in, numpy out
    kernel(x, w, out)                           # on the GPU already: nothing is copied
    fast = kernel.prepack(W=w)                  # W is laid out once
    fast(x, out)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autosched.codegen.call.callable import bound_already
from autosched.codegen.cuda import CudaSource, print_cuda
from autosched.codegen.cuda.launch import Launch
from autosched.codegen.lower import lower
from autosched.device.cuda.build import calls_of, memory_of
from autosched.device.cuda.call.arrays import Argument, in_host, on_card
from autosched.device.cuda.call.function import CudaFunction
from autosched.device.cuda.call.loaded import LoadedLaunches
from autosched.device.cuda.compile.builder import CudaBuilder, TranslationUnit
from autosched.device.cuda.driver import Card, CudaError, shared_card
from autosched.device.cuda.launch_job import LaunchCall
from autosched.errors import UsageError
from autosched.ir.arguments import all_constants
from autosched.ir.data import require_data
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tiling.candidate import Candidate


class CudaKernel(CudaFunction):
    """A printed kernel with its machine code, called as `CudaFunction` says. Constants are laid out in each call,
    unless `prepack` did it once."""

    def __init__(
        self,
        program: Program,
        source: CudaSource,
        code: bytes,
        ordinal: int = 0,
        cards: Callable[[int], Card] = shared_card,
    ) -> None:
        self.printed, self.code = source, code
        super().__init__(program, program.parameters, ordinal, cards)

    @staticmethod
    def build(candidate: Candidate, target: Target, builder: CudaBuilder, ordinal: int = 0) -> CudaKernel:
        """Lower, print and compile. CudaCompileError, MissingError."""
        source = print_cuda(lower(candidate.plan, candidate.schedule), target)
        cubin = builder.build(TranslationUnit(source.text, source.plan.arch, source.headers))
        return CudaKernel(candidate.plan.program, source, cubin.code, ordinal)

    @property
    def source(self) -> str:
        """The CUDA C++ text."""
        return self.printed.text

    @property
    def constants(self) -> tuple[str, ...]:
        """The program's `const` tensors, in order."""
        return self.program.constants

    def __repr__(self) -> str:
        return f"<CudaKernel {self.program.signature} for {self.printed.arch}; .source is its CUDA>"

    def __reduce__(self) -> tuple[Any, ...]:
        return CudaKernel, (self.program, self.printed, self.code, self.ordinal)

    def prepack(self, **consts: Any) -> CudaFunction:
        """Bind all `const` tensors by name and lay them out once, which is waited for; answers a function of the other
        parameters, on the GPU that holds the constants. Arrays on the GPU are used where they are, and kept."""
        return _Prepacked(self, all_constants(self.program, consts))

    def load_on(self, card: Card) -> LoadedLaunches:
        plan = self.printed.plan
        return self.load(card, (*plan.prepare, *plan.launches), self.parameters, {})

    def load(
        self, card: Card, launches: Sequence[Launch], names: Sequence[str], fixed: Mapping[str, int]
    ) -> LoadedLaunches:
        """The code on a GPU, for calls of these launches with the parameters `names`. UsageError where it was built
        for another GPU."""
        plan = self.printed.plan
        tensors = [n for n in names if n in self.program.tensors]
        order = [n for n in names if n in self.program.scalars]

        always = None if order else calls_of(launches, {})

        def calls(scalars: Sequence[bytes]) -> tuple[LaunchCall, ...]:
            return calls_of(launches, dict(zip(order, scalars, strict=True))) if always is None else always

        try:
            return LoadedLaunches(card, memory_of(plan, self.code), calls, tensors, fixed)
        except CudaError as error:
            if error.code != "CUDA_ERROR_NO_BINARY_FOR_GPU":
                raise
            said = f"{self.program.name} was built for {plan.arch}, which this GPU does not run"
            raise UsageError(said, hint="tune it for this GPU, or move the arrays") from error


class _Prepacked(CudaFunction):
    """A kernel whose constants are bound and laid out on one GPU. It owns what was laid out, and copies of constants
    that were in host memory."""

    def __init__(self, kernel: CudaKernel, consts: Mapping[str, Any]) -> None:
        program, plan = kernel.program, kernel.printed.plan
        rest = tuple(p for p in program.parameters if p not in consts)
        super().__init__(program, rest, kernel.ordinal, kernel.cards)
        self.kernel, self.consts = kernel, consts  # arrays on the GPU stay where they are
        self._owned: list[int] = []
        self._arguments: list[Argument] = []
        self.ordinal, stream = self.place(list(consts.values()))
        self._card = card = self.cards(self.ordinal)
        for name, array in consts.items():
            tensor, library = program.tensors[name], self._library(array)
            if library is None:
                found = in_host(tensor, array, False)
                require_data(program, {name: array})
            else:
                found = on_card(tensor, library.described(tensor, array), False, self.ordinal)
            self._arguments.append(found)
        on = int(card.stream) if stream is None else stream
        with card.current():
            if card.recording(on):
                raise UsageError("prepack while a CUDA graph is recorded", hint="prepack before that")
            fixed = {a.name: self._resident(a) for a in self._arguments}
            fixed |= {w.name: self._allocated(w.bytes) for w in plan.packed}
            card.wait("copying to the device", 0)
        loaded = kernel.load(card, plan.launches, rest, fixed)
        loaded.prepare(calls_of(plan.prepare, {}), on)
        self._on[self.ordinal] = loaded

    def __repr__(self) -> str:
        return f"<Prepacked {', '.join(self.consts)} of {self.kernel!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        said = f"the constants of {self.program.name} are on a GPU, which no pickle holds"
        raise UsageError(said, hint="pickle the kernel, and prepack after loading it")

    def prepack(self, **consts: Any) -> CudaFunction:
        """Always a UsageError: constants are bound once."""
        raise bound_already(self.consts)

    def bound(self) -> Sequence[Argument]:
        return [a for a in self._arguments if a.address is not None]

    def load_on(self, card: Card) -> LoadedLaunches:
        hint = "pass arrays of that device, or prepack there too"
        raise UsageError(f"the constants of {self.program.name} are on CUDA device {self.ordinal}", hint=hint)

    def _resident(self, argument: Argument) -> int:
        """The address of a constant on the GPU, where it goes if it is not there."""
        if argument.address is not None:
            return argument.address
        address = self._allocated(argument.size)
        self._card.upload(address, argument.host)
        return address

    def _allocated(self, size: int) -> int:
        self._owned.append(self._card.allocate(size))
        return self._owned[-1]

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be ending
            for loaded in self._on.values():
                loaded.close()
            with self._card.current():
                for address in self._owned:
                    self._card.free(address)
