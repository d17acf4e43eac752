"""Where all kernels of a study come from one wrong plan, none of them is handed back: the loops as written tell."""

import os

import numpy as np
import pytest

import autosched
from autosched.device.correctness import sampled
from autosched.device.cpu.device import CpuDevice
from autosched.errors import WrongResultError
from autosched.ir import parse
from autosched.search.tuning import tune
from autosched.tiling.candidate import Candidate
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.literal import literal_plan

pytestmark = [pytest.mark.skipif(os.name != "posix", reason="the timing worker needs POSIX"), pytest.mark.slow]

TEXT = """
def product(A: f32[n, k], B: f32[k, n], C: f32[n, n], *, n=256, k=96):
    for i, j in grid(n, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += A[i, p] * B[p, j]
"""
PROGRAM = parse(TEXT)


def outside():
    """Rows and columns of which no box of the data holds anything, and one element of them."""
    boxes = sampled.sampled(PROGRAM, 0).boxes["C"]
    free = np.ones((256, 256), bool)
    for (i, h), (j, w) in boxes:
        free[i : i + h, j : j + w] = False
    return tuple(int(i) for i in np.argwhere(free)[len(np.argwhere(free)) // 2])


def test_a_study_of_wrong_plans_alone_has_no_kernel(monkeypatch):
    monkeypatch.setattr(sampled, "WHOLE_S", 0.0)
    i, j = outside()
    tampered = parse(f"{TEXT}    for one in range(1):\n        C[{i}, {j}] = C[{i}, {j}] + 1\n")

    def planned(program, *asked, **options):
        return plan_program(tampered, *asked, **options)

    monkeypatch.setattr(tune, "plan_program", planned)
    with pytest.raises(WrongResultError, match=rf"C\[{i}, {j}\] is .*, not "):
        autosched.tune(PROGRAM, target="native", trials=2, seed=0)


@pytest.mark.parametrize("repeats", ["search", "final"])
def test_one_wrong_kernel_is_refused(monkeypatch, repeats):
    monkeypatch.setattr(sampled, "WHOLE_S", 0.0)
    i, j = outside()
    tampered = parse(f"{TEXT}    for one in range(1):\n        C[{i}, {j}] = C[{i}, {j}] + 1\n")
    with CpuDevice(PROGRAM) as device:
        wrong, right = (Candidate(literal_plan(p, device.target), 0) for p in (tampered, PROGRAM))
        found = device.measure(device.build(wrong), repeats)
        assert (found.status, found.extra["index"]) == ("wrong", [i, j])
        assert device.measure(device.build(right), repeats).ok
