"""Large outputs on the CPU: boxes by the interpreter, the whole against the kernel before; who is right is asked."""

import os
from functools import partial

import numpy as np
import pytest
from support.compiled import device_kernels as kernels

from autosched.device.correctness import sampled
from autosched.device.correctness.compare import furthest
from autosched.device.correctness.ends import ends
from autosched.device.correctness.special import special
from autosched.device.cpu.data import CpuData
from autosched.device.cpu.device import CpuDevice
from autosched.device.job import TensorFile
from autosched.ir import parse, workload
from autosched.ir.oracle.blocks import seconds
from autosched.ir.oracle.nests import plan
from autosched.ir.oracle.slicing import slice_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the timing worker needs POSIX")

ADD = """
def add(X: f32[n], Y: f32[n], *, n=1000):
    for i in range(n):
        Y[i] = X[i] + 1.0
"""


def straying(at, value="9.0"):
    """A kernel that is right but for one element."""
    return kernels.built(
        kernels.kernel(extra=f"%s = getelementptr float, ptr %y, i64 {at}\n  store float {value}, ptr %s")
    )


class Sampling(CpuDevice):
    """A device that takes every program for a large one, and looks at small boxes."""

    def _data_of(self, program):
        if self._computed is None or self._computed[0] is not program:
            self._computed = program, sampled.sampled(program, self.seed, box_elements=16)
        return self._computed[1]

    def _special_of(self, program, finite):
        boxes = partial(sampled.sampled, program, self.seed, box_elements=16)
        return special(program, self.seed, finite, lambda inputs: boxes(inputs=inputs))

    def _ends_of(self, program):
        boxes = partial(sampled.sampled, program, self.seed, box_elements=16)
        return ends(program, self.seed, lambda inputs: boxes(inputs=inputs))


@pytest.fixture
def device():
    with Sampling(parse(ADD), deadline_s=5.0) as found:
        yield found


def outside(device):
    """An element of Y that no box holds, and one that the first does."""
    device.measure(kernels.built(kernels.CRASH))  # the data are there
    boxes = device._computed[1].boxes["Y"]
    assert sum(n for ((_, n),) in boxes) < kernels.N / 4
    inside = {i for ((low, n),) in boxes for i in range(low, low + n)}
    assert {0, kernels.N - 1} <= inside
    return next(i for i in range(500, kernels.N) if i not in inside)


@pytest.mark.slow
def test_what_is_wrong_outside_the_boxes_is_found_beside_a_right_kernel(device):
    at = outside(device)
    good = kernels.built(kernels.kernel())
    assert device.measure(good).status == "ok"
    wrong = device.measure(straying(at))
    assert wrong.status == "wrong"
    assert f"Y[{at}] is 9, not " in wrong.message
    assert device.measure(good).status == "ok"
    assert device.measure(straying(3)).status == "wrong"
    assert device.measure(straying(at, "0x7FF8000000000000")).status == "wrong"


@pytest.mark.slow
def test_a_right_kernel_is_not_refused_for_the_mistake_of_the_one_before(device):
    at = outside(device)
    stray, good = straying(at), kernels.built(kernels.kernel())
    assert device.measure(stray).status == "ok"  # nothing tells yet
    assert device.measure(good).status == "ok"
    assert device.measure(stray).status == "wrong"
    assert [m.status for m in device.measure_interleaved([good, stray], 3)] == ["ok", "wrong"]


def test_the_element_that_differs_most_is_named():
    known = np.arange(10, dtype=np.float32)
    got = known.copy()
    assert furthest(got, known, 0.1) is None
    got[3] += 0.2  # two right kernels may differ so far
    assert furthest(got, known, 0.1) is None
    got[[4, 7]] += [1.0, 5.0]
    assert furthest(got, known, 0.1) == 7
    known[5] = np.nan
    assert furthest(got, known, 0.1) == 5
    got[5] = np.nan
    assert furthest(got, known, 0.1) == 7
    whole = np.arange(10, dtype=np.uint64) + np.uint64(2**63)
    assert furthest(whole, whole.copy(), None) is None
    assert furthest(whole + np.eye(10, dtype=np.uint64)[6], whole, None) == 6


@pytest.mark.parametrize("sizes", [{"m": 16384, "k": 8192}, {"m": 512, "k": 1 << 18}])
def test_boxes_of_what_depends_on_much_are_small(sizes):
    """Six boxes together must not take as long as the whole."""
    program = workload("gemv", **sizes)
    units = plan(program.body)
    lengths, _ = sampled._lengths(program, units)
    box = {name: tuple((0, n) for n in sides) for name, sides in lengths.items()}
    assert seconds(slice_of(program, box, units)) <= max(sampled.BOX_S, sampled.whole_s(program) / 16)


def test_a_data_file_that_is_cut_short_is_refused(tmp_path):
    (tmp_path / "X.in").write_bytes(bytes(100))
    with pytest.raises(EOFError, match="100 bytes, 400 are wanted"):
        CpuData(tmp_path, (TensorFile("X", "float32", (100,), 400, True, False),))


def test_a_box_is_computed_once():
    """Of a small output each box is all that there is."""
    found = sampled.sampled(parse(ADD), 0)
    assert found.oracle.wants["Y"].shape == (1000,)
    assert found.boxes == {"Y": (((0, 1000),),)}
