"""The cpu device against kernels that work, crash, hang, lie or reach outside: each is its own kind of trial, and the
next candidate works."""

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.compiled import device_kernels as kernels
from support.paths import TESTS

from autosched.device.correctness.oracle import Oracle
from autosched.device.cpu.device import EFFORTS, CpuDevice
from autosched.device.cpu.timing import FEW
from autosched.device.job import EntryPoint, ScratchBuffer
from autosched.device.processes.process import WorkerProcess
from autosched.device.protocol import Build
from autosched.errors import UsageError
from autosched.machine.detect import detect

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the timing worker needs POSIX")
ON_LINUX = pytest.mark.skipif(platform.system() != "Linux", reason="signals are told apart on Linux")


@pytest.fixture(scope="module")
def device():
    with CpuDevice(kernels.program(), oracle=kernels.oracle(), deadline_s=5.0) as found:
        yield found


@pytest.fixture
def good():
    return kernels.built(kernels.kernel())


def check_good(device, build):
    measured = device.measure(build)
    assert measured.status == "ok", measured.message
    assert measured.time_s > 0
    return measured


def test_a_right_kernel_is_timed(device, good):
    measured = check_good(device, good)
    assert len(measured.samples_s) >= FEW
    assert measured.time_s == pytest.approx(np.median(measured.samples_s))
    assert measured.max_abs_error <= measured.tolerance == 1e-6
    assert set(measured.costs_s) == {"build", "check", "time"}
    assert measured.kernel_sha == "sha"


@pytest.mark.slow
def test_what_is_asked_while_the_device_gets_ready_waits(good):
    """Data are written and loaded in a thread of their own; a worker answers one request at a time."""
    with CpuDevice(kernels.program(), oracle=kernels.oracle(), deadline_s=5.0) as device:
        if not device.aside:
            pytest.skip("needs a second CPU")
        started = threading.Event()

        class Slow(WorkerProcess):
            def ensure(self) -> bool:
                fresh = super().ensure()
                if threading.current_thread() is not threading.main_thread():
                    started.set()
                    time.sleep(0.3)  # the worker is there, and holds no data yet
                return fresh

        device.worker = Slow(device.worker.module, *device.worker.arguments)
        device.warm()
        started.wait()
        check_good(device, good)


def test_final_takes_more_samples(device, good):
    assert len(device.measure(good, "final").samples_s) >= EFFORTS["final"].fewest


@ON_LINUX
def test_a_crash_is_recorded_and_the_next_works(device, good):
    measured = device.measure(kernels.built(kernels.CRASH))
    assert (measured.status, measured.extra["signal"], measured.time_s) == ("crash", "SIGSEGV", None)
    assert "check" in measured.message
    check_good(device, good)


@pytest.mark.slow
def test_a_hang_is_killed_at_the_deadline(good):
    with CpuDevice(kernels.program(), oracle=kernels.oracle(), deadline_s=0.5) as device:
        clock = time.monotonic()
        measured = device.measure(kernels.built(kernels.SPIN))
        assert measured.status == "timeout"
        assert "0.5 s" in measured.message
        assert time.monotonic() - clock < 5
        check_good(device, good)


@pytest.mark.parametrize(
    ("text", "index", "wrong"),
    [
        (kernels.kernel(add=1.5), None, kernels.N),
        (kernels.kernel(first=1), 0, 1),
        (kernels.kernel(last=kernels.N - 1), kernels.N - 1, 1),
        (kernels.NOTHING, None, kernels.N),
    ],
    ids=["wrong numbers", "first element missing", "last element missing", "writes nothing"],
)
def test_wrong_numbers_are_found(device, good, text, index, wrong):
    measured = device.measure(kernels.built(text))
    assert measured.status == "wrong"
    assert measured.time_s is None
    assert measured.max_abs_error > measured.tolerance
    assert measured.extra["wrong_elements"] == wrong
    if index is not None:
        assert measured.extra["index"] == [index]
        assert f"Y[{index}]" in measured.message
    check_good(device, good)


@pytest.mark.parametrize("calls", [1, 2], ids=["by the second call", "when timed"])
def test_a_kernel_that_is_right_at_first_is_found(device, good, calls):
    extra = f"""%c = load i64, ptr @count
  %d = add i64 %c, 1
  store i64 %d, ptr @count
  %bad = icmp sge i64 %c, {calls}
  %excess = select i1 %bad, float 1.0, float 0.0
  %first = load float, ptr %y
  %changed = fadd float %first, %excess
  store float %changed, ptr %y"""
    measured = device.measure(kernels.built("@count = global i64 0\n" + kernels.kernel(extra=extra)))
    assert measured.status == "wrong"
    assert measured.extra["index"] == [0]
    check_good(device, good)


