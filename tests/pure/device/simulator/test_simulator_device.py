"""The simulator as a device: the contract, what it refuses, what it checks, and that it needs no clock."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from conformance.device import DeviceConformance
from support.cards.gpu_plans import H200, plans
from support.plans import plans_of

import autosched
from autosched.codegen.lower import lower
from autosched.device import registry
from autosched.device import simulator as package
from autosched.device.emulated import simulator
from autosched.device.protocol import Device
from autosched.device.simulator import SimulatorDevice
from autosched.device.simulator.verify import verify
from autosched.device.simulator.verify.cut_alike import cut_as_reductions
from autosched.device.simulator.verify.runner import INTERPRETER
from autosched.device.simulator.verify.smaller import cut, cut_plan, unwritten
from autosched.device.simulator.verify.verify import Verifier
from autosched.errors import MissingError, UsageError
from autosched.ir.workload import workload
from autosched.machine.catalogue import load_target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import planned
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import TileLoopsPart, WarpCooperativePart

AVX512 = load_target("x86-avx512")
HALVES = {"a": "f16", "b": "f16", "acc": "f32"}


class TestOnAGpu(DeviceConformance):
    deterministic = True

    @pytest.fixture
    def device(self) -> Device:
        return SimulatorDevice(target=H200)

    @pytest.fixture
    def candidates(self) -> Sequence[Candidate]:
        _, (plan, *_) = plans("matmul", "cuda/wmma.*", m=40, n=24, k=40, **HALVES)
        return [Candidate(plan, int(i)) for i in plan.space.sample(3, np.random.default_rng(0))]


class TestOnACpu(DeviceConformance):
    deterministic = True

    @pytest.fixture
    def device(self) -> Device:
        return SimulatorDevice(target=AVX512, threads=2)

    @pytest.fixture
    def candidates(self) -> Sequence[Candidate]:
        _, (plan, *_) = plans("matmul", "x86/vfmadd*zmm", AVX512, threads=2, m=20, n=40, k=12)
        return [Candidate(plan, int(i)) for i in plan.space.sample(3, np.random.default_rng(0))]


def candidate(**values: int | str) -> Candidate:
    _, (plan, *_) = plans("matmul", "cuda/wmma.*", m=1024, n=1024, k=1024, **HALVES)
    return Candidate(plan, plan.space.row_of(values))


def test_seed_and_noise_decide_the_samples() -> None:
    chosen = candidate(reg_i=2, reg_j=2)
    times = [
        SimulatorDevice(target=H200, seed=seed, noise=noise).measure(SimulatorDevice(target=H200).build(chosen)).time_s
        for seed, noise in ((0, 0.01), (0, 0.01), (1, 0.01), (0, 0.0), (1, 0.0))
    ]
    assert times[0] == times[1] != times[2]
    assert times[3] == times[4]
    assert times[0] == pytest.approx(times[3], rel=0.06)


def test_a_kernel_beyond_the_limits_is_refused() -> None:
    chosen = candidate(reg_i=4, reg_j=4, stage_a="shared", block_p=8)
    for limits, said in (
        ({"registers_per_thread": 100}, "registers a thread; the target allows 100"),
        ({"shared_bytes": 1000}, "bytes of shared memory in a block; the target allows 1,000"),
        ({"threads_per_block": 16}, "32 threads in a block; the target allows 16"),
    ):
        device = SimulatorDevice(target=dataclasses.replace(H200, limits=H200.limits | limits))
        measured = device.measure(device.build(chosen))
        assert measured.status == "refused"
        assert said in measured.message
        assert measured.time_s is None


def test_small_kernels_are_checked_and_large_ones_cut_down_in_the_end() -> None:
    _, (small, *_) = plans("matmul", "cuda/wmma.*", m=32, n=32, k=32, **HALVES)
    device = SimulatorDevice(target=H200)
    measured = device.measure(device.build(Candidate(small, 0)))
    assert measured.extra["verified"]
    assert measured.extra["verified_by"] == "the interpreter"
    assert measured.max_abs_error is not None
    build = device.build(candidate(reg_i=2, warps_j=2, stage_b="shared"))
    first, last = device.measure(build), device.measure(build, "final")
    assert not first.extra["verified"]
    assert first.extra["verified_by"].startswith("not verified")
    assert last.extra["verified"]
    assert last.extra["verified_by"].startswith("the interpreter, with loops cut to 27 iterations")


def test_a_wrong_kernel_is_found() -> None:
    _, (plan, *_) = plans("matmul", "cuda/wmma.*", m=32, n=32, k=32, **HALVES)
    device = SimulatorDevice(target=H200)
    build = device.build(Candidate(plan, 0))
    kernel = build.payload
    body = kernel.main.body[0]
    kernel = dataclasses.replace(
        kernel, main=dataclasses.replace(kernel.main, body=(dataclasses.replace(body, lower=body.upper - 1),))
    )
    measured = device.measure(dataclasses.replace(build, payload=kernel))
    assert measured.status == "wrong"
    assert "wrong elements" in measured.message


def test_what_is_not_run_is_said_not_to_be_verified() -> None:
    _, (plan, *_) = plans("matmul", "cuda/wmma.*", m=8192, n=8192, k=64, **HALVES)
    verdict = verify.Verifier(0, most_elements=10).cut_down(plan, plan.space.schedule(0), 1)
    assert verdict.difference is None
    assert verdict.by == "not verified: too large for the interpreter; the mapping is proved"


def test_rows_that_are_summed_and_scaled_by_one_part_are_cut_alike() -> None:
    """A part runs both loops over a row as one: cut to 70 and 68 elements it would sum two more than the program."""
    program = workload("rms_norm_product", m=32, k=128, n=64, t="f16")
    found = planned(TuneRequest(program, load_target("nvidia-a100"))).plans
    plan = next(p for p in found if any(isinstance(q, WarpCooperativePart) and len(q.members) > 1 for q in p.parts))
    verdict = verify.Verifier(0).cut_down(plan, plan.space.schedule(int(plan.space.few[0])), 1)
    assert verdict.difference is not None
    assert verdict.difference.ok


SQUARE = """
def square(X: f32[m, n], W: f32[n, n], Y: f32[m, n], *, m=4, n=100):
    Z: f32[m]
    P: f32[m, n]
    A: f32[m, n]
    for i in range(m):
        Z[i] = 0
        for j in range(n):
            Z[i] += X[i, j]
    for i, j in grid(m, n):
        P[i, j] = X[i, j] * Z[i]
    for i, e in grid(m, n):
        A[i, e] = 0
        for j in range(n):
            A[i, e] += P[i, j] * W[j, e]
    for i, e in grid(m, n):
        if X[i, e] > 2.0:
            A[i, e] = 0
    for i, e in grid(m, n):
        Y[i, e] = A[i, e]
