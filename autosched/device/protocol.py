"""What a device must do: describe itself, build a candidate, measure the build, close."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from autosched.store.records import Measurement
from autosched.tiling.candidate import Candidate

if TYPE_CHECKING:
    from autosched.machine.target import Target
    from autosched.tiling.plans.plan import Plan

T = TypeVar("T")


@dataclass(frozen=True)
class Build:
    """The outcome of a build. `payload` is the device's own (an object file, a kernel); `error` says why it is None."""

    candidate: Candidate
    payload: Any = None
    error: str | None = None
    seconds: float = 0.0
    kernel_sha: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Detected:
    """A machine as a device finds it: a target, `measured` figures of it by kind (rates by instruction, …), and the
    operations of one issue of each instruction that was looked for."""

    target: Target
    measured: dict[str, Any]
    operations: dict[str, int]


class Device(Protocol):
    """Something that can time. One instance serves one thread; nothing of the candidate may end the caller."""

    def describe(self) -> dict[str, Any]:
        """Name, kind and toolchain: part of a study's key."""
        ...

    def build(self, candidate: Candidate) -> Build:
        """Lower and compile; never raises for a candidate's own fault."""
        ...

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        """Check against the oracle, then time. `repeats` is `search` or `final` (more samples)."""
        ...

    def close(self) -> None:
        """Stop workers, free memory."""
        ...


@runtime_checkable
class BuildsMany(Protocol):
    """A device that builds several candidates in less time than one after the other."""

    def build_all(self, candidates: Sequence[Candidate]) -> list[Build]:
        """One build a candidate, in order, as `Device.build` makes it."""
        ...


@runtime_checkable
class BuildsAhead(Protocol):
    """A device that compiles further candidates while built ones are measured."""

    def builds(self, candidates: Sequence[Candidate]) -> Iterator[Build]:
        """One build a candidate, in order, as `Device.build` makes it; closing the iterator ends what is under way."""
        ...


@runtime_checkable
class Foresees(Protocol):
    """A device that can compute the data for checking a plan's candidates before there are any."""

    def foresee(self, plan: Plan) -> None:
        """Begin to compute that data beside other work."""
        ...


@runtime_checkable
class RunsFew(Protocol):
    """A device that runs kernels of limited size only, to check them."""

    def too_large(self, candidate: Candidate) -> str:
        """That it will not run this one whole, with its size; nothing where it will, or did not promise to."""
        ...


@runtime_checkable
class RunsLoops(Protocol):
    """A device that runs a large program's loops as written, to compare whole outputs with what they write."""

    plain_s: float
    """Seconds that they may take."""


class Draft(Protocol):
    """A build that either of two threads may begin."""

    def ahead(self) -> None:
        """Do the part that can run beside measuring, unless `work` has begun the build. Never raises for a candidate's
        own fault."""
        ...

    def __call__(self) -> Build:
        """Finish the build, as part of `work`."""
        ...


@runtime_checkable
class Aside(Protocol):
    """A device that measures on cores of its own: others may propose and build meanwhile."""

    @property
    def aside(self) -> bool:
        """Whether there are cores to spare on this machine."""
        ...

    def begin(self, work: Callable[[], T]) -> Future[T]:
        """Queue `work`, which builds and measures with this device; the calling thread keeps off the cores on which the
        device measures."""
        ...

    def draft(self, candidate: Candidate) -> Draft:
        """A build for `work` to make."""
        ...

    def warm(self) -> None:
        """Prepare a first measurement, as far as that can be done beside other work."""
        ...

    def give_up(self) -> None:
        """End the running measurement and forget queued work. Returns when nothing is being measured."""
        ...
