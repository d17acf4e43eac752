"""Loads of states take time of their own: what the simulator and the clock charge, and who waits for whom."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.chips import measured, planned
from support.stationary import ARRAY, LOADS, held_chip, held_plan, held_row

import autosched
from autosched.costmodel.accuracy.metrics import spearman
from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.limits import limit
from autosched.device.simulator import SimulatorDevice
from autosched.errors import NoScheduleError
from autosched.ir import parse
from autosched.machine.spec import target_from_yaml
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import Plan

AHEAD = LOADS.replace("async: false", "async: true")
CALLS, CYCLE = 12 * 2 * 5, 1e-9
CHIPS = Path(__file__).parents[4] / "examples" / "chips"


def played(plan: Plan, order: str, i: int, j: int, p: int) -> dict[str, float]:
    device = SimulatorDevice(target=plan.target)
    one = device.measure(device.build(Candidate(plan, held_row(plan, order, i, j, p))))
    assert one.ok, one.message
    found: dict[str, float] = one.extra["model_s"]
    return found


def said(plan: Plan, order: str, i: int, j: int, p: int) -> dict[str, float]:
    return {k: float(v[0]) for k, v in clock(plan, plan.space.values([held_row(plan, order, i, j, p)])).items()}


def test_the_array_waits_for_loads_that_do_not_run_ahead() -> None:
    waits, ahead = held_plan(), held_plan(ARRAY + AHEAD)
    often, once = ("i j p", 1, 1, 1), ("j p i", 1, 1, 1)
    for plan in (waits, ahead):
        for row, loads in ((often, 120), (once, 10)):
            found, terms = played(plan, *row), said(plan, *row)
            assert found["loads"] == pytest.approx(loads * 8 * CYCLE) == pytest.approx(terms["loads"])
            assert found["array"] == pytest.approx(CALLS * 2 * CYCLE)
            busy = loads * 8 + CALLS * 2 if plan is waits else max(loads * 8, CALLS * 2)
            assert found["total"] - found["start"] >= busy * CYCLE
            assert terms["total"] == pytest.approx(found["total"] - found["start"], rel=0.25)
            rows = plan.space.values([held_row(plan, *row)])
            assert limit(plan, rows)[0] <= found["total"] - found["start"]
    assert played(waits, *often)["total"] - played(waits, *once)["total"] > 0.9 * 110 * 8 * CYCLE
    assert played(ahead, *once)["total"] < played(waits, *once)["total"]


def test_what_a_state_holds_is_read_of_the_scratchpad_once_a_load() -> None:
    plan = held_plan()
    for row, loads in ((("i j p", 1, 1, 1), 120), (("j p i", 1, 1, 1), 10)):
        read = (CALLS * 16 + loads * 64) / 64 * CYCLE
        assert played(plan, *row)["scratchpad"] == pytest.approx(read) == pytest.approx(said(plan, *row)["scratchpad"])


@pytest.mark.slow
def test_the_clock_orders_rows_with_loads_as_the_simulator_does() -> None:
    plan = held_plan()
    ids = plan.space.sample(40, np.random.default_rng(0))
    device = SimulatorDevice(target=plan.target)
    times = [device.measure(device.build(Candidate(plan, int(row))), "search").time_s for row in ids]
    assert spearman(clock(plan, plan.space.values(ids))["total"], np.array(times, np.float64)) > 0.9


def test_a_chip_without_the_load_is_refused_with_the_place_and_the_mend() -> None:
    other = AHEAD.replace("kind: copy", "kind: copy\n    requires: [held_loads]")
    catalogue = Catalogue.builtin().with_intrinsics(load_text(ARRAY + other, "held.yaml"))
    program = parse("def f(A: s8[8, 8], B: s8[8, 8], C: s32[8, 8]):\n    for i, j, p in grid(8, 8, 8):\n"
                    "        C[i, j] += s32(A[i, p]) * s32(B[p, j])\n")  # fmt: skip
    with pytest.raises(NoScheduleError) as refused:
        plans_of(TuneRequest(program, held_chip(), device="simulator", catalogue=catalogue))
    assert "held.yaml: held/rows: operand b is read from the state weights before it is set" in str(refused.value)
    assert "moves: {from: inputs, to: weights}" in str(refused.value.hint)


def test_gemminis_weights_stay_in_the_array() -> None:
    target = target_from_yaml((CHIPS / "stationary.yaml").read_text(), "stationary.yaml")
    program = autosched.workload("matmul", m=64, n=16, k=16, a="s8", b="s8", acc="s32")
    plans = plans_of(TuneRequest(program, target, device="simulator", only=("gemmini/matmul.compute",)))[1]
    (plan,) = (p for p in plans if p.intrinsics)
    assert plan.intrinsics == ("gemmini/matmul.compute",)
    device = SimulatorDevice(target=target)
    row = plan.space.row_of({"block_i": 1, "order": "i j p"})
    one = device.measure(device.build(Candidate(plan, row)))
    assert one.ok, one.message
    assert one.extra["model_s"]["loads"] == pytest.approx(16 * CYCLE)  # once for four tiles of rows


STATIONARY = """
isa: systolic
requires: [systolic_16x16]
intrinsics:
  - name: matmul.held
    scope: core
    semantics: |
      def matmul(a: s8[16, 16], b: s8[16, 16], c: s32[16, 16]):
          for i, j, k in grid(16, 16, 16):
              c[i, j] += s32(a[i, k]) * s32(b[k, j])
    operands: {b: {state: weights}}
    state: {dataflow: weight_stationary}
    timing: {latency: 48, interval: 16}
  - name: preload
    kind: copy
    moves: {from: inputs, to: weights}
    scope: core
    semantics: |
      def preload(x: s8[16, 16], y: s8[16, 16]):
          for i, j in grid(16, 16):
              y[i, j] = x[i, j]
    timing: {latency: 16, interval: 16}
"""


@pytest.mark.slow
def test_a_chip_without_a_host_runs_a_layer_on_weights_that_stay() -> None:
    """Its state is configured by one instruction and loaded by another, and finished sums leave by a third."""
    (plan, *_) = planned("systolic", "layer", without="/matmul$", more=STATIONARY)
    assert plan.intrinsics == ("systolic/matmul.held",)
    for row, found in measured(plan, 2):
        assert found.ok, found.message
        loads = int(plan.space.values([row])["loads_b"][0])
        assert found.extra["model_s"]["loads"] == pytest.approx(loads * 16 * CYCLE, rel=0.02)
