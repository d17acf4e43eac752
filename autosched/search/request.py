"""What is asked of `tune`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from autosched.costmodel.learned.pretrained import Earlier
from autosched.costmodel.objective import OBJECTIVES
from autosched.costmodel.registry import cost_models
from autosched.device.registry import device_names, named
from autosched.errors import UnknownNameError, UsageError, check_name
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.numerics_levels import NUMERICS_LEVELS
from autosched.search.registry import strategies
from autosched.search.stopping import Goals
from autosched.store.protocol import Store
from autosched.store.records import Trial
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.families import FAMILIES
from autosched.tiling.variants import conditional
from autosched.tune_options import TuneOptions


@dataclass(frozen=True)
class TuneRequest(TuneOptions):
    """What to tune, where and for how long; the rest are options (`autosched.tune_options`).

    `timeout_s` in seconds. `only` are globs of intrinsic names, `families` those of plans (`tiling.planner.families`);
    all where there are none. Values of constant data are the program's
    (`ir.data.with_data`). `goals` may end the search sooner; the cost model begins with what `earlier` studies taught
    (`search.tuning.warm`), the study itself left out. `user_schedules` are schedules to measure first
    (`store.read_schedule`). `trials` is the study's total; `noise` is None for the simulator's own.
    Raises UsageError, UnknownNameError.
    """

    program: Program
    target: Target
    _: KW_ONLY
    timeout_s: float | None = None
    store: Store | None = None
    catalogue: Catalogue = field(default_factory=Catalogue.builtin)
    only: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    intrinsic_paths: tuple[str, ...] = ()
    goals: Goals = field(default_factory=Goals)
    earlier: tuple[Earlier, ...] = ()
    user_schedules: tuple[Trial, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
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
        for family in self.families:
            if family not in FAMILIES:
                raise UnknownNameError("family of plans", family, FAMILIES)
        if self.program.symbolic:
            name, (low, high) = next(iter(self.program.symbolic.items()))
            raise UsageError(f"the size {name} is symbolic ({low}..{high})", hint=f"give it a value: -D {name}={high}")