@pytest.mark.sampled(1)
@ON_LINUX
@pytest.mark.parametrize("past", [1, 16])
def test_a_read_past_the_end_is_a_crash(device, good, past):
    extra = f"%o = getelementptr float, ptr %x, i64 {kernels.N + past - 1}\n  %r = load volatile float, ptr %o"
    measured = device.measure(kernels.built(kernels.kernel(extra=extra)))
    assert (measured.status, measured.extra["signal"]) == ("crash", "SIGSEGV")
    assert "outside" in measured.message
    check_good(device, good)


@ON_LINUX
def test_a_write_to_an_input_is_a_crash(device, good):
    assert device.measure(kernels.built(kernels.kernel(extra="store volatile float 0.0, ptr %x"))).status == "crash"
    check_good(device, good)


def test_a_write_before_the_start_is_wrong(device, good):
    extra = "%o = getelementptr float, ptr %y, i64 -1\n  store volatile float 0.0, ptr %o"
    measured = device.measure(kernels.built(kernels.kernel(extra=extra)))
    assert measured.status == "wrong"
    assert "outside Y" in measured.message
    check_good(device, good)


def test_packed_operands_are_prepared_once_and_read_only(device):
    job = kernels.packed_job()
    assert device.measure(kernels.built(job)).status == "ok"


def test_an_unfilled_packed_operand_cannot_pass(device):
    job = kernels.job(
        kernels.kernel(), main=EntryPoint("main", ("p", "Y")), scratch={"p": ScratchBuffer(4 * kernels.N, True)}
    )
    assert device.measure(kernels.built(job)).status == "wrong"


@ON_LINUX
def test_a_worker_killed_between_trials_is_replaced(device, good):
    check_good(device, good)
    os.kill(device.worker.pid, signal.SIGKILL)
    check_good(device, good)


def processor_s(pid):
    """Seconds that a process has computed: on a busy machine they are later than by the clock."""
    spent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
@ON_LINUX
def test_a_worker_killed_during_a_trial_tries_it_again(device, good):
    spins = kernels.built(kernels.SPIN)
    device.measure(good)
    starts = device.worker.starts

    import threading

    def kill_soon():
        for _ in range(2):  # the trial is tried twice; then the fault is its own
            pid = device.worker.pid
            while processor_s(pid) < 1:  # a worker starts in a third of it, and then spins
                time.sleep(0.01)
            os.kill(pid, signal.SIGKILL)
            while device.worker.pid in (pid, None):
                time.sleep(0.01)

    threading.Thread(target=kill_soon, daemon=True).start()
    measured = device.measure(spins)
    assert (measured.status, measured.extra["signal"]) == ("crash", "SIGKILL")
    check_good(device, good)
    assert device.worker.starts == starts + 2


def test_an_object_without_the_function_is_refused(device, good):
    measured = device.measure(kernels.built(kernels.job(kernels.kernel(), main=EntryPoint("nope", ("X", "Y")))))
    assert measured.status == "refused"
    assert "nope" in measured.message
    check_good(device, good)


def test_a_failed_build_is_a_measurement(device):
    measured = device.measure(Build(kernels.Fake(), error="no such instruction", seconds=0.5))
    assert (measured.status, measured.message, measured.costs_s) == ("build", "no such instruction", {"build": 0.5})


def test_clearly_slower_candidates_stop_early(device):
    measured = device.measure(kernels.built(kernels.kernel()), best_s=1e-9)
    assert measured.status == "ok"
    assert measured.extra["stopped"] == "slow"
    assert len(measured.samples_s) <= 2


def test_interleaved_measures_all_and_outlives_a_crash(device, good):
    crash, wrong = kernels.built(kernels.CRASH), kernels.built(kernels.kernel(add=2))
    found = device.measure_interleaved([good, crash, wrong, good], 4)
    assert [m.status for m in found] == ["ok", "crash", "wrong", "ok"]
    assert [len(m.samples_s) for m in found] == [4, 0, 0, 4]


def test_what_hangs_in_its_rounds_is_found_and_said():
    with CpuDevice(kernels.program(), oracle=kernels.oracle(), deadline_s=1.5) as device:
        ok, late = device.measure_interleaved([kernels.built(kernels.kernel()), kernels.built(kernels.SPIN)], 2)
    assert (ok.status, late.status) == ("ok", "timeout")
    assert late.message == "no end after 3 s while its results were checked, in turn with others"


