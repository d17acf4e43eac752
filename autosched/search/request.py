"""What is asked of `tune`."""

from __future__ import annotations

from dataclasses import dataclass, field

from autosched.costmodel.learned.pretrained import Earlier
from autosched.costmodel.objective import OBJECTIVES
from autosched.costmodel.registry import cost_models
from autosched.device.registry import device_names, named
from autosched.errors import UnknownNameError, UsageError, check_name
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.registry import strategies
from autosched.search.stopping import Goals
from autosched.store.protocol import Store
from autosched.store.records import Trial
from autosched.tensorize.match_types import NUMERICS_LEVELS
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.variants import conditional

EFFORTS = {"quick": 32, "standard": 64, "full": 256}
"""Trials of each effort."""


@dataclass(frozen=True)
class TuneRequest:
    """What to tune, where and for how long. `trials` is the study's total; `only` are globs of intrinsic names.
    `conditions` says what becomes of mappings that carry some: `refuse`, `guard` or `assume`. Values of constant data
    are the program's (`ir.data.with_data`). `goals` may end the search sooner; the cost model begins
    with what `earlier` studies taught (`search.tuning.warm`), the study itself left out. `emulate`: the simulator
    checks kernels as CUDA text on the emulated card; `noise`: the relative deviation of its samples, None for its own.
    `user_schedules` are schedules to measure first (`store.read_schedule`)."""

    program: Program
    target: Target
    device: str = "auto"
    trials: int = 64
    timeout_s: float | None = None
    strategy: str = "auto"
    cost_model: str = "xgb"
    seed: int = 0
    threads: int = 1
    store: Store | None = None
    catalogue: Catalogue = field(default_factory=Catalogue.builtin)
    only: tuple[str, ...] = ()
    numerics: str = "reassociated"
    cache: str = "warm"
    objective: str = "latency"
    fresh: bool = False
    intrinsic_paths: tuple[str, ...] = ()
    conditions: str = "guard"
    goals: Goals = field(default_factory=Goals)
    earlier: tuple[Earlier, ...] = ()
    emulate: bool = False
    noise: float | None = None
    user_schedules: tuple[Trial, ...] = ()

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UsageError(f"trials is {self.trials}, which leaves nothing to measure", hint="give 1 or more")
        if self.seed < 0:
            raise UsageError(f"seed is {self.seed}, and must not be negative", hint="seeds are 0, 1, 2, …")
        if self.threads < 1:
            raise UsageError(f"threads is {self.threads}, and must be at least 1")
        conditional.check_mode(self.conditions)
        check_name("device", self.device)
        for kind, name, known in (
            ("strategy", self.strategy, strategies(extras=True)),
            ("cost model", self.cost_model, cost_models()),
            ("objective", self.objective, OBJECTIVES),
            ("device", named(self.device)[0], ["auto", *device_names()]),
            ("level of numerics", self.numerics, NUMERICS_LEVELS),
        ):
            check_name(kind, name)
            if name not in known:
                raise UnknownNameError(kind, name, known)
        if self.program.symbolic:
            name, (low, high) = next(iter(self.program.symbolic.items()))
            raise UsageError(f"the size {name} is symbolic ({low}..{high})", hint=f"give it a value: -D {name}={high}")
