"""What an accelerator charges: each unit by the target's figures, in the simulator and in the clock, and noise."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import H200, plans

import autosched
from autosched.codegen.lower import lower
from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.limits import limit
from autosched.device.simulator import SimulatorDevice
from autosched.device.simulator.gpu.gpu_costs import rate
from autosched.device.simulator.gpu.gpu_model import of_pipes
from autosched.device.simulator.trace import trace
from autosched.device.simulator.walk.walk import facts
from autosched.errors import SpecError
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target, target_data, target_yaml
from autosched.machine.spec import target_from_yaml
from autosched.machine.target import Target
from autosched.search.request import TuneRequest
from autosched.search.tuning.measuring import refuse_below_bound
from autosched.search.tuning.tune import plans_of
from autosched.store.records import Measurement
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import Plan

COPIES = """
  - name: fetch
    kind: copy
    moves: {from: memory, to: inputs}
    scope: core
    semantics: |
      def fetch(x: s8[8, 8], y: s8[8, 8]):
          for i, j in grid(8, 8):
              y[i, j] = x[i, j]
    timing: {latency: %d, interval: %d}
"""
ARRAY = """
isa: tiny
requires: [tiny_8x8]
intrinsics:
  - name: mac8x8
    scope: core
    semantics: |
      def mac(a: s8[8, 8], b: s8[8, 8], c: s32[8, 8]):
          for i, j, k in grid(8, 8, 8):
              c[i, j] += s32(a[i, k]) * s32(b[k, j])
    timing: {latency: 24, interval: 8}
"""
CHIP = """
name: tiny-chip
isa: tiny
features: [tiny_8x8]
units:
  cores: 1
  clock: 1 GHz
  rates: {tiny/mac8x8: 0.125 issue/cycle}
memories:
  - {name: sums, bytes: 64 KiB, bandwidth: 64 B/cycle, holds: [accumulators]}
  - {name: pad, bytes: 128 KiB, bandwidth: 32 B/cycle, holds: [inputs]}
  - {name: DRAM, bytes: 1 GiB, bandwidth: 16 B/cycle, latency: 80 cycles, shared_by: device}
"""
PRODUCT = """
def product(A: s8[64, 48], B: s8[48, 32], C: s32[64, 32]):
    for i, j in grid(64, 32):
        C[i, j] = 0
        for p in range(48):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""
BEHIND = PRODUCT.replace("C: s32[64, 32]):", "D: f32[64, 32]):\n    C: s32[64, 32]")
EPILOGUE = (
    BEHIND
    + """
    for i, j in grid(64, 32):
        D[i, j] = tanh(f32(C[i, j])) * 2.0 + 1.0
"""
)
ROWS = (
    BEHIND.replace("    C: s32", "    M: f32[64]\n    C: s32")
    + """
    for i in range(64):
        M[i] = 0.0
        for j in range(32):
            M[i] += tanh(f32(C[i, j]))
    for i, j in grid(64, 32):
        D[i, j] = f32(C[i, j]) * M[i]
"""
)
TILES, ELEMENTS = 8 * 4, 64 * 32


def chip(text: str = CHIP, **rates: float) -> Target:
    target = target_from_yaml(text, "chip.yaml")
    return dataclasses.replace(target, rates=target.rates | {k.replace("_", "."): v for k, v in rates.items()})


def bandwidth(target: Target, name: str, factor: float) -> Target:
    memories = tuple(
        dataclasses.replace(m, bandwidth_bytes_per_s=(m.bandwidth_bytes_per_s or 0) * factor) if m.name == name else m
        for m in target.memories
    )
    return dataclasses.replace(target, memories=memories)


def planned(program: str | Program, target: Target, copies: str = "") -> Plan:
    """The first plan of a program with the chip's intrinsics."""
    catalogue = Catalogue.builtin().with_intrinsics(load_text(ARRAY + copies, "tiny.yaml"))
    parsed = parse(program) if isinstance(program, str) else program
    request = TuneRequest(parsed, target, device="simulator", catalogue=catalogue)
    return plans_of(request)[1][0]


