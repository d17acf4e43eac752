"""The last rounds of benchmarks.cuda, on a card made of host memory: nobody wins who is right in the boxes only."""

import pytest
from support.cards.host_card import FACTS, HostCard, array, boxed, unsampled

from autosched.device.correctness.sampled import write_data
from autosched.device.cuda.compile.nvrtc import Cubin
from autosched.device.cuda.data import CudaData
from autosched.device.cuda.launch_job import CudaJob, LaunchCall, Pointer
from autosched.device.job import Outcome
from autosched.ir import workload
from autosched.search.tuning.tune import plans_of
from benchmarks.gpu import cases, finals, peers, prepare
from benchmarks.gpu.bundle import Entry, Loop, Problem, Recorded
from benchmarks.gpu.cases import all_cases
from benchmarks.gpu.prepare import PLAIN, plain_of
from benchmarks.gpu.report import result_of
from benchmarks.gpu.run import plain_job

CUBIN = Cubin(b"good", "sm_90a", "13.0", {})


class Case:
    """A product whose kernels are Python functions: right ones, and such that stray in an element outside all boxes."""

    def __init__(self, folder):
        program = workload("matmul_bias_relu", m=200, n=150, k=64)
        found, self.output, self.whole = boxed(program)
        self.at = unsampled(self.whole, found.boxes[self.output])
        self.card = HostCard({})
        tensors, samples = write_data(program, found, folder)
        self.data = CudaData(self.card, folder, tensors, samples)
        self.problem = Problem("case", {}, "f32", "gemm", 1, tensors, samples, {}, {}, {}, ())

    def kernel(self, name, off=0.0, seconds=1e-5, right_calls=10**9):
        values, calls = self.whole.copy(), []

        def run(address):
            calls.append(0)
            values[self.at] = self.whole[self.at] + (off if len(calls) > right_calls else 0)
            self.card.clock_s += seconds
            array(address, values.size, values.dtype)[:] = values.reshape(-1)

        self.card.kernels[name] = run
        return CudaJob(b"", (LaunchCall(name, (1, 1, 1), (32, 1, 1), 0, (Pointer(self.output),)),))

    def rounds(self, jobs, plain=True, loops=()):
        entries = tuple(Entry("plan", 0, i, "", (), "", job) for i, job in enumerate(jobs))
        outcomes = [Outcome("ok", (float(i),)) for i in range(len(jobs))]
        made = dict.fromkeys([*range(PLAIN, len(jobs)), *(loop.entry.number for loop in loops)], CUBIN)
        given = {"entries": entries, "plain": self.plain() if plain else None, "loops": tuple(loops)}
        problem = Problem(**{**vars(self.problem), **given})
        last = finals.Finals(self.card, self.data, problem, made, FACTS.limits["l2_bytes"], plain_job(problem, made))
        found = last.rounds(outcomes)
        held = len(self.card.memory)
        assert held == len(self.data.tensors) + len(self.data.references)
        return Recorded("case", last.corrected(outcomes), found, whole=bool(self.data.references)), problem

    def plain(self):
        return Entry("plan", 0, PLAIN, "", (), "", self.kernel("plain"))


@pytest.fixture
def case(tmp_path, monkeypatch):
    monkeypatch.setattr(finals.libraries, "peers", lambda asked: [("library", "is not here")])
    return Case(tmp_path)


def names(recorded):
    return [c.name for c in recorded.rounds if c.seconds]


def test_a_winner_is_compared_whole(case):
    jobs = [case.kernel("stray", 1.0, right_calls=0), *(case.kernel(f"good {i}") for i in range(4))]
    recorded, problem = case.rounds(jobs)
    assert names(recorded) == ["ours 1", "ours 2", "ours 3"]
    errors = {c.name: c.error for c in recorded.rounds if c.error}
    place = ", ".join(str(i) for i in case.at)
    assert f"{case.output}[{place}]" in errors["ours 0"]
    assert errors["library"] == "is not here"
    assert [o.status for o in recorded.outcomes] == ["wrong", "ok", "ok", "ok", "ok"]
    result = result_of(problem, recorded)
    assert result["whole"]
    assert result["failed"] == {"wrong": 1}
    assert result["time_s"] == pytest.approx(2e-5)


