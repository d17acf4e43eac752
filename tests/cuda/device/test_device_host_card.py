"""The cuda device above its worker, which answers here from a card made of host memory: data, tolerances, rounds."""

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest
from support.cards.host_card import FACTS, HostCard

from autosched.device.correctness.oracle import compute
from autosched.device.cuda import device as module
from autosched.device.cuda.clocks import Clocks
from autosched.device.cuda.launch_job import CudaJob, LaunchCall, Pointer
from autosched.device.cuda.worker import CudaServer
from autosched.device.job import Outcome
from autosched.device.protocol import Build
from autosched.errors import UsageError
from autosched.ir import parse
from autosched.ir.oracle.slack import NO_SLACK, Slack
from autosched.search.tuning.baseline import literal_plan
from autosched.tiling.candidate import Candidate

N = 64
PROGRAM = """
def total(A: f32[m, n], S: f32[m], *, m=64, n=64):
    for i in range(m):
        S[i] = 0.0
        for j in range(n):
            S[i] += A[i, j]
"""


class Here:
    """A `Client` whose worker is in this process."""

    def __init__(self, ordinal):
        self.card = HostCard({})
        self.server = CudaServer(None, lambda: self.card, Clocks(0), [])
        self.server.report = lambda stage: setattr(self.server, "stage", stage)
        self.asked = []
        self.loaded = 0

    def facts(self):
        return self.server.answer("card", [])

    def use(self, folder, tensors, samples=(), plain=None, comparing=b""):
        self.loaded += 1
        self.referred = plain is not None
        self.server.answer("data", [str(folder), tensors, samples, b""])

    def use_beside(self, sets=()):
        self.beside = [name for name, *_ in sets]
        self.server.answer("beside", [sets])

    def ask(self, deadline_s, *message):
        self.asked.append((deadline_s, message[0]))
        what, *rest = message
        for job in rest[0] if what == "interleaved" else rest[:1]:
            if job.calls[0].kernel == "ends":
                number = f" {rest[0].index(job)}" if what == "interleaved" else ""
                return Outcome("crash", message="it ended", extra={"stage": f"check{number}"})
        return self.server.answer(what, rest)

    def close(self):
        pass


@dataclass
class Kit:
    name: str = "none"


def summed(by):
    """A kernel whose results are off by a share of the sum of sizes, as one that keeps few bits."""

    def run(a, s):
        values = np.ctypeslib.as_array((ctypes.c_float * (N * N)).from_address(a)).reshape(N, N)
        got = np.ctypeslib.as_array((ctypes.c_float * N).from_address(s))
        got[:] = values.sum(axis=1) + by * np.where(np.isfinite(values), np.abs(values), 0).sum(axis=1)

    return run


def spread(a, s):
    """Right sums, to which each row adds the next one's times zero."""
    summed(0.0)(a, s)
    values = np.ctypeslib.as_array((ctypes.c_float * (N * N)).from_address(a)).reshape(N, N)
    got = np.ctypeslib.as_array((ctypes.c_float * N).from_address(s))
    with np.errstate(invalid="ignore"):
        got[:] += np.roll(0 * values.sum(axis=1), 1)


@pytest.fixture
def program():
    return parse(PROGRAM)


@pytest.fixture
def make(program):
    def made(**options):
        device = module.CudaDevice(program, client=Here, find_toolkit=lambda arch, newest: Kit(), **options)
        device.client.card.kernels |= {"right": summed(0.0), "coarse": summed(2e-4), "wrong": summed(0.5)}
        device.client.card.kernels |= {"spreads": spread}
        return device

    return made


@pytest.fixture
def built(program):
    candidate = Candidate(literal_plan(program, module.load_target("nvidia-h200")), 0)

    def of(kernel, slack=NO_SLACK):
        call = LaunchCall(kernel, (1, 1, 1), (N, 1, 1), 0, (Pointer("A"), Pointer("S")))
        return Build(candidate, CudaJob(b"good", (call,), slack=slack), seconds=0.5, kernel_sha="sha")

    return of


def test_measurements_say_what_was_compared(make, built):
    with make() as device:
        found = device.measure(built("right"), "final")
        assert (found.status, found.kernel_sha, found.costs_s["build"]) == ("ok", "sha", 0.5)
        assert found.time_s == pytest.approx(1e-5)
        assert found.extra["compared"] == "every element, by the interpreter"
        wrong = device.measure(built("wrong"))
        assert wrong.status == "wrong"
        assert "compared" not in wrong.extra
        assert device.client.loaded == 1


def test_a_tolerance_is_that_of_the_candidate_whatever_was_measured_before(make, built):
    """Few kept bits widen it for the candidate that keeps few, and for no other."""
    with make() as device:
        wide = Slack(64.0)
        order = [built("coarse"), built("coarse", wide), built("coarse"), built("right"), built("wrong", wide)]
        found = [device.measure(b) for b in order]
        assert [m.status for m in found] == ["wrong", "ok", "wrong", "ok", "wrong"]
        assert [m.status for m in device.measure_interleaved(order, 2)] == ["wrong", "ok", "wrong", "ok", "wrong"]
        assert found[1].tolerance > 10 * found[3].tolerance
        assert device.client.loaded == 1  # the data are the same


def test_an_oracle_that_is_given_is_as_wide(make, built, program):
    """Its data, with the interpreter's tolerances: as the simulator compares."""
    drawn = compute(program, 5)
    with make(oracle=drawn) as device:
        found = [device.measure(built("coarse", slack)).status for slack in (NO_SLACK, Slack(64.0), NO_SLACK)]
        assert found == ["wrong", "ok", "wrong"]


def test_a_build_that_ends_the_worker_is_left_out_of_the_next_round(make, built):
    with make(deadline_s=2.0) as device:
        failed = Build(built("right").candidate, error="it would not")
        builds = [built("right"), failed, built("ends"), built("right")]
        found = device.measure_interleaved(builds, 3)
        assert [m.status for m in found] == ["ok", "build", "crash", "ok"]
        assert [len(m.samples_s) for m in found] == [3, 0, 0, 3]
        assert device.client.asked == [(4.0, "interleaved"), (4.0, "interleaved")]  # for each stage


def test_what_spreads_beyond_its_row_is_found_on_data_with_nan_and_infinities(make, built):
    with make() as device:
        found = device.measure(built("spreads"))
        assert device.client.beside == ["A scaled by another power of two in each row", "A holds NaN and infinities"]
        assert found.status == "wrong"
        assert found.message.startswith("where A holds NaN and infinities: ")


def test_the_best_so_far_bounds_the_samples_of_others(make, built):
    with make() as device:
        assert device.measure(built("right"), best_s=1e-7).extra["stopped"] == "slow"
        assert device.measure(built("right"), "final").extra["stopped"] != "slow"


@pytest.mark.parametrize("options", [{"threads": 2}, {"cache": "hot"}, {"deadline_s": 0.0}], ids=str)
def test_impossible_options(make, options):
    with pytest.raises(UsageError):
        make(**options)
    with make() as device, pytest.raises(UsageError, match="repeats is one of"):
        device.measure(Build(None), "often")


def test_the_folder_goes_with_the_device(make, built):
    device = make()
    device.measure(built("right"))
    folder = device._folder.path
    assert (folder / "S.want").exists()
    device.close()
    assert not folder.exists()
    assert device.target.compiler["arch"].startswith(FACTS.arch)
