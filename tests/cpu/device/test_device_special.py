"""Devices check every candidate on data with NaN and infinities before they time it."""

from __future__ import annotations

import time
from types import ModuleType

import numpy as np
import pytest
from support.plans import CONV, covering_rows, machine, plans_of, this_machine

from autosched.device.correctness import special
from autosched.device.correctness.oracle import compute
from autosched.device.correctness.sampled import Sampled, is_large, sampled
from autosched.device.cpu import device as cpu
from autosched.device.simulator import device as simulator
from autosched.device.simulator.verify import verify
from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.machine.host import host_features
from autosched.machine.target import Target
from autosched.tiling.candidate import Candidate


def on_an_instruction(program: Program, target: Target) -> list[Candidate]:
    """Rows of the first plan that assumes the weights to be finite."""
    plans = plans_of(program, target, only=("x86/vfmadd.f32.ymm",))
    plan = next(p for p in plans if any(m.finite for m in p.mappings))
    return [Candidate(plan, row) for row in list(covering_rows(plan))[:6]]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["cpu", "simulator"])
def test_a_kernel_that_multiplies_what_a_border_excludes_is_found(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if where == "cpu" and "fma" not in host_features():
        pytest.skip("needs FMA")
    program = parse(CONV, sizes={"h": 5, "w": 4, "ci": 2, "co": 9})
    target = this_machine() if where == "cpu" else machine()

    def statuses() -> set[str]:
        candidates = on_an_instruction(program, target)
        made = cpu.CpuDevice(program, target) if where == "cpu" else simulator.SimulatorDevice(program, target)
        try:
            found = [made.measure(made.build(c)) for c in candidates]
        finally:
            made.close()
        assert all("NaN" in m.message or "nan" in m.message for m in found if not m.ok)
        return {m.status for m in found}

    assert statuses() == {"ok"}  # the weights are assumed to be finite
    module: ModuleType = cpu if where == "cpu" else verify
    monkeypatch.setattr(module, "assumed_finite", lambda plan: frozenset())
    assert "wrong" in statuses()


def found(program: Program, finite: frozenset[str] = frozenset()) -> special.Special | None:
    return special.special(program, 0, finite, lambda inputs: compute(program, 0, inputs=inputs))


def test_data_leave_most_of_each_output_alone() -> None:
    data = found(workload("matmul", m=40, n=40, k=40))
    assert data is not None
    assert data.tensors == ("A", "B")
    assert data.folder == "A and B hold NaN and infinities"
    oracle = data.found
    assert isinstance(oracle, special.Oracle)
    assert any(np.isnan(v).any() for v in oracle.inputs.values())
    assert 0.5 < np.isfinite(oracle.wants["C"]).mean() < 1


def test_no_values_where_they_would_matter_everywhere() -> None:
    assert found(workload("matmul", a="u8", b="s8")) is None
    assert found(workload("reduce", m=1, n=4096)) is None
    one = found(workload("matmul", m=1, n=64, k=64))
    assert one is not None
    assert one.tensors == ("B",)
    assert found(workload("matmul", m=1, n=64, k=64), frozenset(["B"])) is None


def test_what_a_program_assumes_is_kept() -> None:
    text = "def f(X: f32[400], Y: f32[400]):\n    assume(0 <= X <= 1)\n"
    assert found(parse(text + "    for i in range(400):\n        Y[i] = X[i] + 1.0\n")) is None


def test_data_of_large_programs_hold_them_in_the_corners() -> None:
    """Boxes lie there, and what guards exclude."""
    program = parse(CONV, sizes={"h": 96, "w": 96, "ci": 32, "co": 64})
    assert is_large(program)
    data = special.special(program, 0, frozenset(), lambda inputs: sampled(program, 0, inputs=inputs))
    assert data is not None
    assert isinstance(data.found, Sampled)
    for name in data.tensors:
        values = np.asarray(data.found.oracle.inputs[name]).ravel()
        assert not np.isfinite(values[[0, -1]]).any()


def test_data_are_there_before_the_first_candidate() -> None:
    program = parse(CONV, sizes={"h": 5, "w": 4, "ci": 2, "co": 9})
    plan = plans_of(program, machine(), only=("x86/vfmadd.f32.ymm",))[0]
    asked: list[frozenset[str]] = []

    class Noting(cpu.CpuDevice):
        def _special_of(self, program: Program, finite: frozenset[str]) -> None:
            asked.append(finite)

    with Noting(program) as device:
        if not device.aside:
            pytest.skip("one CPU has nothing beside it")
        device.foresee(plan)
        device.begin(lambda: None).result()
        assert asked == [cpu.assumed_finite(plan)]
        device._find_beside(program, cpu.assumed_finite(plan))
        assert len(asked) == 1
        device._find_beside(program, frozenset(["X"]))
        assert len(asked) == 2


def test_a_measurement_waits_for_what_was_foreseen() -> None:
    """Else what is foreseen for one plan may take the place of what another one is checked on."""
    program = parse(CONV, sizes={"h": 5, "w": 4, "ci": 2, "co": 9})
    plan = plans_of(program, machine(), only=("x86/vfmadd.f32.ymm",))[0]
    said: list[str] = []

    class Slow(cpu.CpuDevice):
        def _special_of(self, program: Program, finite: frozenset[str]) -> None:
            said.append("begins")
            time.sleep(0.5)
            said.append("ends")

    with Slow(program) as device:
        if not device.aside:
            pytest.skip("one CPU has nothing beside it")
        build = device.build(Candidate(plan, int(plan.space.few[0])))
        device.foresee(plan)
        assert device.measure(build).status == "ok"
    assert said in (["begins", "ends"], ["begins", "ends", "begins", "ends"])


def test_outputs_are_computed_whole_only_where_that_is_cheap() -> None:
    """On the way to a first trial a convolution's took longer than all the rest."""
    large = {name for name in ("conv3d", "conv2d_transposed", "softmax", "gemv") if is_large(workload(name))}
    assert large == {"conv3d", "conv2d_transposed"}