def model(plan: Plan, row: int | None = None) -> dict[str, float]:
    """Seconds by unit of a row, by default of the one that the clock takes for the best."""
    ids = plan.space.sample(400, np.random.default_rng(0))
    row = int(ids[np.argmin(clock(plan, plan.space.values(ids))["total"])]) if row is None else row
    device = SimulatorDevice(target=plan.target)
    measured = device.measure(device.build(Candidate(plan, row)))
    assert measured.ok, measured.message
    found: dict[str, float] = measured.extra["model_s"]
    assert measured.time_s == found["total"], "no noise on accelerators"
    return found


def least(plan: Plan) -> tuple[dict[str, float], float]:
    """The clock's terms of its best row of a sample, and the bound of that row."""
    ids = plan.space.sample(400, np.random.default_rng(0))
    values = plan.space.values(ids)
    terms = clock(plan, values)
    best = int(np.argmin(terms["total"]))
    return {k: float(v[best]) for k, v in terms.items()}, float(limit(plan, values)[best])


@pytest.mark.slow
def test_an_epilogue_costs_its_operations_by_the_targets_rates() -> None:
    plain, host = model(planned(PRODUCT, chip())), model(planned(EPILOGUE, chip()))
    assert host["host"] == pytest.approx(ELEMENTS * (20 + 2) * 1e-9)  # twenty operations of the host for a tanh
    assert host["total"] > host["host"] > plain["total"]
    for tanh in (4.0, 8.0):
        plan = planned(EPILOGUE, chip(ops_f32=16.0, ops_tanh=tanh))
        found, (terms, bound) = model(plan), least(plan)
        assert "host" not in found
        assert found["vector"] == pytest.approx(ELEMENTS * (1 / tanh + 2 / 16) * 1e-9)
        assert terms["vector"] == pytest.approx(found["vector"])
        assert bound <= found["total"]
    twice = planned(EPILOGUE, chip(ops_f32=16.0, scalar=2.0))
    assert model(twice)["host"] == pytest.approx(ELEMENTS * 10e-9)


@pytest.mark.slow
def test_stages_by_rows_cost_their_operations() -> None:
    slow, quick = (planned(ROWS, chip(scalar=rate)) for rate in (1.0, 4.0))
    assert model(slow)["host"] > ELEMENTS * 22e-9
    assert model(slow)["host"] == pytest.approx(4 * model(quick)["host"], rel=1e-6)
    terms, bound = least(slow)
    assert terms["total"] == pytest.approx(model(slow)["total"], rel=0.3)
    assert ELEMENTS * 20e-9 < bound <= model(slow)["total"]
    own = planned(ROWS, chip(ops_f32=32.0, ops_tanh=32.0))
    assert model(own)["total"] < model(quick)["total"] / 2


@pytest.mark.slow
def test_copies_cost_what_the_chip_describes() -> None:
    bare = planned(PRODUCT, chip())
    assert "copies in" not in model(bare)
    row = int(bare.space.sample(1, np.random.default_rng(4))[0])
    found = {}
    for latency, interval in ((80, 4), (80, 64), (800, 4)):
        plan = planned(PRODUCT, chip(), COPIES % (latency, interval))
        found[latency, interval] = model(plan, row)
        assert found[latency, interval]["copies in"] >= (8 * 6 + 6 * 4) * interval * 1e-9 * 0.999
        own = clock(plan, plan.space.values([row]))
        assert own["copies"][0] == pytest.approx(found[latency, interval]["copies in"], rel=0.01)
    assert found[80, 4]["total"] == model(bare, row)["total"]  # four cycles a tile is the bus's own
    assert found[80, 64]["total"] > 1.5 * found[80, 4]["total"]
    assert found[800, 4]["total"] > found[80, 4]["total"] + 0.7e-6
    rated = planned(PRODUCT, chip(**{"tiny/fetch": 1 / 64}), COPIES % (80, 4))
    assert model(rated, row) == found[80, 64]


