"""What a store keeps: studies and their trials, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

STATUSES = ("ok", "build", "crash", "timeout", "wrong", "refused", "failed")
"""ok · the kernel did not compile · the worker died · the deadline passed · wrong numbers · the device could not take
it · the simulator's time is less than the target's figures allow."""


@dataclass(frozen=True)
class Measurement:
    """What a device says of one candidate. `time_s` is the median of `samples_s`; `spread` is (q75 - q25) / median.

    `max_abs_error` and `tolerance` are those of the element that came nearest to (or furthest past) its tolerance.
    `costs_s` splits the wall time into `build`, `check`, `time`. `message` explains a status other than ok.
    """

    status: str
    time_s: float | None = None
    samples_s: tuple[float, ...] = ()
    spread: float | None = None
    max_abs_error: float | None = None
    tolerance: float | None = None
    message: str = ""
    kernel_sha: str | None = None
    costs_s: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def verified(self) -> bool:
        """Whether outputs were compared with the oracle's: as the device says (`extra["verified"]`), else whether it
        states an error."""
        return bool(self.extra.get("verified", self.max_abs_error is not None))

    @property
    def cost(self) -> float | None:
        """What a study minimises: the time, unless the device says otherwise (`extra["cost"]`: joules, or joules times
        seconds)."""
        cost = self.extra.get("cost")
        return self.time_s if cost is None or self.time_s is None else float(cost)


@dataclass(frozen=True)
class Trial:
    """A candidate with its measurement. `number` counts from 1 in a study; `round` is `search` or `final`."""

    number: int
    plan: str
    row: int
    schedule: dict[str, int | str]
    measurement: Measurement
    analytic_s: float | None = None
    predicted_s: float | None = None
    round: str = "search"

    @property
    def key(self) -> str:
        return f"{self.plan}#{self.row}"


@dataclass(frozen=True)
class StudyRecord:
    """A study as stored. `key` maps field names to what identifies its results (program text with sizes and dtypes,
    target, device, intrinsics, space version, toolchain); two studies with one `name` have equal keys."""

    name: str
    key: dict[str, str]
    program: str
    program_name: str
    target: str
    device: str
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    created: str = ""