"""


def test_loops_that_are_only_equally_long_are_cut_apart() -> None:
    """`e` is as long as `j`, which the same part sums over; it was cut to the length of `j`, and Y's was not."""
    program = autosched.parse(SQUARE)
    found = planned(TuneRequest(program, H200, only=("cuda/fma.f32.v1",))).plans
    plan = next(p for p in found if not p.tensor_parts)
    assert any(isinstance(q, WarpCooperativePart) and len(q.members) > 1 for q in plan.parts)
    along = {s.name: [a.name for a in s.axes] for s in plan.program.stages}
    alike = cut_as_reductions(plan)
    assert {along["Z"][1], along["P"][1], along["A"][2]} <= alike
    assert not {along["A"][1], along["Y"][1]} & alike
    verdict = verify.Verifier(0).cut_down(plan, plan.space.schedule(int(plan.space.few[0])), 1)
    assert verdict.difference is not None
    assert verdict.difference.ok


@pytest.mark.slow
def test_what_is_too_large_says_how_large() -> None:
    program = workload("attention", h=1, n=128, l=128, d=32)
    found = planned(TuneRequest(program, H200)).plans
    plan = next(p for p in found if any(isinstance(q, TileLoopsPart) for q in p.parts))
    device = simulator(target=H200)
    said = device.measure(device.build(Candidate(plan, int(plan.space.few[0]))), "final").extra["verified_by"]
    size = r"\([0-9,]+ statements, of 6,000 that it runs\)"
    more = "; smaller sizes \\(-D\\) are run with --emulate: 300,000 statements at most"
    size += ", and tile loops are not cut down"
    assert re.fullmatch(f"not verified: too large for the interpreter {size}{more}.*", said)
    asked = dataclasses.replace(INTERPRETER, emulated=300_000)
    verdict = verify.Verifier(0, runner=asked).cut_down(plan, plan.space.schedule(int(plan.space.few[0])), 1, 100_000)
    assert "that it runs), and tile loops are not cut down; with --emulate it is run" in verdict.by