def test_copies_of_blocks_of_one_tile_are_charged_and_waited_for() -> None:
    """They stand in one straight run with the product and, where the reduction has one block, with the store."""
    plan, totals = planned(PRODUCT.replace("48", "8"), chip()), {}
    for slots in (1, 2):
        blocks = {"block_i": 1, "block_j": 1, "block_p": 1, "order": "i j p", "resident_a": 1, "resident_b": 2}
        found = model(plan, plan.space.row_of(blocks | {"slots_a": slots, "slots_b": slots, "slots_c": slots}))
        assert found["bus"] == pytest.approx(((8 + TILES) * 64 + ELEMENTS * 4) / 16 * 1e-9)
        totals[slots] = found["total"] - found["start"]
    assert totals[2] < totals[1]
    assert totals[1] >= TILES * (80 + 4 + 8) * 1e-9  # latency, bytes and product of each tile, none beside another


def test_a_target_says_how_long_a_start_takes() -> None:
    late = target_from_yaml(CHIP.replace("  rates:", "  start: {value: 3 us, source: a guess}\n  rates:"), "chip.yaml")
    assert late.start_s == 3e-6
    assert target_from_yaml(target_yaml(late), "again.yaml").start_s == late.start_s
    assert target_data(late)["units"]["start"]["source"] == "a guess"
    a, b = planned(PRODUCT, chip()), planned(PRODUCT, late)
    assert model(b, 0)["total"] - model(a, 0)["total"] == pytest.approx(2e-6)


def test_moves_that_cannot_be_are_refused() -> None:
    copy = "isa: tiny\nintrinsics:" + COPIES % (1, 1)
    for text, said in (
        (ARRAY.replace("scope:", "moves: {from: memory, to: inputs}\n    scope:"), "only a copy moves"),
        (copy.replace("to: inputs", "to: memory"), "from memory to memory is no way"),
        (copy.replace("to: inputs", "to: nowhere"), "'memory', 'inputs' or 'accumulators'"),
    ):
        with pytest.raises(SpecError, match=said):
            load_text(text, "tiny.yaml")


@pytest.mark.parametrize(("memory", "term"), [("pad", "scratchpad"), ("sums", "accumulators")])
def test_ports_of_scratchpads_and_accumulators_bound_clock_simulator_and_limit(memory: str, term: str) -> None:
    whole, slow = planned(PRODUCT, chip()), planned(PRODUCT, bandwidth(chip(), memory, 1 / 16))
    (before, _), (terms, bound) = least(whole), least(slow)
    assert max((v, k) for k, v in before.items() if k != "total")[1] == "compute"
    assert max((v, k) for k, v in terms.items() if k != "total")[1] == term
    found = model(slow)
    assert found[term] == pytest.approx(terms[term]) == pytest.approx(bound)
    assert terms["total"] == pytest.approx(found["total"] - found["start"], rel=0.1)
    assert found["total"] > 4 * model(whole)["array"]


@pytest.mark.slow
def test_noise_is_off_on_accelerators_and_can_be_switched() -> None:
    assert SimulatorDevice(target=chip()).describe()["noise"] == 0
    assert SimulatorDevice(target=H200).describe()["noise"] == 0.01
    program = autosched.workload("matmul", m=32, n=32, k=32)
    for noise, spread in ((0.0, 0.0), (0.2, 0.01)):
        study = autosched.tune(program, "x86-avx512", device="simulator", trials=2, noise=noise)
        for trial in study.searched:
            samples = trial.measurement.samples_s
            assert max(samples) - min(samples) >= spread * samples[0]
            assert (trial.measurement.time_s == trial.measurement.extra["model_s"]["total"]) == (noise == 0)


