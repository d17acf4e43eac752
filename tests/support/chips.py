"""The chips of `examples/chips`: their programs' plans, also with instructions taken out or added."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import autosched
from autosched.device.simulator import SimulatorDevice
from autosched.ir.program import Program
from autosched.machine.spec import target_from_yaml
from autosched.machine.target import Target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.store.records import Measurement
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import Plan

FOLDER = Path(__file__).parents[2] / "examples" / "chips"
CHIPS = ("systolic", "vector")
SMALL: dict[str, dict[str, int]] = {
    "layer": {"m": 9, "n": 21, "k": 19},
    "softmax": {"m": 9, "n": 21},
    "mlp": {"m": 9, "h": 21, "k": 5, "n": 17},
    "attention": {"m": 9, "l": 21, "d": 5},
}


@cache
def chip(name: str, host: bool = False) -> Target:
    """One of the two; with a `host`, one has been put beside it."""
    return replace(target_from_yaml((FOLDER / f"{name}.yaml").read_text(), f"{name}.yaml"), host=host)


@cache
def instructions(name: str) -> tuple[Intrinsic, ...]:
    return tuple(load_text((FOLDER / f"{name}_isa.yaml").read_text(), f"{name}_isa.yaml"))


def program(name: str, **sizes: int) -> Program:
    """One of `programs.py`, by default small and of sizes that no tile divides."""
    text = (FOLDER / "programs.py").read_text()
    return autosched.parse(text, "programs.py", name, **(sizes or SMALL[name]))


def planned(name: str, of: str | Program, without: str = "-", more: str = "", **options: Any) -> list[Plan]:
    """The plans of a program on a chip without the instructions of which `without` is found in the name, and with the
    instructions of a YAML text."""
    target = options.pop("target", None) or chip(name)
    own = [i for i in instructions(name) if not re.search(without, i.name)]
    own += load_text(more, "more.yaml") if more else []
    catalogue = Catalogue.builtin().with_intrinsics(own)
    text = program(of) if isinstance(of, str) else of
    return plans_of(TuneRequest(text, target, device="simulator", catalogue=catalogue, **options))[1]


def measured(plan: Plan, count: int, seed: int = 0) -> list[tuple[int, Measurement]]:
    """Rows of a plan, as the simulator measures and checks them."""
    device = SimulatorDevice(target=plan.target)
    rows = [int(row) for row in plan.space.sample(count, np.random.default_rng(seed))]
    return [(row, device.measure(device.build(Candidate(plan, row)))) for row in rows]
