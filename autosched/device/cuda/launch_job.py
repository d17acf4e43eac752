"""Jobs for the CUDA worker: a cubin and how to launch it. Plain values and the standard library only, so that a job
made elsewhere runs where there is nothing but a driver, numpy and cuda-bindings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from autosched.device.job import Box as Box
from autosched.device.job import Sample as Sample
from autosched.ir.oracle.slack import NO_SLACK, Slack

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of a buffer: a program's tensor, or one of the job's `held`."""

    buffer: str


@dataclass(frozen=True, slots=True)
class Value:
    """A run-time scalar, by its bytes; `name` is the program's."""

    data: bytes
    name: str = ""


@dataclass(frozen=True, slots=True)
class Mapped:
    """A tensor map, by its name among the job's `maps`."""

    name: str


@dataclass(frozen=True, slots=True)
class LaunchCall:
    """One launch. `shared_bytes` are dynamic; `cluster` is (1, 1, 1) for none."""

    kernel: str
    grid: Dim3
    block: Dim3
    shared_bytes: int = 0
    arguments: tuple[Pointer | Value | Mapped, ...] = ()
    cluster: Dim3 = (1, 1, 1)


@dataclass(frozen=True, slots=True)
class Encoding:
    """A tensor map as `cuTensorMapEncodeTiled` takes it: the driver's name of the element type (`BFLOAT16`), extents
    and box in elements and strides in bytes, innermost first, the swizzle in bytes. With a `walk` (lower and upper
    corners, steps) as `cuTensorMapEncodeIm2col` does."""

    buffer: str
    element: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    walk: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """Memory of the kernel's own. `packed`: filled once by the preparing launches."""

    bytes: int
    packed: bool = False


@dataclass(frozen=True)
class CudaJob:
    """One built candidate. Buffers that `held` does not name are the program's tensors. `slack` widens the
    tolerances (`device.correctness.oracle.slack`)."""

    code: bytes = field(repr=False)
    calls: tuple[LaunchCall, ...]
    prepare: tuple[LaunchCall, ...] = ()
    held: dict[str, KernelMemory] = field(default_factory=dict)
    maps: dict[str, Encoding] = field(default_factory=dict)
    slack: Slack = NO_SLACK

    def given(self, scalars: Mapping[str, bytes]) -> CudaJob:
        """With these values of scalars."""

        def of(calls: tuple[LaunchCall, ...]) -> tuple[LaunchCall, ...]:
            return tuple(replace(c, arguments=tuple(map(passed, c.arguments))) for c in calls)

        def passed(one: Pointer | Value | Mapped) -> Pointer | Value | Mapped:
            return replace(one, data=scalars.get(one.name, one.data)) if isinstance(one, Value) else one

        return replace(self, calls=of(self.calls), prepare=of(self.prepare)) if scalars else self

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of the buffers that the timed calls use."""
        used: dict[str, None] = {}
        for call in self.calls:
            for argument in call.arguments:
                match argument:
                    case Pointer(name):
                        used[name] = None
                    case Mapped(name):
                        used[self.maps[name].buffer] = None
        return tuple(used)