CASES: list[tuple[str, str, str, dict[str, Any], int]] = [
    ("gemmini", "matmul_bias_relu", "gemmini/*", {"m": 40, "n": 40, "k": 70, "a": "s8", "b": "s8", "acc": "s32"}, 1),
    ("nvidia-h200", "matmul", "cuda/wmma.*", {"m": 96, "n": 64, "k": 64, "a": "f16", "b": "f16", "acc": "f32"}, 1),
    ("x86-avx512", "matmul_bias_relu", "x86/vfmadd*zmm", {"m": 40, "n": 40, "k": 30}, 3),
]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "name", "only", "sizes", "threads"), CASES)
def test_a_trace_ends_when_the_trial_does(
    target: str, name: str, only: str, sizes: dict[str, Any], threads: int
) -> None:
    machine = load_target(target)
    plan = plans(name, only, machine, threads, **sizes)[1][0]
    device = SimulatorDevice(target=machine, threads=threads, noise=0)
    for row in plan.space.sample(4, np.random.default_rng(1)):
        measured = device.measure(device.build(Candidate(plan, int(row))))
        assert measured.time_s is not None
        drawn = trace(lower(plan, plan.space.schedule(int(row))), machine, plan.units)
        assert drawn["otherData"]["seconds"] == pytest.approx(measured.time_s, rel=1e-9)
        end = max(e["ts"] + e["dur"] for e in drawn["traceEvents"] if e["ph"] == "X")
        assert end == pytest.approx(measured.time_s * 1e6, rel=1e-6)


def test_a_simulated_time_below_the_bound_fails() -> None:
    plan = planned(PRODUCT, chip())
    bound = least(plan)[1]
    fine = Measurement("ok", 2 * bound, (2 * bound,), extra={"model_s": {"total": 2 * bound}})
    assert refuse_below_bound(fine, Candidate(plan, 0)) is fine
    wrong = dataclasses.replace(fine, extra={"model_s": {"total": bound / 2}})
    held = refuse_below_bound(wrong, Candidate(plan, 0))
    assert held.status == "failed"
    assert held.time_s is None
    assert "by the target's figures its units are busy for" in held.message
    real = Measurement("ok", bound / 2, (bound / 2,))
    assert refuse_below_bound(real, Candidate(plan, 0)) is real


def test_an_epilogue_costs_time_on_a_cpu_too() -> None:
    types, target = {"m": 64, "n": 64, "k": 32}, load_target("x86-avx512")
    seconds: dict[str, tuple[float, float]] = {}
    for name in ("matmul", "matmul_bias_gelu"):
        plan = plans(name, "x86/vfmadd*zmm", target, **types)[1][0]
        row = plan.space.row_of({"reg_i": 8, "reg_j": 2})
        device = SimulatorDevice(target=target, noise=0)
        simulated = device.measure(device.build(Candidate(plan, row))).time_s
        assert simulated is not None
        seconds[name] = float(clock(plan, plan.space.values([row]))["total"][0]), simulated
    assert all(with_it > 1.05 * without for without, with_it in zip(*seconds.values(), strict=True))


def test_products_on_cuda_cores_take_no_tensor_pipe() -> None:
    """A kernel of both divides the pipes' time by what each kind of instruction takes of it."""
    name = {"f16": "tensor pipe", "f32": "arithmetic"}
    seconds, issues = {}, []
    for kind in name:
        program = parse(f"def f(A: {kind}[64, 64], B: {kind}[64, 64], C: f32[64, 64]):\n" + TERMS)
        plan = next(p for p in plans_of(TuneRequest(program, H200, numerics="real"))[1] if p.tensor_parts)
        kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(0))[0])))
        found = next(f for f in (facts(kernel, s) for s in kernel.main.body) if f.issues)
        assert of_pipes(found, H200) == {name[kind]: 1.0}
        issues += found.issues
        seconds[name[kind]] = sum(i.runs / rate(i.intrinsic, H200) for i in found.issues)
    both = of_pipes(dataclasses.replace(found, issues=tuple(issues)), H200)
    assert both == {n: pytest.approx(s / sum(seconds.values())) for n, s in seconds.items()}


TERMS = """    for i, j in grid(64, 64):
        C[i, j] = 0
        for k in range(64):
            C[i, j] += f32(A[i, k]) * f32(B[k, j])
"""
