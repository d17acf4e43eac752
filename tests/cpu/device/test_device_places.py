"""A final round goes through copies of the data: the pages that a process happened to get decide about no study."""

import os

import numpy as np
import pytest
from support.compiled import device_kernels as kernels

from autosched.device.correctness.sampled import write_data
from autosched.device.cpu import bench as benches
from autosched.device.cpu.device import EFFORTS
from autosched.machine.native import NativeCalls

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the timing worker needs POSIX")


@pytest.mark.parametrize(("room", "places"), [(1 << 20, benches.PLACES), (1, 1)])
def test_rounds_go_through_the_places(tmp_path, room, places):
    seen: list[tuple[int, int]] = []

    class Noted(NativeCalls):
        def __init__(self, address, sets, scalars=()):
            super().__init__(address, sets, scalars)
            self.sets = tuple(sets[0])

        def __call__(self, times):
            seen.append(self.sets)
            return super().__call__(times)

    tensors = write_data(kernels.program(), kernels.oracle(), tmp_path)[0]
    bench = benches.CpuBench(benches.CpuData(tmp_path, tensors), places_bytes=room, calls=Noted)
    job = kernels.built(kernels.kernel()).payload
    outcomes = bench.interleaved((job, job), 2 * places, EFFORTS["final"], lambda stage: None)
    assert [(o.status, len(o.samples_s)) for o in outcomes] == [("ok", 2 * places)] * 2
    timed = seen[-4 * 2 * places :]  # a round calls each of two kernels twice: before the sample, and for it
    assert len(set(timed)) == places
    assert timed[0] == timed[1] == timed[2] == timed[4 * places]  # both kernels read one copy in a round


def test_copies_hold_what_the_first_holds(tmp_path):
    data = benches.CpuData(tmp_path, write_data(kernels.program(), kernels.oracle(), tmp_path)[0])
    first, second = data.elsewhere(0), data.elsewhere(1)
    assert data.elsewhere(0) is first
    for name, view in data.plain.items():
        for copy in (first[name], second[name]):
            np.testing.assert_array_equal(copy, view)
            assert not np.shares_memory(copy, view)
        assert not np.shares_memory(first[name], second[name])
