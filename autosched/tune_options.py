"""What a tuning may be told: each option's type, default and meaning, for `TuneRequest`, `api` and the command line."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from autosched.errors import UsageError
from autosched.given import check_fields
from autosched.numerics_levels import DEFAULT_NUMERICS

EFFORTS = {"quick": 32, "standard": 64, "full": 256}
"""Trials of each effort."""
LOOKED_UP = frozenset({"device", "strategy", "cost_model", "numerics", "conditions", "objective"})
"""Options that name something: whoever looks a name up says what else than a name was given."""


def _option(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """The options that are said the same way everywhere. Raises UsageError for a number out of range."""

    device: str = _option("auto", "auto, cpu, cuda, simulator or replay:FILE.")
    trials: int = _option(EFFORTS["standard"], "Candidates to measure, in all runs of the study together.")
    strategy: str = _option("auto", "auto, clock, random, evolutionary, bayesian, … (docs/cli.md).")
    cost_model: str = _option("xgb", "xgb, analytic, forest, gp, rank, throughput, random.")
    seed: int = _option(0, "Makes proposals and data reproducible.")
    threads: int = _option(1, "Threads that a kernel may use.")
    numerics: str = _option(
        DEFAULT_NUMERICS, "The weakest level accepted: bitwise, special, reassociated, rescaled or real."
    )
    conditions: str = _option(
        "guard",
        "Instructions that are right for some values only: guard (check in every call, else fall back), refuse"
        " or assume.",
    )
    cache: str = _option("warm", "warm, or cold: every call finds its data in main memory.")
    objective: str = _option("latency", "latency; on the simulator also energy or edp.")
    fresh: bool = _option(False, "Start over: delete the study's trials first.")
    emulate: bool = _option(False, "On the simulator: check CUDA kernels as printed, on the emulated GPU.")
    noise: float | None = _option(None, "On the simulator: deviation of its samples; 0 is none.")

    def __post_init__(self) -> None:
        check_fields(self, but=LOOKED_UP)
        if self.trials < 1:
            raise UsageError(f"trials is {self.trials}, which leaves nothing to measure", hint="give 1 or more")
        if self.seed < 0:
            raise UsageError(f"seed is {self.seed}, and must not be negative", hint="seeds are 0, 1, 2, …")
        if self.threads < 1:
            raise UsageError(f"threads is {self.threads}, and must be at least 1")


MEANINGS: dict[str, str] = {f.name: f.metadata["meaning"] for f in fields(TuneOptions)}
"""What each option means, in the words of `autosched tune --help`."""
