"""Kernels of chains within blocks of a GPU: programs, element types, sizes and machines, and rows of their spaces."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
from support.cards.gpu_plans import CATALOGUE
from support.programs.block_chains import CHAINS

from autosched import ir
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.space.tied_groups import settled
from autosched.tiling.steps.gpu.bodies.held_rows import AHEAD, MEETING
from autosched.tiling.steps.gpu.bodies.held_rows import ROWS as HELD

ROWS = 5
DRAWN = 256
"""Rows from which those with new values of decisions are taken."""
A100, RTX, H200 = "nvidia-a100", "nvidia-rtx4090", "nvidia-h200"
"""sm_80, sm_89, sm_90a."""
RAGGED = {
    "flash": {"n": 24, "tile": 12, "l": 40, "block": 20, "d": 20},
    "causal": {"n": 24, "tile": 12, "l": 24, "block": 12, "d": 24},
    "window": {"n": 22, "tile": 11, "l": 36, "block": 12, "d": 12},
    "mlp": {"m": 36, "tile": 18, "k": 20, "f": 28, "block": 14, "n": 12},
    "swiglu": {"m": 20, "tile": 10, "k": 28, "f": 40, "block": 20, "n": 9},
    "layers": {"m": 26, "tile": 13, "k": 21},
    "linear": {"n": 30, "block": 10, "d": 12, "e": 20},
    "bytes": {"m": 34, "tile": 17, "k": 36, "f": 60, "block": 20, "n": 11},
}
"""Sizes that no instruction's shape divides."""

SMALL = {
    "flash": {"n": 16, "tile": 8, "l": 16, "block": 8, "d": 8},
    "causal": {"n": 16, "tile": 8, "l": 16, "block": 8, "d": 8},
    "window": {"n": 16, "tile": 8, "l": 24, "block": 8, "d": 8},
    "mlp": {"m": 16, "tile": 8, "k": 8, "f": 16, "block": 8, "n": 8},
    "swiglu": {"m": 16, "tile": 8, "k": 8, "f": 16, "block": 8, "n": 8},
    "layers": {"m": 16, "tile": 8, "k": 12, "l": 2},
    "linear": {"n": 16, "block": 8, "d": 8, "e": 8},
}
"""Sizes for instructions of one thread, of which the interpreter runs one after the other."""


@dataclass(frozen=True)
class BlockChain:
    """A chain with its sizes and element types on a machine."""

    chain: str
    target: str
    sizes: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def program(self) -> Program:
        return ir.parse(CHAINS[self.chain], sizes=self.sizes)

    @cached_property
    def machine(self) -> Target:
        return dataclasses.replace(load_target(self.target), cores=3)

    @cached_property
    def plan(self) -> Plan:
        found = plan_program(self.program, self.machine, CATALOGUE, usable(CATALOGUE, self.machine, "simulator", None))
        return next(p for p in found.plans if any(isinstance(q, TileLoopsPart) and q.grid for q in p.parts))

    def rows(self, most: int = ROWS) -> list[int]:
        return several(self.plan, most)


def holding(plan: Plan, most: int, seed: int = 0, also: Mapping[str, int] = MappingProxyType({})) -> list[int]:
    """Legal rows in which warps hold rows in registers: so many for each number of warps, and at least one for each way
    of fetching slices and of meeting; `also`: values that decisions with names of these ends have, if they can."""
    space, found = plan.space, []
    more = {
        n: d.domain.index(v)
        for n, d in enumerate(space.decisions)
        for end, v in also.items()
        if d.name.endswith(end) and v in d.domain
    }
    for position, decision in enumerate(space.decisions):
        if decision.name.endswith(HELD.name):
            loops = decision.name.removesuffix(HELD.name)
            names = [loops + handle.name for handle in (AHEAD, MEETING)]
            places = [n for n, d in enumerate(space.decisions) if d.name in names and len(d.domain) > 1]
            ways = [*product(*(range(len(space.decisions[n].domain)) for n in places))]
            for digit in (k for k, value in enumerate(decision.domain) if value):
                for number in range(max(most, len(ways))):
                    asked = {position: digit} | more | dict(zip(places, ways[number % len(ways)], strict=True))
                    inner = settled(space, [*asked], [*asked.values()])
                    drawn = inner.thinned(1, np.random.default_rng((seed, number)))
                    found += [space.row_of(inner.schedule(int(row)).values) for row in drawn]
    return found


def several(plan: Plan, most: int) -> list[int]:
    """Legal rows that have as many values of decisions as so few can."""
    drawn = [int(r) for r in plan.space.thinned(DRAWN, np.random.default_rng(0))]
    drawn += [row for row in holding(plan, 4) if row not in drawn]
    values = plan.space.values(drawn)
    has = [{(d.name, int(values[d.name][k])) for d in plan.space.decisions} for k in range(len(drawn))]
    seen: set[tuple[str, int]] = set()
    chosen: list[int] = []
    while len(chosen) < min(most, len(drawn)):
        best = max((k for k in range(len(drawn)) if drawn[k] not in chosen), key=lambda k: len(has[k] - seen))
        chosen.append(drawn[best])
        seen |= has[best]
    return chosen


F16, BF16 = {"t": "f16"}, {"t": "bf16"}
TF32, F32 = {"t": "tf32"}, {"t": "f32"}


def cases() -> dict[str, BlockChain]:
    """Each chain in each type, on machines in turn; ragged ones on the others."""
    machines = (A100, RTX, H200)
    found = {}
    number = 0
    for chain in CHAINS:
        for kind in (F16, BF16, F32) if chain != "bytes" else ({}, {}, {}):
            target = machines[number % 3]
            small = SMALL[chain] if kind == F32 else {}
            found[f"{chain} {kind.get('t', 's8')} {target}"] = BlockChain(chain, target, kind | small)
            number += 1
        kind = {} if chain == "bytes" else (F16, BF16)[number % 2]
        target = machines[(number + len(found)) % 3]
        found[f"{chain} ragged {target}"] = BlockChain(chain, target, kind | RAGGED[chain])
    found["mlp tf32"] = BlockChain("mlp", A100, dict(TF32))
    found["flash tf32"] = BlockChain("flash", H200, dict(TF32))
    return found


CASES = cases()

HANDED = {
    "one warp": BlockChain("mlp", A100, dict(F16)),
    "four warps": BlockChain("mlp", H200, F16 | {"m": 128, "tile": 64, "k": 32, "f": 128, "block": 64, "n": 24}),
    "rows of warps": BlockChain("swiglu", RTX, BF16 | {"m": 128, "tile": 64, "k": 32, "f": 64, "block": 32}),
    "a state": BlockChain("linear", RTX, dict(BF16)),
    "ragged": BlockChain("mlp", A100, F16 | {"m": 44, "tile": 22, "k": 20, "f": 60, "block": 30, "n": 12}),
    "ragged groups": BlockChain("mlp", H200, F16 | {"m": 104, "tile": 52, "k": 30, "f": 120, "block": 60, "n": 39}),
    "ragged state": BlockChain("linear", A100, F16 | {"n": 69, "block": 23, "d": 12, "e": 20}),
}
"""Chains whose products can hand on in registers, by how rows are split."""
