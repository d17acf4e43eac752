"""The cpu device beside other work: measured aside in order, everybody else off its cores, ended when nobody asks."""

import os
import threading
import time

import pytest
from support.compiled import device_kernels as kernels

from autosched.device.cpu.device import CpuDevice
from autosched.device.processes.async_measure import MeasureThread
from autosched.machine.detect import usable_cpus

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are kept apart on Linux"),
    pytest.mark.skipif(len(usable_cpus()) < 2, reason="one CPU has nothing beside it"),
]


def device_build(device):
    """A good build, with the builder's process alive."""
    device.builder.ready()
    return kernels.built(kernels.kernel())


@pytest.fixture
def device():
    with CpuDevice(kernels.program(), oracle=kernels.oracle(), deadline_s=20.0) as found:
        yield found


def test_builds_are_measured_in_order(device):
    good, wrong = kernels.built(kernels.kernel()), kernels.built(kernels.kernel(add=1.5))
    assert device.aside
    futures = [device.begin(lambda b=b: device.measure(b)) for b in (good, wrong, good)]
    assert [f.result().status for f in futures] == ["ok", "wrong", "ok"]


def test_a_kernel_on_all_cpus_has_nothing_beside_it():
    with CpuDevice(kernels.program(), threads=len(usable_cpus())) as device:
        assert not device.aside


@pytest.mark.slow
def test_what_is_under_way_ends_when_it_is_given_up(device):
    good = kernels.built(kernels.kernel())
    assert device.measure(good).ok
    running = device.begin(lambda: device.measure(kernels.built(kernels.SPIN)))
    waiting = device.begin(lambda: device.measure(good))
    while not running.running():
        time.sleep(0.01)
    time.sleep(0.3)
    clock = time.monotonic()
    device.give_up()
    assert time.monotonic() - clock < 5
    assert running.result().status == "refused"
    assert waiting.cancelled()
    assert device.begin(lambda: device.measure(good)).result().status == "ok"


@pytest.mark.slow
def test_builds_keep_off_while_anything_is_measured(device):
    cpus = usable_cpus()
    assert device.measure(device_build(device)).ok
    pid = device.builder.process.pid
    assert os.sched_getaffinity(pid) == {cpus[-1]}  # nothing is timed there now
    running = device.begin(lambda: device.measure(kernels.built(kernels.SPIN)))
    until = time.monotonic() + 20
    while os.sched_getaffinity(pid) != set(cpus[:-1]) and time.monotonic() < until:
        time.sleep(0.01)
    assert os.sched_getaffinity(pid) == set(cpus[:-1])
    assert running.running()
    device.give_up()
    running.result()
    assert os.sched_getaffinity(pid) == {cpus[-1]}


@pytest.mark.slow
def test_a_warm_device_holds_the_data_already(device):
    device.warm()
    good = kernels.built(kernels.kernel())
    assert device.begin(lambda: device.measure(good)).result().status == "ok"
    assert device.worker.starts == device.builder.process.starts == 1


def test_others_keep_off_while_anything_is_measured():
    cpus = usable_cpus()
    lane, seen, gate = MeasureThread(cpus[:1], cpus), [], threading.Event()
    waited = lane.begin(lambda: gate.wait(20))
    seen.append(usable_cpus())
    behind = lane.begin(lambda: None)
    gate.set()
    assert waited.result()
    behind.result()
    lane.settle()
    for _ in range(200):
        if usable_cpus() == cpus:
            break
        time.sleep(0.01)
    assert (seen, usable_cpus()) == ([cpus[:1]], cpus)
    lane.close()
