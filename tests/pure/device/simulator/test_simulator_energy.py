"""Energy of a kernel: operations and bytes times the target's figures, and what a target does not say."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.cards.gpu_plans import plans

import autosched
from autosched.codegen.lower import lower
from autosched.device.registry import device
from autosched.device.simulator import SimulatorDevice
from autosched.device.simulator.device import estimate
from autosched.device.simulator.energy import energy
from autosched.device.simulator.walk.walk import facts
from autosched.errors import AutoschedError, UsageError
from autosched.machine.catalogue import load_target
from autosched.search.events import NewBest
from autosched.search.tuning.final import distinguishable
from autosched.tiling.candidate import Candidate

GEMMINI = load_target("gemmini")
_, (PLAN, *_) = plans("matmul", "gemmini/*", GEMMINI, m=128, n=128, k=256, a="s8", b="s8", acc="s32")


def joules(row: int, seconds: float = 0.0) -> dict[str, float]:
    kernel = lower(PLAN, PLAN.space.schedule(row))
    parts = [facts(kernel, s) for s in kernel.main.body]
    return energy(parts, estimate(kernel, parts, GEMMINI), GEMMINI, seconds)


def test_operations_cost_the_same_in_every_schedule_and_bytes_do_not() -> None:
    found = [joules(int(r)) for r in PLAN.space.sample(12, np.random.default_rng(0))]
    for f in found:  # loops at an edge are counted by expectation
        assert f["operations"] == pytest.approx(2 * 128 * 128 * 256 * 0.15e-12, rel=0.1)
    assert max(f["DRAM"] for f in found) > 1.5 * min(f["DRAM"] for f in found)
    least = (128 * 256 * 2 + 128 * 128 * 4) * 160e-12
    assert min(f["DRAM"] for f in found) >= least * 0.9
    assert all(f["total"] == pytest.approx(sum(v for k, v in f.items() if k != "total")) for f in found)


def test_static_power_is_drawn_all_the_time() -> None:
    assert joules(0, 1e-3)["total"] - joules(0)["total"] == pytest.approx(0.02 * 1e-3)


def test_a_measurement_has_its_energy() -> None:
    device = SimulatorDevice(target=GEMMINI)
    measured = device.measure(device.build(Candidate(PLAN, 0)))
    assert measured.extra["energy_j"]["total"] > 0


def test_what_a_target_does_not_say_is_named() -> None:
    kernel = lower(PLAN, PLAN.space.schedule(0))
    parts = [facts(kernel, s) for s in kernel.main.body]
    found = estimate(kernel, parts, GEMMINI)
    silent = dataclasses.replace(GEMMINI, energy={"ops.f16": 1e-12})
    with pytest.raises(UsageError, match=r"gemmini does not say the units\.energy of ops\.s8"):
        energy(parts, found, silent, 0.0)
    memories = tuple(dataclasses.replace(m, joules_per_byte=None) for m in GEMMINI.memories)
    with pytest.raises(UsageError, match="energy of the memory scratchpad"):
        energy(parts, found, dataclasses.replace(GEMMINI, memories=memories), 0.0)


@pytest.mark.slow
def test_the_objective_decides_what_is_best() -> None:
    program = autosched.workload("matmul", m=96, n=64, k=160, a="s8", b="s8", acc="s32")
    small = [dataclasses.replace(m, bytes=4096) if m.holds else m for m in GEMMINI.memories]
    tight = dataclasses.replace(GEMMINI, memories=tuple(small))
    best = {}
    for objective in ("latency", "energy", "edp"):
        study = autosched.tune(program, target=tight, device="simulator", trials=12, objective=objective)
        costs = [t.measurement.cost for t in study.searched if t.measurement.ok]
        assert (study.best.trial.measurement.cost or 1.0) <= min(c for c in costs if c is not None) * 1.05
        best[objective] = study.best.trial.measurement
    joules = {k: m.extra["energy_j"]["total"] for k, m in best.items()}
    assert joules["energy"] <= joules["latency"]
    assert (best["latency"].time_s or 1.0) <= (best["energy"].time_s or 0.0) * 1.05
    assert best["edp"].cost == pytest.approx(joules["edp"] * best["edp"].extra["model_s"]["total"])


def test_an_objective_needs_figures_and_the_simulator() -> None:
    program = autosched.workload("matmul", m=32, n=32, k=32, a="f16", b="f16", acc="f32")
    with pytest.raises(UsageError, match="has no figures of energy"):
        autosched.tune(program, target="x86-avx512", device="simulator", trials=2, objective="energy")
    with pytest.raises(AutoschedError, match="speed"):
        autosched.tune(program, target="gemmini", device="simulator", trials=2, objective="speed")


def test_who_weighs_energy_is_said_where_another_device_is_asked() -> None:
    with pytest.raises(UsageError, match="the device cpu takes no option 'objective'") as refused:
        device("cpu", autosched.workload("matmul", m=8, n=8, k=8, a="f32", b="f32"), objective="energy")
    assert refused.value.hint == "simulator does"


@pytest.mark.slow
def test_the_bar_and_the_final_round_follow_the_objective() -> None:
    """Rows that are slower and need less energy are new bests, and may win the final round."""
    program = autosched.workload("matmul", m=256, n=256, k=256, a="s8", b="s8", acc="s32")
    found: list[NewBest] = []

    def note(event: object) -> None:
        if isinstance(event, NewBest):
            found.append(event)

    study = autosched.tune(
        program, target=GEMMINI, device="simulator", trials=24, strategy="random", objective="energy", on_event=note
    )
    costs = [event.trial.measurement.cost or 0.0 for event in found]
    assert costs == sorted(costs, reverse=True)
    times = [event.trial.measurement.time_s or 0.0 for event in found]
    assert times != sorted(times, reverse=True), "some of these were slower than the best before"
    fine = [t.measurement.cost for t in study.searched if t.measurement.ok and t.measurement.cost]
    assert study.best.trial.measurement.cost == pytest.approx(min(fine))
    joules = study.best.trial.measurement
    assert distinguishable(joules, dataclasses.replace(joules, extra={**joules.extra, "cost": 2 * (joules.cost or 0)}))


@pytest.mark.slow
@pytest.mark.parametrize(("target", "objective"), [("nvidia-h200", "edp"), ("intel-sapphire-rapids", "energy")])
def test_targets_that_state_their_energy(target: str, objective: str) -> None:
    program = autosched.workload("matmul", m=128, n=128, k=128, a="bf16", b="bf16", acc="f32")
    study = autosched.tune(program, target=target, device="simulator", trials=4, objective=objective)
    joules = study.best.trial.measurement.extra["energy_j"]
    assert joules["operations"] == pytest.approx(2 * 128**3 * 0.295e-12, rel=0.1)
    assert joules["total"] > joules["operations"]
