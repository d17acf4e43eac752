"""`CudaKernel`: a built candidate as a function of arrays.

>>> kernel = study.best.build()                    # doctest: +SKIP
>>> c = kernel(a, b)                               # numpy in, numpy out                             # doctest: +SKIP
>>> kernel(x, w, out)                              # on the card already: nothing is copied          # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from autosched.codegen.cuda import CudaSource, print_cuda
from autosched.codegen.lower import lower
from autosched.device.cuda.arrays import Argument, checked, refuse_overlap
from autosched.device.cuda.build import job_of
from autosched.device.cuda.builder import CudaBuilder, Source
from autosched.device.cuda.driver import Card
from autosched.errors import UnknownNameError, UsageError
from autosched.ir.data import require_data
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tiling.schedule import Candidate


class CudaKernel:
    """A printed kernel with its machine code. The card is taken at the first call, the primary context of this process:
    PyTorch and CuPy use the same.

    Parameters in order or by name, run-time scalars among them. Pure outputs may be left out where all arrays are
    numpy's. UsageError for arrays of another type, shape or layout, on another device, misaligned or overlapping.
    """

    def __init__(self, program: Program, source: CudaSource, code: bytes, card: Card | None = None) -> None:
        self.program, self.printed, self.code = program, source, code
        self._card = card

    @staticmethod
    def build(candidate: Candidate, target: Target, builder: CudaBuilder) -> CudaKernel:
        """Lower, print and compile. CompileError, MissingError."""
        source = print_cuda(lower(candidate.plan, candidate.schedule), target)
        cubin = builder.build(Source(source.text, source.plan.arch, source.headers))
        return CudaKernel(candidate.plan.program, source, cubin.code)

    @property
    def source(self) -> str:
        """The CUDA C++ text."""
        return self.printed.text

    @cached_property
    def card(self) -> Card:
        return self._card or Card()

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Run once and wait. Answers the output, a tuple of several."""
        given = self._bind(arrays, named)
        scalars = {n: given.pop(n) for n in self.program.scalars}
        arguments = self._arguments(given)
        require_data(self.program, {n: a.host for n, a in arguments.items() if a.host is not None})
        job = job_of(self.printed.plan, self.code, scalars)
        card = self.card
        owned: list[int] = []
        addresses: dict[str, int] = {}
        module = card.load(self.code)
        try:
            for name, argument in arguments.items():
                if argument.address is None:
                    owned.append(card.allocate(argument.size))
                    addresses[name] = owned[-1]
                    if name in self.program.inputs:
                        card.upload(owned[-1], argument.host)
                else:
                    addresses[name] = argument.address
            for name, held in job.held.items():
                owned.append(card.allocate(held.bytes))
                addresses[name] = owned[-1]
            card.settle()
            for call in (*job.prepare, *job.calls):
                card.launcher(module, call, addresses, job.maps)()
            card.wait("running")
            for name in self.program.outputs:
                if arguments[name].address is None:
                    card.download(arguments[name].host, addresses[name])
        finally:
            for address in owned:
                card.free(address)
            card.unload(module)
        outputs = tuple(given[n] for n in self.program.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _bind(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Every parameter's value; outputs that were left out are new numpy arrays."""
        program = self.program
        free = [n for n in program.outputs if n not in program.inputs]
        needed = [p for p in program.parameters if p not in free]
        slots = list(program.parameters) if len(arrays) > len(needed) else needed
        if len(arrays) > len(slots):
            hint = f"pass {', '.join(slots)}"
            raise UsageError(f"{program.name} takes {len(slots)} arguments, got {len(arrays)}", hint=hint)
        given = dict(zip(slots, arrays, strict=False))
        for name, value in named.items():
            if name not in program.parameters:
                raise UnknownNameError("argument", name, program.parameters)
            if name in given:
                raise UsageError(f"the argument {name} is given twice")
            given[name] = value
        on_card = any(hasattr(v, "__cuda_array_interface__") for v in given.values())
        for name in program.parameters:
            if name in given:
                continue
            if name not in free:
                raise UsageError(f"no value for {name}", hint=f"pass {', '.join(slots)}")
            if on_card:
                raise UsageError(f"no array for {name}", hint="with arrays on the card, pass one for each output too")
            tensor = program.tensors[name]
            given[name] = np.zeros(tensor.extents, tensor.dtype.numpy)
        return {name: given[name] for name in program.parameters}

    def _arguments(self, given: Mapping[str, Any]) -> dict[str, Argument]:
        program = self.program
        found = {n: checked(program.tensors[n], a, n in program.written) for n, a in given.items()}
        for argument in found.values():
            if argument.address is not None:
                self.card.require_own(argument.address, argument.name)
        refuse_overlap(program.outputs, found)
        return found
