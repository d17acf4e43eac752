"""Everything above the driver, on a card made of host memory: checks, poisons, canaries, rotation, the worker."""

import threading
from dataclasses import replace
from multiprocessing import Pipe

import numpy as np
import pytest
from support.cards.host_card import FACTS, HostCard, array, boxed, unsampled

from autosched.device.correctness import oracle as oracles
from autosched.device.correctness.sampled import write_data
from autosched.device.cuda.bench import CudaBench
from autosched.device.cuda.cards import check_target
from autosched.device.cuda.clocks import Clocks
from autosched.device.cuda.data import CudaData
from autosched.device.cuda.launch_job import CudaJob, KernelMemory, LaunchCall, Pointer, Value
from autosched.device.cuda.worker import CudaServer
from autosched.device.job import Effort
from autosched.errors import MissingError, UsageError
from autosched.ir import parse, workload
from autosched.machine.catalogue import load_target

SCALE = """
def scale(A: f32[n], B: f32[n], s: f32, *, n=300):
    for i in range(n):
        B[i] = s * A[i]
"""
PREFIX = """
def prefix(X: s32[n], *, n=100):
    for i in range(1, n):
        X[i] = X[i] + X[i - 1]
"""
QUICK = Effort(fewest=3, most=4, sample_s=1e-4, budget_s=1e-3)


def scaled(a, b, s):
    array(b, 300, np.float32)[:] = np.frombuffer(s, np.float32)[0] * array(a, 300, np.float32)


def past_the_end(a, b, s):
    scaled(a, b, s)
    array(b, 301, np.float32)[300] = 0


def all_but_one(a, b, s):
    array(b, 300, np.float32)[:299] = (np.frombuffer(s, np.float32)[0] * array(a, 300, np.float32))[:299]


def added(x):
    values = array(x, 100, np.int32)
    values[:] = np.cumsum(values, dtype=np.int32)


class Turns:
    """Right at first, wrong after some calls: what a race may look like."""

    def __init__(self, calls):
        self.left = calls

    def __call__(self, a, b, s):
        scaled(a, b, s)
        self.left -= 1
        if self.left < 0:
            array(b, 300, np.float32)[7] += 1


KERNELS = {"scaled": scaled, "past_the_end": past_the_end, "all_but_one": all_but_one, "added": added}


def job(kernel, scalar=2.0):
    call = LaunchCall(
        kernel, (3, 1, 1), (128, 1, 1), 0, (Pointer("A"), Pointer("B"), Value(np.float32(scalar).tobytes()))
    )
    return CudaJob(b"good", (call,))


@pytest.fixture
def bench(tmp_path):
    program = parse(SCALE)
    oracle = oracles.compute(program, 0)
    oracle = replace(oracle, scalars={"s": np.float32(2)}, wants={"B": 2 * oracle.inputs["A"]})
    card = HostCard(KERNELS)
    return CudaBench(card, CudaData(card, tmp_path, write_data(program, oracle, tmp_path)[0]))


def measured(bench, job, **effort):
    return bench.measure(job, replace(QUICK, **effort), lambda stage: None)


def test_a_right_kernel_has_a_time(bench):
    outcome = measured(bench, job("scaled"))
    assert outcome.status == "ok"
    assert np.allclose(outcome.samples_s, 1e-5)


def test_what_is_not_written_is_wrong(bench):
    outcome = measured(bench, job("all_but_one"))
    assert outcome.status == "wrong"
    assert "B[299] is" in outcome.message
    assert outcome.extra["wrong_elements"] == 1


def test_a_write_past_the_end_is_wrong_and_made_good(bench):
    assert "bytes outside B" in measured(bench, job("past_the_end")).message
    assert measured(bench, job("scaled")).status == "ok"


def test_a_kernel_that_is_right_at_first_only_is_wrong(bench):
    bench.card.kernels["turns"] = Turns(3)
    assert measured(bench, job("turns")).status == "wrong"


def test_cold_calls_rotate_through_more_than_the_last_cache(bench):
    assert bench.sets(job("scaled")) * 2400 >= 2 * FACTS.limits["l2_bytes"]
    assert measured(bench, job("scaled"), cold=True).status == "ok"
    before = len(bench.card.memory)
    assert measured(bench, job("scaled"), cold=True).status == "ok"
    assert len(bench.card.memory) == before


