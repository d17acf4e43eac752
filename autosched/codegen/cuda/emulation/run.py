"""`emulate`: a printed kernel's launches on the emulated GPU, arrays in, outputs out."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.cuda.emulation import host_text as host
from autosched.codegen.cuda.emulation.build import module
from autosched.codegen.cuda.emulation.card import card, encoded, load, memory
from autosched.codegen.cuda.emulation.violations import EmulationError, SourceLine, Violation
from autosched.codegen.cuda.launch import BufferArgument, Launch, LaunchPlan, MapArgument, ScalarArgument
from autosched.codegen.cuda.printer import print_cuda
from autosched.codegen.tree.kernel import Kernel
from autosched.errors import UsageError
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic

Array = npt.NDArray[Any]
_ALWAYS = ("autosched/types.cuh", "autosched/fragment.cuh", "autosched/convert.cuh")
"""The last: what instructions of a thread compute is printed as plain code here, which may convert."""
POISON = 0xFF
"""What memory holds before anybody writes it: NaN, or -1."""


@dataclass(frozen=True)
class Unit:
    """One printed file: its text and name, the instructions whose functions it defines, and how it is launched."""

    text: str
    file: str
    intrinsics: tuple[Intrinsic, ...]
    plan: LaunchPlan
    program: Program


def build(units: Sequence[Unit]) -> list[Emulated]:
    """Compile some files into one module: what a compiler takes to start is paid once.

    MissingError where there is no C++ compiler, or it cannot build the text.
    """
    headers = dict.fromkeys([*_ALWAYS, *(path for unit in units for path in host.includes(unit.text))])
    parts = [f'#include "{path}"' for path in headers]
    parts += ['#include "module.h"']
    for n, unit in enumerate(units):
        before, text = host.host_text(unit.text, unit.intrinsics, card().intrinsic)
        parts += [f"namespace unit{n} {{", "using namespace autosched;", before, f'#line 1 "{unit.file}"', text, "}"]
        for name in dict.fromkeys(unit.plan.kernels):
            call = f"emulate::call(unit{n}::{name}, arguments);"
            parts.append(
                f'extern "C" __attribute__((no_sanitize("thread"))) void call_{n}_{name}(void** arguments) {{ {call} }}'
            )
    text = "\n".join(parts) + "\n"
    name = "module_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    library = module(text, name)
    loaded = load(library)
    return [Emulated(unit, library, loaded, n) for n, unit in enumerate(units)]


@dataclass(frozen=True)
class Emulated:
    """A built file. `run` is what it computes."""

    unit: Unit
    library: Path
    loaded: Any
    number: int

    def run(
        self,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        chosen: Callable[[Launch], Sequence[int] | None] = lambda launch: None,
    ) -> dict[str, Array]:
        """The program's outputs by name. `seed` orders threads and lets copies land early or late; `chosen` says which
        blocks (clusters) of a launch run, None for all.

        EmulationError at the first thing that is wrong, UsageError for a missing or ill-shaped array.
        """
        plan, program = self.unit.plan, self.unit.program
        card().enter(self.loaded)
        held: dict[str, Array] = {}
        for name in program.parameters:
            if name not in program.tensors:
                continue
            tensor = program.tensors[name]
            shape, dtype = tensor.extents, np.dtype(tensor.dtype.numpy)
            raw = memory(int(np.prod(shape)) * dtype.itemsize, POISON)
            given = arrays.get(name)
            if name in program.inputs:
                if given is None or given.shape != shape or given.dtype != dtype:
                    said = "missing" if given is None else f"{given.dtype}{list(given.shape)}"
                    raise UsageError(f"{name} is {said}", hint=f"the kernel takes {dtype}{list(shape)}")
                raw[:] = np.ascontiguousarray(given).reshape(-1).view(np.uint8)
            held[name] = raw
            written = name in program.written
            card().array(name, raw, written=written, initialised=name in program.inputs)
        for space in (*plan.workspaces, *plan.packed):
            held[space.name] = memory(space.bytes, POISON)
            card().array(space.name, held[space.name], written=True, initialised=False)
        for n, launch in enumerate((*plan.prepare, *plan.launches)):
            self._launch(launch, held, scalars or {}, seed * 1000 + n, chosen(launch))
        return {
            name: held[name].view(program.tensors[name].dtype.numpy).reshape(program.tensors[name].extents).copy()
            for name in program.outputs
        }

    def _launch(
        self,
        launch: Launch,
        held: dict[str, Array],
        scalars: Mapping[str, Any],
        seed: int,
        chosen: Sequence[int] | None,
    ) -> None:
        maps = {m.name: m for m in self.unit.plan.maps}
        arguments: list[bytes] = []
        for argument in launch.arguments:
            match argument:
                case BufferArgument(name):
                    arguments.append(held[name].ctypes.data.to_bytes(8, "little"))
                case ScalarArgument(name, dtype):
                    if name not in scalars:
                        raise UsageError(f"no value for the scalar {name}", hint=f"pass scalars={{{name!r}: …}}")
                    arguments.append(np.asarray(scalars[name]).astype(dtype.numpy).tobytes())
                case MapArgument(name):
                    arguments.append(encoded(maps[name], held[maps[name].buffer].ctypes.data))
        kernel = getattr(self.loaded, f"call_{self.number}_{launch.kernel}")
        shape = launch.grid, launch.block, launch.cluster
        found = card().launch(kernel, arguments, shape, launch.shared_bytes, seed, chosen)
        if found is None:
            return
        violation = Violation(
            found.what,
            found.detail,
            launch.kernel,
            found.block,
            found.thread,
            places(self.library, found.at),
            found.other,
            places(self.library, found.other_at),
        )
        raise EmulationError(violation, self.unit.file, self.unit.text.splitlines())


def run_printed(
    kernel: Kernel, target: Target, arrays: Mapping[str, Array], scalars: Mapping[str, Any] | None = None
) -> dict[str, Array]:
    """Print a kernel for a target, build and run it (`print_cuda`, `build`, `Emulated.run`)."""
    source = print_cuda(kernel, target)
    unit = Unit(source.text, f"{source.name}.cu", source.intrinsics, source.plan, kernel.program)
    return build([unit])[0].run(arrays, scalars, seed=0)


_LINE = re.compile(r"^(?P<file>.*):(?P<line>\d+)(?: \(discriminator \d+\))?$")


def places(library: Path, address: int) -> tuple[SourceLine, ...]:
    """Where the call that returns to `address` stands, and what it was inlined into; () where nobody knows."""
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    if tool is None or not address:
        return ()
    command = [tool, "-i", "-e", str(library), hex(address - 1)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = []
    for line in said.splitlines():
        match = _LINE.match(line)
        if match and match["line"] != "0":
            path = Path(match["file"])
            found.append(SourceLine(path.name, int(match["line"])))
    return tuple(found)
