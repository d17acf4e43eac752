"""Large outputs on the CPU: boxes by the interpreter, the whole by the loops as written; who is right is asked."""

import os
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from support.compiled import device_kernels as kernels

from autosched.device.correctness import sampled
from autosched.device.correctness.compare import closeness, furthest
from autosched.device.correctness.ends import ends
from autosched.device.correctness.special import special
from autosched.device.cpu import plain_loops, whole_runs
from autosched.device.cpu.data import CpuData
from autosched.device.cpu.device import CpuDevice
from autosched.device.job import Band, RowsAlong, TensorFile
from autosched.errors import AutoschedError
from autosched.ir import parse, workload
from autosched.ir.oracle.blocks import seconds
from autosched.ir.oracle.nests import plan
from autosched.ir.oracle.slicing import slice_of
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.candidate import Candidate
from autosched.tiling.planner.plan_program import plan_program

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


def test_what_is_wrong_outside_the_boxes_is_found_by_the_loops_as_written(device):
    at = outside(device)
    wrong = device.measure(straying(at))
    assert wrong.status == "wrong"
    assert f"Y[{at}] is 9, not " in wrong.message
    good = device.measure(kernels.built(kernels.kernel()))
    assert (good.status, good.extra["whole"]) == ("ok", 1.0)
    assert "not_checked" not in good.extra
    assert device.measure(straying(3)).status == "wrong"
    assert device.measure(straying(at, "0x7FF8000000000000")).status == "wrong"
    races = device.measure_interleaved([kernels.built(kernels.kernel()), straying(at)], 3)
    assert [m.status for m in races] == ["ok", "wrong"]


@pytest.mark.slow
def test_what_is_wrong_outside_the_boxes_of_special_data_is_found(device):
    at = outside(device)
    special_data = device._special[2].found
    inside = {i for ((low, n),) in special_data.boxes["Y"] for i in range(low, low + n)}
    places = [int(i) for i in np.flatnonzero(np.isnan(special_data.oracle.inputs["X"])) if i not in inside]
    assert places, at
    text = f"""
      %a = getelementptr float, ptr %x, i64 {places[0]}
      %b = load float, ptr %a
      %c = fcmp uno float %b, 0.0
      %d = fadd float %b, 1.0
      %e = select i1 %c, float 9.0, float %d
      %f = getelementptr float, ptr %y, i64 {places[0]}
      store float %e, ptr %f"""
    wrong = device.measure(kernels.built(kernels.kernel(extra=text)))
    assert wrong.status == "wrong"
    assert f"where X holds NaN and infinities: Y[{places[0]}] is 9, not nan" in wrong.message
    assert device.measure(kernels.built(kernels.kernel())).status == "ok"


@pytest.mark.slow
def test_as_many_outputs_are_looked_at_as_there_are():
    """Of each a few elements are so large that no box knows how far two right kernels may be apart there."""
    outputs = "ABCDEF"
    lines = [f"def sums(X: f32[m, n], {', '.join(f'{y}: f32[m]' for y in outputs)}, *, m=2000, n=64):"]
    for factor, y in enumerate(outputs):
        lines += ["    for i in range(m):", f"        {y}[i] = 0", "        for j in range(n):"]
        lines += [f"            {y}[i] += X[i, j] * {factor + 1.1}"]
        lines += [f"        {y}[i] *= 1000000.0 if i // 7 == 201 else 1.0"]
    program = parse("\n".join(lines) + "\n")
    with Sampling(program, deadline_s=20.0) as device:
        catalogue = Catalogue.builtin()
        found = plan_program(program, device.target, catalogue, usable(catalogue, device.target, "cpu", None))
        rows = [(p, int(p.space.thinned(1, np.random.default_rng(0))[0])) for p in found.plans[:2]]
        measured = [device.measure(device.build(Candidate(p, row))) for p, row in rows]
    assert [(m.status, m.message) for m in measured] == [("ok", "")] * len(rows)


@pytest.mark.slow
def test_loops_as_written_that_cannot_run_are_told_and_kernels_compared_with_each_other(device, monkeypatch):
    def refuse(*asked):
        raise AutoschedError("no loops today")

    monkeypatch.setattr(whole_runs, "plain_loops", refuse)
    at = outside(device)
    stray, good = straying(at), kernels.built(kernels.kernel())
    found = device.measure(stray)
    assert (found.status, found.extra["whole"]) == ("ok", 0.0)  # nothing tells yet
    assert "outputs outside of the boxes, with the loops as written: no loops today" in found.extra["not_checked"]
    assert device.measure(good).status == "ok"
    assert device.measure(stray).status == "wrong"
    assert [m.status for m in device.measure_interleaved([good, stray], 3)] == ["ok", "wrong"]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "said"), [(None, "they ended with SIGSEGV"), (kernels.SPIN, "not end in time")])
