"""Work in a daemon thread: in order, told of mistakes, dropped where it does not end."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import CancelledError

import pytest

from autosched.device.processes.async_measure import MeasureThread
from autosched.device.processes.daemon_thread import DaemonThread, settled

ENDLESS = """
import threading
from autosched.device.processes.daemon_thread import DaemonThread
begun = threading.Event()
def work():
    begun.set()
    while True:
        sum(range(100))
DaemonThread("endless").submit(work)
begun.wait()
print("the end")
"""


def test_work_is_done_in_order_and_raises_where_it_is_asked_for() -> None:
    thread, done = DaemonThread("work"), list[int]()
    futures = [thread.submit(lambda n=n: done.append(n)) for n in range(20)]
    broken, behind = thread.submit(lambda: 1 // 0), thread.submit(threading.get_ident)
    assert behind.result() != threading.get_ident()
    thread.close()
    assert done == list(range(20))
    assert all(f.done() for f in futures)
    with pytest.raises(ZeroDivisionError):
        broken.result()


def test_what_has_not_begun_can_be_cancelled() -> None:
    thread, gate = DaemonThread("work"), threading.Event()
    running, waiting = thread.submit(lambda: gate.wait(20)), thread.submit(lambda: 3)
    assert waiting.cancel()
    gate.set()
    assert running.result()
    with pytest.raises(CancelledError):
        waiting.result()
    thread.close()


def test_what_the_work_waits_for_is_ended_again_and_again() -> None:
    """A worker that was killed may be started anew before the work looks whether it should go on."""
    thread, stops, waited = DaemonThread("work"), threading.Semaphore(0), list[bool]()
    future = thread.submit(lambda: waited.extend(stops.acquire(timeout=20) for _ in range(3)))
    assert settled([future], stops.release, 0.0, 20.0)
    assert waited == [True] * 3
    thread.close()


def test_a_thread_that_does_not_end_is_dropped_and_another_goes_on() -> None:
    lane, gate = MeasureThread((), ()), threading.Event()
    stuck, behind = lane.begin(lambda: gate.wait(20), apart=False), lane.begin(lambda: 1, apart=False)
    while not stuck.running():
        pass
    lane.cancel()
    lane.settle(limit_s=0.1)
    assert lane.dropped
    assert behind.cancelled()
    assert lane.begin(lambda: 2, apart=False).result() == 2
    gate.set()
    assert stuck.result()
    assert not lane.dropped
    lane.close()


def test_the_process_ends_while_a_thread_computes() -> None:
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "the end", "")
