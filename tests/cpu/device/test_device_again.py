"""Outputs are looked at again after timing: threads that race may be right once."""

import os
from dataclasses import replace

import pytest
from support.compiled import device_kernels as kernels

from autosched.device.correctness.sampled import write_data
from autosched.device.cpu import bench as benches
from autosched.device.cpu.device import EFFORTS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the timing worker needs POSIX")
LATE = """
  %n = load i64, ptr @calls
  %m = add i64 %n, 1
  store i64 %m, ptr @calls
  %late = icmp ugt i64 %m, 2
  %right = load float, ptr %y
  %found = select i1 %late, float 9.0, float %right
  store float %found, ptr %y
"""
"""Right twice: both checks before the timing pass."""


@pytest.mark.parametrize("paced", [False, True])
def test_what_is_wrong_later_is_wrong(tmp_path, paced):
    bench = benches.CpuBench(benches.CpuData(tmp_path, write_data(kernels.program(), kernels.oracle(), tmp_path)[0]))
    effort = replace(EFFORTS["search"], paced=paced)
    assert bench.measure(kernels.job(kernels.kernel()), effort, lambda stage: None).status == "ok"
    if paced:  # any trial is far from it now, so that it runs after the trial, and writes the right outputs
        bench._pace._known.usual_s *= 100
    late = kernels.job("@calls = internal global i64 0\n" + kernels.kernel(extra=LATE))
    outcome = bench.measure(late, effort, lambda stage: None)
    assert outcome.status == "wrong"
    assert outcome.costs_s.keys() == {"check", "time"}
    assert "is 9, not" in outcome.message