def test_what_the_emulator_will_not_run_is_known_before_it_is_built() -> None:
    _, (plan, *_) = plans("softmax", "portable/*v4", m=8, n=64)
    candidate = Candidate(plan, 0)
    assert SimulatorDevice(target=AVX512).too_large(candidate) == ""
    few = dataclasses.replace(INTERPRETER, name="the emulator", final=10)
    said = SimulatorDevice(target=AVX512, runner=few).too_large(candidate)
    assert re.fullmatch(
        r"the emulator runs at most 10, and the best kernel by the clock has [0-9,]+ statements: "
        r"it is run with its loops cut down; smaller sizes \(-D\) are run whole",
        said,
    )
    enough = dataclasses.replace(few, final=1_000_000)
    assert SimulatorDevice(target=AVX512, runner=enough).too_large(candidate) == ""


def test_of_a_plan_without_instructions_no_mapping_is_said_to_be_proved() -> None:
    _, (plan, *_) = plans("softmax", "portable/*v4", m=8, n=64)
    assert not plan.mappings
    verdict = verify.Verifier(0, most_elements=10).cut_down(plan, plan.space.schedule(0), 1)
    assert verdict.by == "not verified: too large for the interpreter"


@pytest.mark.slow
def test_cut_programs_keep_their_plans() -> None:
    program, (plan, *_) = plans("matmul_bias_relu", "portable/*v4", m=200, n=300, k=400)
    small = cut_plan(plan, cut(program, (9, 8)), 1)
    assert max(max(t.extents) for t in small.program.tensors.values()) <= 9
    assert {a.name: a.extent for a in small.parts[0].nest.axes}.keys() == {a.name for a in plan.parts[0].nest.axes}
    assert all(a.extent <= 9 for a in small.program.stages[0].axes)
    verdict = Verifier(0).cut_down(plan, plan.space.schedule(0), 1)
    assert verdict.difference is not None
    assert verdict.difference.ok


TWICE = """
def twice(A: f32[m, k], B: f32[k, n], C: f32[n, q], E: f32[m, q], *, m=200, k=300, n=400, q=100):
    D: f32[m, n]
    for i, j in grid(m, n):
        D[i, j] = 0
        for p in range(k):
            D[i, j] += A[i, p] * B[p, j]
    for i, j in grid(m, q):
        E[i, j] = 0
        for p in range(n):
            E[i, j] += D[i, p] * C[p, j]
"""


def test_a_program_is_not_cut_where_it_would_read_what_it_no_longer_writes() -> None:
    program = autosched.parse(TWICE)
    assert not unwritten(program)
    assert unwritten(cut(program, (27, 28))) == {"D"}
    (plan, *_) = plans_of(program, AVX512, only=("x86/vfmadd*zmm",))
    assert len(plan.tensor_parts) == 2
    (row,) = plan.space.sample(1, np.random.default_rng(0))
    verdict = Verifier(0).cut_down(plan, plan.space.schedule(int(row)), 1)
    assert verdict.difference is not None
    assert verdict.difference.ok