def test_loops_as_written_that_end_the_worker_are_told(device, monkeypatch, text, said):
    job = kernels.job(text or kernels.CRASH)
    loops = plain_loops.PlainLoops((Band(job, {"Y": RowsAlong(0, 0, kernels.N)}),), 1)
    monkeypatch.setattr(whole_runs, "plain_loops", lambda *asked: loops)
    device.plain_s = 0.2
    found = device.measure(kernels.built(kernels.kernel()))
    assert (found.status, found.extra["whole"]) == ("ok", 0.0)
    assert said in found.extra["not_checked"][0]


@pytest.mark.slow
def test_a_right_kernel_is_not_refused_where_the_loops_as_written_are_wrong(device, monkeypatch):
    """The interpreter decides: of what they wrote nothing is kept."""
    at = outside(device)
    device.close()
    stray = straying(at).payload
    loops = plain_loops.PlainLoops((Band(stray, {"Y": RowsAlong(0, 0, kernels.N)}),), 1)
    monkeypatch.setattr(whole_runs, "plain_loops", lambda *asked: loops)
    with Sampling(parse(ADD), deadline_s=5.0) as other:
        assert other.measure(kernels.built(kernels.kernel())).status == "ok"
        assert other.measure(straying(at)).status == "wrong"
        other._written = None  # what a box showed stays with the data
        found = other.measure(kernels.built(kernels.kernel()))
    assert (found.status, found.extra["whole"]) == ("ok", 0.0)
    assert f"the loops as written are wrong themselves (Y[{at}]: 9, not " in found.extra["not_checked"][0]


@pytest.mark.slow
def test_rows_for_which_there_is_no_time_are_told(device, monkeypatch):
    """Bands are evenly apart; the others are compared between kernels."""
    monkeypatch.setattr(plain_loops, "RATE", 1000.0)
    at = outside(device)
    device.close()
    with Sampling(parse(ADD), deadline_s=5.0) as other:
        other.plain_s = 1e-9
        found = other.measure(kernels.built(kernels.kernel()))
        assert found.status == "ok"
        assert 0 < found.extra["whole"] < 0.1
        assert "of the rows outside of the boxes: the loops as written take about" in found.extra["not_checked"][0]
        assert other.measure(straying(at)).status == "wrong"


def test_bands_are_all_rows_and_the_first_of_them_evenly_apart():
    assert plain_loops._spread(1) == [0]
    for count in (2, 3, 7, 64, 1000):
        order = plain_loops._spread(count)
        assert sorted(order) == list(range(count))
        first = sorted(order[:9])
        assert max(b - a for a, b in pairwise(first)) <= max(1, -(-count // 4))


def test_loops_that_all_depend_on_all_rows_are_one_band(monkeypatch):
    monkeypatch.setattr(plain_loops, "RATE", 1e5)
    axes = {"Y": 0}
    assert plain_loops._count(parse(ADD.replace("n=1000", "n=100000")), axes, 1.0) > 1
    total = """
def total(X: f32[n], Y: f32[n], *, n=1000):
    T: f32[1]
    T[0] = 0
    for i in range(n):
        T[0] += X[i]
    for i in range(n):
        Y[i] = X[i] / T[0]
"""
    assert plain_loops._count(parse(total, sizes={"n": 100000}), axes, 1.0) == 1


def test_the_element_that_differs_most_is_named():
    known = np.arange(10, dtype=np.float32)
    got = known.copy()
    close = closeness([(known, np.full(10, 0.1 / 4))])
    assert furthest(got, known, close) is None
    got[3] += 0.05  # two right kernels may differ so far
    assert furthest(got, known, close) is None
    got[[4, 7]] += [1.0, 5.0]
    assert furthest(got, known, close) == 7
    known[5] = np.nan
    assert furthest(got, known, close) == 5
    got[5] = np.nan
    assert furthest(got, known, close) == 7
    assert furthest(got, known, closeness([(known, np.full(10, np.inf))])) is None, "any number will do"
    known[5], got[5], got[7] = np.inf, -np.inf, known[7]
    assert furthest(got, known, close) == 5
    assert furthest(got, known, closeness([(known, np.where(np.isinf(known), np.inf, 0.4))])) is None
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
