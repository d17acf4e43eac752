"""`print_cuda`: a kernel as a CUDA C++ file, and how the host launches it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache

from autosched.codegen import workarounds
from autosched.codegen.analysis.barriers import Phases
from autosched.codegen.c_like.formulas import Formulas
from autosched.codegen.c_like.names import Names
from autosched.codegen.c_like.source import about
from autosched.codegen.cuda.blocks import block_lines
from autosched.codegen.cuda.emission import device_function, whole_function
from autosched.codegen.cuda.export.reserved_names import TAKEN
from autosched.codegen.cuda.fragments.fragments import layouts
from autosched.codegen.cuda.grids import CudaGrid, grids
from autosched.codegen.cuda.headers import defined, needed
from autosched.codegen.cuda.helpers import CONVERT, converts, device, helper_texts
from autosched.codegen.cuda.hopper import EnginePrinter, maps_of
from autosched.codegen.cuda.launch import (
    Argument,
    BufferArgument,
    Launch,
    LaunchPlan,
    MapArgument,
    ScalarArgument,
    TensorMapEncoding,
    Workspace,
    check_launch,
)
from autosched.codegen.cuda.scope import CudaScope, Known, Used
from autosched.codegen.cuda.shared_memory.layout import SharedMemory
from autosched.codegen.cuda.statements import INDENT, CudaStatementPrinter
from autosched.codegen.cuda.types import element_type
from autosched.codegen.cuda.view import block_view
from autosched.codegen.tree.kernel import (
    Assign,
    Function,
    Kernel,
    TensorMap,
    WarpSpecialize,
    statements,
)
from autosched.codegen.tree.uses import places, read_buffers, used_scalars
from autosched.escape import comment_lines
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.catalogue import Catalogue

OPTIONS = ("--std=c++17", "--fmad=false")
"""`--fmad=false`: products and additions are fused only where the text does so itself."""


@dataclass(frozen=True)
class CudaSource:
    """One file. `text` includes `headers` (name to text). `plan`: how the host launches it. `options`: the compiler's,
    without the architecture. `intrinsics`: those that it defines as device functions. `memory`: each launch's shared
    memory, by the launch's name."""

    name: str
    text: str
    plan: LaunchPlan
    headers: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = OPTIONS
    intrinsics: tuple[Intrinsic, ...] = ()
    memory: Mapping[str, SharedMemory] = field(default_factory=dict)

    @property
    def arch(self) -> str:
        return self.plan.arch


def print_cuda(kernel: Kernel, target: Target, loads: Known | None = None) -> CudaSource:
    """CUDA C++17 for the target's architecture. `loads` are intrinsics that may fill registers, by full name (those of
    the catalogue). SpecError for an intrinsic without text; UsageError for what no launch can hold.
    """
    return _Printer(kernel, target, LoadIntrinsics(target) if loads is None else loads).source()


