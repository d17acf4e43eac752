"""What a device must do: describe itself, build a candidate, measure the build, close."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from autosched.store.records import Measurement
from autosched.tiling.candidate import Candidate

if TYPE_CHECKING:
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
    """A device that goes on compiling while what is built already is measured."""

    def builds(self, candidates: Sequence[Candidate]) -> Iterator[Build]:
        """One build a candidate, in order, as `Device.build` makes it; closed, it ends what is under way."""
        ...


@runtime_checkable
class Foresees(Protocol):
    """A device that works out what a plan's candidates are checked on before there are any."""

    def foresee(self, plan: Plan) -> None:
        """Begin that beside other work."""
        ...


class Draft(Protocol):
    """A build, in two steps."""

    def ahead(self) -> None:
        """Do what can be done of it beside measuring, unless `work` has begun it. Raises nothing of the candidate's."""
        ...

    def __call__(self) -> Build:
        """Do the rest, as part of `work`."""
        ...


@runtime_checkable
class Aside(Protocol):
    """A device that measures on cores of its own: others may propose and build meanwhile."""

    @property
    def aside(self) -> bool:
        """Whether there are cores to spare on this machine."""
        ...

    def begin(self, work: Callable[[], T]) -> Future[T]:
        """Run `work`, which builds and measures with this device, behind what was begun before; the calling thread
        keeps off the cores on which it measures."""
        ...

    def draft(self, candidate: Candidate) -> Draft:
        """A build that is yet to be made, as part of `work`."""
        ...

    def warm(self) -> None:
        """Get ready for a first measurement, as far as that can be done beside other work."""
        ...

    def give_up(self) -> None:
        """End what is under way and forget what was begun. Returns when nothing is measured any more."""
        ...
