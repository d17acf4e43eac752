"""The host side of a printed kernel, as frozen values: what to launch, with which arguments, on which memory.

The printer makes a `LaunchPlan` beside the text; the device, the emulator and the exporter read it and decide nothing.
All sizes are Python integers, so that nothing overflows; what a GPU cannot hold is refused here (`check_launch`).

To run a kernel: allocate `workspaces` and `packed`; encode `maps`; once for each set of `const` data launch `prepare`
in order; then, for each call, launch `launches` in order on one stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from autosched.codegen.tree.kernel import Im2colWalk
from autosched.codegen.tree.workspace import GPU_ALIGNMENT
from autosched.errors import UsageError
from autosched.ir.dtypes import DType

Dim3 = tuple[int, int, int]
MOST_BLOCKS: Dim3 = (2**31 - 1, 65535, 65535)
"""Blocks of a grid along x, y and z (CUDA programming guide 12.9, Table 27)."""
MOST_THREADS: Dim3 = (1024, 1024, 64)
MOST_IN_BLOCK = 1024
STATIC_SHARED_BYTES = 49152
"""Shared memory beyond this has to be asked for: the attribute `MaxDynamicSharedMemorySize`."""
ALIGNMENT = GPU_ALIGNMENT
"""Of every array on the device, in bytes: what `cudaMalloc` gives."""


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """A pointer to the memory of the kernel's buffer `name`: a program tensor, packed data or a workspace. `passed`:
    the launch writes it and reads it, so that one thread may read what another wrote."""

    name: str
    dtype: DType
    written: bool = False
    passed: bool = False


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A run-time scalar of the program, by value in its storage type (a small float as its bits)."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class MapArgument:
    """An encoded tensor map (128 bytes, aligned to 64), by value: `const __grid_constant__ CUtensorMap`."""

    name: str


Argument = BufferArgument | ScalarArgument | MapArgument


@dataclass(frozen=True, slots=True)
class TensorMapEncoding:
    """What `cuTensorMapEncodeTiled` is given for one buffer, or `cuTensorMapEncodeIm2col` where there is a `walk`.
    Dimensions run from the innermost (contiguous) one out.

    `extents` and `box` count elements, `strides` the bytes from one element to the next along each dimension but the
    innermost. `swizzle` is in bytes (0, 32, 64, 128); elements outside the tensor read as zeros and are not stored.
    Along a walk a box is channels by pixels.
    """

    name: str
    buffer: str
    dtype: DType
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    walk: Im2colWalk | None = None


@dataclass(frozen=True, slots=True)
class Workspace:
    """Memory on the device that the host allocates; `packed` data are filled once by `prepare`, a workspace's contents
    do not matter before a call."""

    name: str
    dtype: DType
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class Launch:
    """One `__global__` function and how it is launched: `kernel` is its C name; `cluster` blocks of the grid share a
    cluster ((1, 1, 1): none); `shared_bytes` are dynamic."""

    kernel: str
    grid: Dim3
    block: Dim3
    shared_bytes: int
    arguments: tuple[Argument, ...]
    cluster: Dim3 = (1, 1, 1)
    note: str = ""

    @property
    def blocks(self) -> int:
        return prod(self.grid)

    @property
    def threads(self) -> int:
        return prod(self.block)


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """All launches of one kernel, in order, and the memory between them. `arch` is what the text was printed for
    (`sm_90a`)."""

    name: str
    arch: str
    launches: tuple[Launch, ...]
    prepare: tuple[Launch, ...] = ()
    workspaces: tuple[Workspace, ...] = ()
    packed: tuple[Workspace, ...] = ()
    maps: tuple[TensorMapEncoding, ...] = ()

    @property
    def workspace_bytes(self) -> int:
        """Bytes of all workspaces, each rounded up to `ALIGNMENT`."""
        return sum(-(-w.bytes // ALIGNMENT) * ALIGNMENT for w in self.workspaces)

    @property
    def kernels(self) -> tuple[str, ...]:
        """C names of all kernels of the file."""
        return tuple(launch.kernel for launch in (*self.prepare, *self.launches))


def check_launch(launch: Launch, limits: dict[str, int]) -> None:
    """UsageError where a GPU with the target's `limits` cannot launch it; names the rule that is broken."""
    for axis, blocks, most in zip("xyz", launch.grid, MOST_BLOCKS, strict=True):
        _require(0 < blocks <= most, launch, f"{blocks:,} blocks along {axis} > {most:,}")
    for axis, threads, most in zip("xyz", launch.block, MOST_THREADS, strict=True):
        _require(0 < threads <= most, launch, f"{threads:,} threads along {axis} > {most:,}")
    most = limits.get("threads_per_block", MOST_IN_BLOCK)
    _require(launch.threads <= most, launch, f"{launch.threads:,} threads of a block > {most:,}")
    most = limits.get("shared_bytes", STATIC_SHARED_BYTES)
    _require(launch.shared_bytes <= most, launch, f"{launch.shared_bytes:,} bytes of shared memory > {most:,}")
    cluster = prod(launch.cluster)
    most = limits.get("cluster_blocks", 1)
    _require(cluster <= most, launch, f"clusters of {cluster} blocks > {most}")
    whole = all(n % c == 0 for n, c in zip(launch.grid, launch.cluster, strict=True))
    _require(whole, launch, f"a grid of {launch.grid} in clusters of {launch.cluster}")


def _require(condition: bool, launch: Launch, message: str) -> None:
    if not condition:
        raise UsageError(f"{launch.kernel} cannot be launched: {message}", hint="choose another row, or another target")
