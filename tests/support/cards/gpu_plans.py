"""Plans on the H200's description, for tests: no GPU is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from autosched.ir import resolve
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.conditional import candidates_of

CATALOGUE = Catalogue.builtin()
H200 = load_target("nvidia-h200")
MOST, SOME = 300_000, 20_000
"""Legal rows of a large space that are looked for, and those that a covering sample is drawn from."""


def plans(name: str, only: str, target: Target = H200, threads: int = 1, **sizes: Any) -> tuple[Program, list[Plan]]:
    """The program and its plans with the intrinsics that the glob `only` allows."""
    program = resolve(name, sizes)
    found = match(program, usable(CATALOGUE, target, "simulator", [only]))
    return program, make_plans(program, target, candidates_of(found), threads)


def covering(plan: Plan, seed: int = 0) -> list[int]:
    """Legal rows that together have every value of every decision which any legal row has."""
    ids = plan.space.enumerate(limit=MOST).ids
    rng = np.random.default_rng(seed)
    ids = np.unique(rng.choice(ids, SOME)) if len(ids) > SOME else ids
    values = plan.space.values(ids)
    missing = {(d.name, int(v)) for d in plan.space.decisions for v in np.unique(values[d.name])}
    rows = []
    for i in rng.permutation(len(ids)):
        has = {(d.name, int(values[d.name][i])) for d in plan.space.decisions}
        if has & missing:
            missing -= has
            rows.append(int(ids[i]))
        if not missing:
            break
    return rows