def test_what_the_device_will_not_take_is_refused(bench):
    bench.card.fail["scaled"] = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
    assert measured(bench, job("scaled")).status == "refused"
    assert measured(bench, replace(job("scaled"), code=b"bad")).status == "refused"


def test_slow_candidates_are_given_up(bench):
    outcome = measured(bench, job("scaled"), slower_than_s=1e-6)
    assert outcome.status == "ok"
    assert outcome.extra["stopped"] == "slow"


def test_candidates_in_turn(bench):
    outcomes = bench.interleaved((job("scaled"), job("all_but_one"), job("scaled")), 3, QUICK, lambda stage: None)
    assert [o.status for o in outcomes] == ["ok", "wrong", "ok"]
    assert [len(o.samples_s) for o in outcomes] == [3, 0, 3]


def test_inouts_begin_at_their_values_each_time(tmp_path):
    program = parse(PREFIX)
    card = HostCard(KERNELS)
    bench = CudaBench(card, CudaData(card, tmp_path, write_data(program, oracles.compute(program, 0), tmp_path)[0]))
    call = LaunchCall("added", (1, 1, 1), (32, 1, 1), 0, (Pointer("X"),))
    assert measured(bench, CudaJob(b"good", (call,))).status == "ok"


def test_packed_data_are_laid_out_once(bench):
    def doubled(a, p):
        array(p, 300, np.float32)[:] = 2 * array(a, 300, np.float32)

    def copied(p, b):
        array(b, 300, np.float32)[:] = array(p, 300, np.float32)

    bench.card.kernels |= {"doubled": doubled, "copied": copied}
    made = CudaJob(
        b"good",
        (LaunchCall("copied", (1, 1, 1), (32, 1, 1), 0, (Pointer("P"), Pointer("B"))),),
        (LaunchCall("doubled", (1, 1, 1), (32, 1, 1), 0, (Pointer("A"), Pointer("P"))),),
        {"P": KernelMemory(1200, True)},
    )
    for cold in (False, True):
        assert measured(bench, made, cold=cold).status == "ok"
    assert bench.card.launched.count("doubled") == 2


def cut(whole, boxes):
    """The elements of the boxes, one after the other."""
    return np.concatenate([whole[tuple(slice(low, low + n) for low, n in box)].reshape(-1) for box in boxes])


def test_boxes_of_a_large_output_are_what_the_whole_would_be(tmp_path):
    program = workload("matmul_bias_relu", m=200, n=150, k=64)
    found, name, whole = boxed(program)
    assert (cut(whole, found.boxes[name]) == found.oracle.wants[name]).all()
    firsts, lasts = [b[0] for b in found.boxes[name]], [tuple(low + n for low, n in b) for b in found.boxes[name]]
    assert (0, found.boxes[name][0][0][1]) in firsts
    assert whole.shape in lasts
    card = HostCard({})
    data = CudaData(card, tmp_path, *write_data(program, found, tmp_path))
    card.upload(data.addresses[name], whole)
    assert data.verify(data.addresses).ok
    low = found.boxes[name][2][0][0]
    broken = whole.copy()
    broken[low, found.boxes[name][2][1][0]] += 1
    card.upload(data.addresses[name], broken)
    with pytest.raises(Exception, match=rf"{name}\[{low}, "):
        data.verify(data.addresses)


def test_whole_outputs_of_integers_are_equal_to_a_plain_kernels(tmp_path):
    program = workload("matmul", m=200, n=150, k=64, a="u8", b="s8", acc="s32")
    found, name, whole = boxed(program)
    at = unsampled(whole, found.boxes[name])
    card = HostCard({})
    data = CudaData(card, tmp_path, *write_data(program, found, tmp_path))
    card.upload(data.addresses[name], whole)
    data.keep(data.addresses)
    data.verify_whole(data.addresses)
    stray = whole.copy()
    stray[at] += 1
    card.upload(data.addresses[name], stray)
    assert data.verify(data.addresses).ok
    with pytest.raises(Exception, match=rf"{name}\[{at[0]}, {at[1]}\] is "):
        data.verify_whole(data.addresses)