def test_a_loop_of_the_instruction_takes_part_at_as_many_operations_as_the_case_has(case):
    job, once = case.kernel("loop", seconds=4e-5), case.problem.operations
    loops = [Loop(Entry(f"{n} times", 0, PLAIN - n, "", (), "", job), n * once) for n in (1, 8)]
    recorded, problem = case.rounds([case.kernel("good")], loops=loops)
    assert names(recorded) == ["ours 0", "1 times", "8 times"]
    ratios = result_of(problem, recorded)["ratios"]
    assert ratios["1 times"] == pytest.approx(8 * ratios["8 times"])
    assert ratios["1 times"] > 1


def test_a_winner_that_is_right_at_first_only_is_left_out(case):
    recorded, _ = case.rounds([case.kernel("late", 1.0, right_calls=3), case.kernel("good")])
    assert names(recorded) == ["ours 1"]
    assert recorded.outcomes[0].status == "wrong"


def test_without_a_plain_kernel_boxes_are_all_there_is(case):
    recorded, problem = case.rounds([case.kernel("stray", 1.0, right_calls=0)], plain=False)
    assert names(recorded) == ["ours 0"]
    assert not result_of(problem, recorded)["whole"]


def test_a_plain_kernel_that_is_wrong_in_a_box_says_nothing_of_others(case):
    case.at = (0, 0)
    case.plain = lambda: Entry("plan", 0, PLAIN, "", (), "", case.kernel("plain", 1.0, right_calls=0))
    recorded, _ = case.rounds([case.kernel("good")])
    assert names(recorded) == ["ours 0"]
    assert not recorded.whole
    assert {c.name for c in recorded.rounds if c.error} == {"plain", "library"}


@pytest.mark.slow
def test_a_product_of_users_kind_that_is_wrong_is_not_timed():
    torch = pytest.importorskip("torch")
    a, b = torch.rand(8, 64, dtype=torch.bfloat16), torch.rand(16, 64, dtype=torch.bfloat16)
    out = torch.empty(8, 16, dtype=torch.bfloat16)
    peers._check(lambda a, b, c: torch.matmul(a, b.t(), out=c), a, b, out)
    with pytest.raises(ValueError, match="off by"):
        peers._check(lambda a, b, c: torch.matmul(a[:7], b.t(), out=c[:7]), a, b, out)
    with pytest.raises(ValueError, match="off by nan"):
        peers._check(lambda a, b, c: c.fill_(float("nan")), a, b, out)


NAMES = ("squares/bf16/8192", "llm/e4m3/1x4096x4096", "squares/s8/8192", "conv/f16/rn50_7_3x3_512")


@pytest.mark.parametrize("name", NAMES)
def test_cases_have_plain_kernels(name):
    (case,) = (c for c in all_cases() if c.name == name)
    headers = {}
    entry = plain_of(case, headers)
    assert entry.number == PLAIN
    assert not entry.error
    assert "mma" not in entry.text
    assert set(entry.headers) == set(headers)


def test_data_are_as_wide_as_all_plans_need():
    """Tensor cores sum products of 8-bit floats with fewer bits than their accumulators have."""
    sizes = {"m": 64, "n": 64, "k": 64, "a": "e4m3", "b": "e4m3", "acc": "f32", "out": "bf16"}
    case = cases.Case("squares", "64", "e4m3", "matmul_nt", sizes, numerics="real")
    own = prepare.data_of(case).oracle.tolerances
    wider = prepare.data_of(case, plans_of(prepare.request_of(case))[1]).oracle.tolerances
    assert own
    assert all((wider[name] > own[name]).any() for name in own)