def test_a_deadline_grows_with_what_a_call_takes():
    with CpuDevice(kernels.program(), oracle=kernels.oracle(), deadline_s=10.0) as device:
        of = [Build(replace(kernels.Fake(), analytic_s=s)) for s in (None, 2.0, 100.0)]
        assert [device.rounds.deadline_of(b) for b in of] == [10.0, 70.0, 610.0]
        device.rounds.fastest_s = 1.0
        assert [device.rounds.deadline_of(b) for b in of] == [10.0, 70.0, 100.0], "three times as slow is slow enough"


@pytest.mark.slow
def test_cold_caches(good):
    with CpuDevice(kernels.program(), oracle=kernels.oracle(), cache="cold") as device:
        assert device.measure(good).status == "ok"
        assert device.describe()["cache"] == "cold"


@pytest.mark.slow
def test_cold_caches_of_a_server(good):
    """A last cache of 480 MiB holds a hundred thousand copies of 8 kB of data, which are made before the deadline."""
    here = detect()
    outer = max((m for m in here.memories if m.name not in ("DRAM", "registers")), key=lambda m: m.bytes)
    grown = tuple(replace(m, bytes=480 << 20) if m is outer else m for m in here.memories)
    target = replace(here, memories=grown)
    with CpuDevice(kernels.program(), target, oracle=kernels.oracle(), cache="cold") as device:
        measured = device.measure(good)
        assert measured.status == "ok", measured.message


def test_inouts_start_from_their_values():
    """`y += 1`, checked and timed many times without running away."""
    text = kernels.kernel().replace("ptr %x, i64 %i", "ptr %y, i64 %i")
    y = np.arange(kernels.N, dtype=np.float32)
    oracle = Oracle({"X": y, "Y": y}, {"Y": y.astype(np.float64) + 1}, {"Y": np.zeros(kernels.N)})
    with CpuDevice(kernels.program(), oracle=oracle) as device:
        assert device.measure(kernels.built(text)).status == "ok"


def test_integers_must_be_equal():
    text = kernels.kernel().replace("load float", "load i32").replace("store float", "store i32")
    text = text.replace("fadd float %v, 1.0", "add i32 %v, 1")
    x = np.arange(kernels.N, dtype=np.int32)
    oracle = Oracle({"X": x}, {"Y": x + 1}, {"Y": None})
    with CpuDevice(kernels.program("s32"), oracle=oracle) as device:
        assert device.measure(kernels.built(text)).status == "ok"
        wrong = device.measure(kernels.built(text.replace("add i32 %v, 1", "add i32 %v, 2")))
        assert (wrong.status, wrong.max_abs_error, wrong.tolerance) == ("wrong", 1.0, 0.0)


@pytest.mark.slow
def test_the_worker_ends_with_the_device(good):
    device = CpuDevice(kernels.program(), oracle=kernels.oracle())
    device.measure(good)
    pid, folder = device.worker.pid, device._folder.path
    device.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not os.path.exists(folder)
    check_good(device, good)  # and it can be used again
    device.close()


@pytest.mark.parametrize(
    "options", [{"threads": 0}, {"threads": 10**6}, {"cache": "hot"}, {"deadline_s": 0.0}], ids=lambda o: str(o)
)
def test_impossible_options(options):
    with pytest.raises(UsageError):
        CpuDevice(**options)


ORPHAN = """
import sys
sys.path.insert(0, {folder!r})
from support.compiled import device_kernels as kernels
from autosched.device.cpu.device import EFFORTS, CpuDevice
device = CpuDevice(kernels.program(), oracle=kernels.oracle(), deadline_s=60.0)
device.measure(kernels.built(kernels.kernel()))
print(device.worker.pid, device._folder.path, flush=True)
device.measure(kernels.built(kernels.SPIN))
"""


@pytest.mark.sampled(1)
@ON_LINUX
@pytest.mark.parametrize("stopped", [False, True], ids=["computing", "stopped"])
def test_no_worker_outlives_a_killed_parent(stopped):
    """Not even one that is busy with a kernel that never ends, or that is stopped and cannot see its parent end."""
    script = ORPHAN.format(folder=str(TESTS))
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid, folder = parent.stdout.readline().split()
    worker = int(pid)
    time.sleep(0.3)
    assert os.path.isdir(folder)
    os.kill(worker, signal.SIGSTOP if stopped else 0)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(400):
        state = Path(f"/proc/{worker}/stat")
        if not state.exists() or " Z " in state.read_text():  # gone, or dead and not yet collected
            assert not os.path.exists(folder)
            return
        time.sleep(0.05)
    os.kill(worker, signal.SIGKILL)
    raise AssertionError("the worker lives on")


@pytest.mark.slow
@ON_LINUX
def test_an_interrupted_measurement_does_not_answer_the_next(device, good):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            device.measure(kernels.built(kernels.SPIN))
    finally:
        signal.signal(signal.SIGALRM, before)
    check_good(device, good)
