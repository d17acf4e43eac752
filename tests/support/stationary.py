"""A small array that holds its weights in a state, and plans on a chip with it."""

from __future__ import annotations

from functools import cache

from autosched.ir import parse
from autosched.machine.spec import target_from_yaml
from autosched.machine.target import Target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text
from autosched.tiling.plans.plan import Plan

ARRAY = """
isa: held
requires: [held_array]
intrinsics:
  - name: rows
    scope: core
    semantics: |
      def rows(a: s8[2, 8], b: s8[8, 8], c: s32[2, 8]):
          for i, j, k in grid(2, 8, 8):
              c[i, j] += s32(a[i, k]) * s32(b[k, j])
    operands: {b: {state: weights}}
    timing: {latency: 12, interval: 2}
"""
LOADS = """
  - name: load
    kind: copy
    moves: {from: inputs, to: weights}
    scope: core
    async: false
    semantics: |
      def load(x: s8[8, 8], y: s8[8, 8]):
          for i, j in grid(8, 8):
              y[i, j] = x[i, j]
    timing: {latency: 8, interval: 8}
"""
CHIP = """
name: held-chip
isa: held
features: [held_array]
units: {cores: 1, clock: 1 GHz}
memories:
  - {name: sums, bytes: 64 KiB, bandwidth: 64 B/cycle, holds: [accumulators]}
  - {name: pad, bytes: 64 KiB, bandwidth: 64 B/cycle, holds: [inputs]}
  - {name: DRAM, bytes: 1 GiB, bandwidth: 64 B/cycle, latency: 80 cycles, shared_by: device}
"""
PRODUCT = """
def product(A: s8[24, 40], B: s8[40, 16], C: s32[24, 16]):
    for i, j in grid(24, 16):
        C[i, j] = 0
        for p in range(40):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""
WHOLE = {"resident_a": 0, "resident_b": 0, "slots_a": 1, "slots_b": 1, "slots_c": 1}
"""Both inputs are copied once, before all loops."""


@cache
def held_chip() -> Target:
    return target_from_yaml(CHIP, "chip.yaml")


@cache
def held_plan(array: str = ARRAY + LOADS, program: str = PRODUCT) -> Plan:
    """The first plan of a program on the chip with this array."""
    catalogue = Catalogue.builtin().with_intrinsics(load_text(array, "held.yaml"))
    return plans_of(TuneRequest(parse(program), held_chip(), device="simulator", catalogue=catalogue))[1][0]


def held_row(plan: Plan, order: str, i: int, j: int, p: int, **others: int) -> int:
    """A row with these blocks, in tiles, and loops over them in this order."""
    return plan.space.row_of({"order": order, "block_i": i, "block_j": j, "block_p": p} | WHOLE | others)