def test_a_kernel_that_fails_when_it_is_cut_down_is_not_passed_over() -> None:
    def fails(*_: object) -> dict[str, np.ndarray]:
        raise IndexError("past the end")

    _, (plan, *_) = plans("matmul", "portable/*v4", m=200, n=300, k=400)
    with pytest.raises(IndexError, match="past the end"):
        Verifier(0, runner=dataclasses.replace(INTERPRETER, run=fails)).cut_down(plan, plan.space.schedule(0), 1)


@pytest.mark.slow
def test_fewer_fraction_bits_are_allowed_for_where_they_were_accepted() -> None:
    program = autosched.workload("matmul", m=33, n=20, k=70, a="e4m3", b="e4m3", acc="f32")
    named = "cuda/mma.m16n8k32.e4m3.e4m3.f32"
    study = autosched.tune(
        program, "nvidia-h200", device="simulator", trials=4, cost_model="analytic", numerics="real", intrinsics=named
    )
    assert named in {i for t in study.searched for i in study.candidate(t).plan.intrinsics}
    assert not study.failed


def test_cold_data_takes_longer() -> None:
    build = SimulatorDevice(target=H200).build(candidate())
    warm = SimulatorDevice(target=H200, noise=0).measure(build).time_s
    cold = SimulatorDevice(target=H200, noise=0, cache="cold").measure(build).time_s
    assert warm is not None
    assert cold is not None
    assert cold > warm


def test_its_kernels_are_functions() -> None:
    _, (plan, *_) = plans("matmul", "cuda/wmma.*", m=16, n=16, k=16, a="s8", b="s8", acc="s32")
    kernel = SimulatorDevice(target=H200).callable(Candidate(plan, 0))
    a = np.arange(256, dtype=np.int8).reshape(16, 16)
    assert np.array_equal(kernel(a, a), a.astype(np.int32) @ a.astype(np.int32))
    assert "block.x" in kernel.source
    with pytest.raises(UsageError, match="2 values, not 1"):
        kernel(a)


@pytest.mark.parametrize("options", [{"noise": -1}, {"noise": 2}, {"threads": 0}, {"cache": "tepid"}])
def test_options_that_cannot_be_right(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        SimulatorDevice(target=H200, **options)  # type: ignore[arg-type]


def test_it_does_not_import_the_clock() -> None:
    for file in Path(package.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert "costmodel" not in (node.module or ""), file
            if isinstance(node, ast.Import):
                assert not any("costmodel" in a.name for a in node.names), file


def test_auto_takes_the_simulator_for_what_is_not_here() -> None:
    for target in (H200, AVX512):
        assert registry.best_for(target, {}, lambda name, _: False) == "simulator"
    nowhere = dataclasses.replace(AVX512, features=AVX512.features | {"avx9000"})
    assert registry.device("auto", None, nowhere).describe()["name"] == "simulator"
    for target, said in ((nowhere, "avx9000|x86"), (H200, "cuda")):
        with pytest.raises(MissingError, match=said) as error:
            registry.device("cpu", None, target)
        assert error.value.exit_code == 3
        assert "simulator" in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target", "sizes"),
    [
        ("matmul", "nvidia-h200", {"m": 512, "n": 512, "k": 512, **HALVES}),
        ("matmul", "x86-avx512", {"m": 64, "n": 64, "k": 64}),
    ],
)
def test_tunes_from_end_to_end(name: str, target: str, sizes: dict[str, int | str]) -> None:
    program = autosched.workload(name, **sizes)
    study = autosched.tune(program, target=target, device="simulator", trials=12, cost_model="analytic")
    best = study.best.trial.measurement
    assert not study.failed
    assert best.extra["verified"]
    first = min(t.measurement.time_s or 1.0 for t in study.searched)
    assert best.time_s == pytest.approx(first, rel=0.1)


@pytest.mark.slow
def test_every_row_of_a_study_lowers_to_what_it_says() -> None:
    _, found = plans("matmul", "cuda/*", m=100, n=60, k=50, **HALVES)
    for plan in found:
        for i in plan.space.sample(20, np.random.default_rng(1)):
            assert lower(plan, plan.space.schedule(int(i))).schedule == plan.space.schedule(int(i)).named
