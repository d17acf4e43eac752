"""A child's descriptors are closed once, whichever threads let go of it, and a child that is being started ends too."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from autosched.device.processes.process import WorkerDiedError, WorkerProcess
from autosched.errors import MissingError


class Closing:
    """A connection that takes its time to close."""

    times = 0

    def close(self) -> None:
        self.times += 1
        time.sleep(0.05)

    def send(self, message: object) -> None:
        raise OSError("handle is closed")


def test_two_threads_close_once():
    worker, connection = WorkerProcess(), Closing()
    worker._connection = connection
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(worker.close) for _ in range(2)]:
            done.result()
    assert connection.times == 1


def test_what_another_thread_has_closed_is_dead():
    worker = WorkerProcess()
    with pytest.raises(WorkerDiedError):
        worker.answer(1.0)
    worker._connection = Closing()
    with pytest.raises(WorkerDiedError) as died:
        worker.send("time")
    assert died.value.outside


def test_a_child_that_is_starting_is_ended():
    worker, begun = WorkerProcess(), time.monotonic()
    with ThreadPoolExecutor(1) as threads:
        starting = threads.submit(worker.ensure)
        while worker.pid is None and not starting.done():
            time.sleep(0.001)
        process = worker._process
        worker.close()
        assert isinstance(starting.exception(), MissingError | None)
    assert process is not None
    assert process.poll() is not None
    assert worker.pid is None
    assert time.monotonic() - begun < 30
