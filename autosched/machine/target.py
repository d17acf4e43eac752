"""`Target`: a machine's description as a frozen value. Every figure has a unit in its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from autosched.backends import Backend, backend_of

if TYPE_CHECKING:
    from autosched.tensorize.intrinsic import Intrinsic


@dataclass(frozen=True, slots=True)
class Memory:
    """A level of storage, from registers outward: `registers`, `L1`, `L2`, `L3`, `DRAM` on CPUs; GPUs have `shared`
    beside them. `shared_by` is `thread`, `core` or `device`; bandwidth is per core for levels shared by a core or less
    and for the whole device otherwise (None: not known); `core_bandwidth_bytes_per_s` is what one core alone draws from
    a level shared by the device, where that is known. `joules_per_byte` is what moving one byte in or out costs.

    A scratchpad is filled by the program: `holds` says with what (`inputs`, `accumulators`). It is empty for a memory
    that fills itself, as a cache."""

    name: str
    bytes: int
    bandwidth_bytes_per_s: float | None = None
    latency_s: float | None = None
    shared_by: str = "core"
    line_bytes: int = 64
    banks: int | None = None
    joules_per_byte: float | None = None
    holds: tuple[str, ...] = ()
    core_bandwidth_bytes_per_s: float | None = None


@dataclass(frozen=True)
class Target:
    """`rates` maps an intrinsic's full name, or a class (`load`, `store`, `scalar`), to issues per cycle and core;
    an intrinsic without a rate takes `1 / timing.interval`. A class called `ops.<what>` (`ops.tensor.f16`) holds
    operations per cycle and core instead. `limits` are integers (`vector_registers`, `vector_bytes`, `issue_width`:
    micro-operations a cycle, `shared_bytes`, `threads_per_block`, …). `sources` says where single figures come from
    (`clock`, `memories.L2.bytes`). `energy` maps an intrinsic's full name or a class of operations (`ops.<what>`) to
    joules per operation; `static_watts` is drawn however little is done. Both may be missing. `start_s`: from the
    host to an accelerator's first of commands that follow each other. `host`: whether one computes what no instruction
    of an accelerator does."""

    name: str
    isa: str
    features: frozenset[str]
    cores: int
    clock_hz: float
    memories: tuple[Memory, ...]
    rates: dict[str, float] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    compiler: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    source: str = ""
    version: str = ""  # hash of the description
    sources: dict[str, str] = field(default_factory=dict)
    energy: dict[str, float] = field(default_factory=dict)
    static_watts: float | None = None
    start_s: float | None = None
    host: bool = True

    @property
    def backend(self) -> Backend:
        """What makes and runs code for it."""
        return backend_of(self.isa)

    @property
    def async_copies(self) -> bool:
        """Whether threads start copies to shared memory that run on by themselves (`cp.async`)."""
        return bool(self.features & self.backend.async_copies)

    @property
    def bulk_copies(self) -> bool:
        """Whether an engine copies and stores whole boxes (TMA)."""
        return bool(self.features & self.backend.bulk_copies)

    def memory(self, name: str) -> Memory:
        """The level called `name` (KeyError where there is none)."""
        return {m.name: m for m in self.memories}[name]

    def issues(self, intrinsic: Intrinsic) -> float:
        """Issues of an intrinsic per cycle and core, without regard to classes of operations."""
        rate = self.rates.get(intrinsic.name)
        return rate / intrinsic.share if rate else 1.0 / intrinsic.timing.get("interval", 1.0)

    def has(self, features: frozenset[str]) -> bool:
        """Whether the target lists all of an intrinsic's required features."""
        return features <= self.features