def test_what_no_box_holds_is_compared_with_a_plain_kernel(tmp_path):
    program = workload("matmul_bias_relu", m=200, n=150, k=64)
    found, name, whole = boxed(program)
    at = unsampled(whole, found.boxes[name])
    card = HostCard({})

    def writes(values, seconds=0.0):
        def run(address):
            card.clock_s += seconds
            array(address, whole.size, whole.dtype)[:] = values.reshape(-1)

        return run

    stray, near = whole.copy(), whole.copy()
    stray[at] += 1.0
    near[at] += 1e-6
    card.kernels |= {"plain": writes(whole, 1.0), "stray": writes(stray), "near": writes(near)}
    card.kernels["slow"] = writes(stray, 1e-3)
    bench = CudaBench(card, CudaData(card, tmp_path, *write_data(program, found, tmp_path)))

    def of(kernel):
        return CudaJob(b"good", (LaunchCall(kernel, (1, 1, 1), (32, 1, 1), 0, (Pointer(name),)),))

    assert measured(bench, of("stray")).status == "ok"  # nothing tells
    assert bench.refer(of("stray"), lambda stage: None).status == "ok"  # boxes are all that a plain kernel is held to
    bench.fastest_s = None
    assert bench.refer(of("plain"), lambda stage: None).status == "ok"
    assert measured(bench, of("near")).status == "ok"
    assert measured(bench, of("slow")).status == "ok"  # it will not win
    bench.fastest_s = None
    wrong = measured(bench, of("stray"))
    assert wrong.status == "wrong"
    assert f"{name}[{at[0]}, {at[1]}]" in wrong.message
    kinds = [o.status for o in bench.interleaved((of("near"), of("slow")), 2, QUICK, lambda stage: None)]
    assert kinds == ["ok", "wrong"]


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_rows_are_cut_with_what_they_are_summed_up_in(name):
    found, output, whole = boxed(workload(name, m=90, n=130), Y=np.zeros((90, 130), np.float32))
    assert (cut(whole, found.boxes[output]) == found.oracle.wants[output]).all()


def test_what_other_rows_read_is_computed_too():
    text = """
def f(X: f32[m, n], Y: f32[m, n], *, m=9, n=7):
    M: f32[m]
    for i in range(m):
        M[i] = 0
        for j in range(n):
            M[i] += X[i, j]
        for k in range(n):
            Y[i, k] = X[i, k] - M[0]
"""
    found, output, whole = boxed(parse(text))
    assert (cut(whole, found.boxes[output]) == found.oracle.wants[output]).all()


def test_the_worker_says_what_it_does_and_ends_with_its_context(tmp_path):
    program = parse(SCALE)
    oracle = oracles.compute(program, 0)
    ours, theirs = Pipe()
    card = HostCard(KERNELS, {"boom": "CUDA_ERROR_ILLEGAL_ADDRESS"})
    server = CudaServer(theirs, lambda: card, Clocks(0), [])
    thread = threading.Thread(target=server.run)
    thread.start()

    def ask(*message):
        ours.send(message)
        said = []
        while not said or said[-1][0] == "at":
            assert ours.poll(60)
            said.append(ours.recv())
        return said

    assert ask("card") == [("done", FACTS)]
    assert ask("data", str(tmp_path), write_data(program, oracle, tmp_path)[0], (), b"") == [("done", None)]
    said = ask("measure", job("scaled", oracle.scalars["s"]), QUICK)
    assert [s for w, s in said if w == "at"] == ["load", "prepare", "check", "copy", "time"]
    assert said[-1][1].status == "ok"
    what, crash = ask("measure", job("boom"), QUICK)[-1]
    assert (what, crash.status, crash.extra["stage"]) == ("done", "crash", "check")
    assert "illegal address" in crash.message
    thread.join(60)
    assert not thread.is_alive()


def test_a_target_must_be_of_the_card():
    check_target(load_target("nvidia-h200"), FACTS)
    check_target(replace(load_target("nvidia-h200"), compiler={"arch": "sm_90"}), FACTS)
    with pytest.raises(MissingError, match="built for sm_90a"):
        check_target(load_target("nvidia-h200"), replace(FACTS, arch="sm_100"))
    with pytest.raises(MissingError, match="built for sm_89"):
        check_target(load_target("nvidia-rtx4090"), FACTS)
    with pytest.raises(UsageError, match="runs cuda"):
        check_target(load_target("x86-avx2"), FACTS)
    with pytest.raises(UsageError, match="shared_bytes"):
        check_target(load_target("nvidia-h200"), replace(FACTS, limits={"shared_bytes": 1024}))