class _Printer:
    def __init__(self, kernel: Kernel, target: Target, loads: Known) -> None:
        self.kernel, self.target, self.loads = block_view(kernel), target, loads
        self.arch = target.compiler.get("arch", "sm_80")
        self.names = Names(defined().union(TAKEN.split()))
        self.name = self.names.fresh(kernel.name)
        for name in (*kernel.buffers, *kernel.program.scalars):
            self.names(name)
        self.used = Used()
        self.formulas = Formulas(kernel.formulas, self.names, self.used.helpers.add, "cuda")
        self.maps: list[TensorMapEncoding] = []
        self.memory: dict[str, SharedMemory] = {}

    def source(self) -> CudaSource:
        prepare: list[Launch] = []
        main: list[Launch] = []
        texts: list[str] = []
        for function in (*self.kernel.prepare, self.kernel.main):
            base = self.name if function is self.kernel.main else self.names.local(f"{self.name}_{function.name}")
            for number, grid in enumerate(grids(function)):
                name = base if number == 0 else self.names.fresh(f"{base}_{number + 1}")
                launch, text = self._launch(function, grid, name)
                (main if function is self.kernel.main else prepare).append(launch)
                texts.append(text)
        plan = LaunchPlan(
            self.name,
            self.arch,
            tuple(main),
            tuple(prepare),
            self._memory("workspace"),
            self._memory("packed"),
            tuple(self.maps),
        )
        intrinsics = [whole_function(i, *key[1:], shared) for key, (i, shared) in self.used.wholes.items()]
        for intrinsic in self.used.intrinsics.values():
            forms = self.used.majors.get(intrinsic.name, {(): None})
            intrinsics += [device_function(intrinsic, self.used.helpers.add, majors) for majors in forms]
        if converts(self.used.helpers):
            self.used.headers.add(CONVERT)
        if any("element<" in text for text in intrinsics):
            self.used.headers.add("fragment")
        if any("power_of_two(" in text for text in self._own()):
            self.used.headers.add("math")
        if any("shared_address" in text for text in intrinsics):
            self.used.headers.add("address")
        headers = needed(f"autosched/{h}.cuh" for h in sorted(self.used.headers))
        text, issued = "\n".join(self._file(intrinsics, texts)), tuple(self.used.intrinsics.values())
        return CudaSource(self.name, text, plan, headers, intrinsics=issued, memory=self.memory)

    def _memory(self, scope: str) -> tuple[Workspace, ...]:
        names = dict.fromkeys(n for f in (*self.kernel.prepare, self.kernel.main) for n in f.buffers)
        held = [self.kernel.buffers[n] for n in names]
        return tuple(Workspace(b.name, b.dtype, b.shape) for b in held if b.scope == scope)

    # -- one launch ----------------------------------------------------------------------------------------------------

    def _launch(self, function: Function, grid: CudaGrid, name: str) -> tuple[Launch, str]:
        kernel = self.kernel
        found = layouts(kernel, grid.body, grid.row_lanes)
        engine_maps = maps_of(grid.body)
        names = deepcopy(self.names)  # another launch may use the same local names
        scope = CudaScope(kernel, names, self.used, found, self.loads, self.formulas.name)
        shared = SharedMemory.of(kernel, grid.body)
        engine = EnginePrinter(scope, grid.body, grid.worker_threads, grid.cluster)
        printer = CudaStatementPrinter(scope, Phases(kernel, grid.body).needed, engine)
        scope.warps = max(1, grid.worker_threads // 32)
        scope.threads = 0 if grid.roles or grid.cluster > 1 else grid.worker_threads
        scope.limited = grid.registers > 0
        scope.alone = not grid.blocks and grid.block_threads == 1
        body = list(block_lines(grid, scope, shared, printer))
        shared = self.memory[name] = shared.beside(scope.staging)
        self.maps += [self._map(box.map) for box in engine_maps.values()]
        arguments = (*self._arguments(function, grid), *(MapArgument(name) for name in engine_maps))
        launch = Launch(
            name,
            grid.shape,
            (grid.block_threads, 1, 1),
            shared.bytes,
            arguments,
            (grid.cluster, 1, 1),
            note=grid.note,
        )
        check_launch(launch, self.target.limits)
        roles = any(isinstance(s, WarpSpecialize) and s.registers for s in statements(grid.body))
        alone = workarounds.SOLE_BLOCK.text if roles else ""
        bounds = f"__launch_bounds__({launch.threads}{alone})"
        if grid.registers:
            self.used.headers.add("limit")
            bounds = f"{workarounds.LIMITED_REGISTERS.text}({launch.threads}, {grid.registers})"
        head = f'extern "C" __global__ void {bounds} {name}('
        parameters = [self._parameter(a) for a in arguments]
        line = head + ", ".join(parameters) + ") {"
        if len(line) > 118:
            line = head + "\n" + ",\n".join(f"{INDENT * 2}{p}" for p in parameters) + ") {"
        lines = [f"// {t}" for t in self._about(launch)]
        return launch, "\n".join([*lines, line, *body, "}"])

    def _map(self, seen: TensorMap) -> TensorMapEncoding:
        buffer = self.kernel.buffers[seen.buffer]
        strides = tuple(n * buffer.dtype.bits // 8 for n in seen.strides)
        held = seen.extents, strides, seen.box, seen.swizzle, seen.walk
        return TensorMapEncoding(seen.name, seen.buffer, buffer.dtype, *held)

    def _about(self, launch: Launch) -> Iterator[str]:
        grid = " x ".join(f"{n:,}" for n in launch.grid if n > 1) or "1"
        cluster = f", clusters of {launch.cluster[0]}" if launch.cluster[0] > 1 else ""
        shared = f", {launch.shared_bytes:,} bytes of shared memory" if launch.shared_bytes else ""
        yield f"{grid} {'block' if grid == '1' else 'blocks'} of {launch.threads} threads{cluster}{shared}."

    def _arguments(self, function: Function, grid: CudaGrid) -> Iterator[Argument]:
        touched = {*grid.checks, *(name for stmt in statements(grid.body) for name, _ in places(stmt))}
        written = {s.buffer for s in statements(grid.body) if isinstance(s, Assign)}
        passed = written & read_buffers(grid.body)
        for name in function.buffers:
            if name in touched:
                yield BufferArgument(name, self.kernel.buffers[name].dtype, name in written, name in passed)
        scalars = used_scalars(grid.body)
        for name, scalar in self.kernel.program.scalars.items():
            if name in scalars:
                yield ScalarArgument(name, scalar.dtype)

    def _parameter(self, argument: Argument) -> str:
        match argument:
            case BufferArgument(name, dtype, written, passed):
                const = "" if written else "const "
                # `__restrict__` says that no other thread writes it, whatever barriers there are: what was read once
                # would be taken again.
                restrict = "" if passed else "__restrict__ "
                return f"{const}{element_type(dtype)}* {restrict}{self.names(name)}"
            case ScalarArgument(name, dtype):
                return f"{element_type(dtype)} {self.names(name)}"
            case _:
                return f"const __grid_constant__ TensorMap {self.names(argument.name)}"

    def _own(self) -> list[str]:
        """Device functions of the formulas."""
        return [device(text) for text in self.formulas.texts()]

    # -- the file ------------------------------------------------------------------------------------------------------

    def _file(self, intrinsics: list[str], kernels: list[str]) -> Iterator[str]:
        yield from self._describe()
        for header in sorted(self.used.headers):
            yield f'#include "autosched/{header}.cuh"'
        yield ""
        yield "using namespace autosched;"
        yield ""
        own = self._own()
        for text in (*helper_texts(self.used.helpers), *own, *intrinsics, *kernels):
            yield from (text, "")

    def _describe(self) -> Iterator[str]:
        kernel = self.kernel
        text = [about(self.name, kernel.program), f"For {self.target.name} ({self.arch})."]
        if kernel.schedule:
            text += ["", "Schedule: " + ", ".join(f"{n} = {v}" for n, v in kernel.schedule.items()) + "."]
        if kernel.relies:
            text += ["", "Right only where: " + "; ".join(kernel.relies) + "."]
        for paragraph in text:
            yield from (f"// {line}" for line in comment_lines(paragraph, 115)) if paragraph else ("//",)


@cache
def _catalogue() -> Catalogue:
    return Catalogue.builtin()


@dataclass(frozen=True)
class LoadIntrinsics:
    """Copies of the built-in catalogue that a target can issue and that have a text, by full name."""

    target: Target

    def get(self, name: str) -> Intrinsic | None:
        """The copy of that name; None if there is none, or the target cannot issue it."""
        if name not in _catalogue().entries:
            return None
        found = _catalogue()[name]
        usable = found.kind == "copy" and "cuda" in found.emit and self.target.has(found.requires)
        return found if usable else None
