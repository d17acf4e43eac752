"""The parent's side of a child process (timing worker, build process): start it, ask it, survive its death."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import IO, Any

from autosched.device.job import Outcome
from autosched.errors import MissingError
from autosched.scratch import scratch_errors

START_LIMIT_S = 60.0
AGAIN_S = 0.05
"""Seconds after which `close` again kills a process that another thread is starting."""
_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
"""Signals that no kernel raises by itself: another process ended the worker."""


class WorkerDiedError(Exception):
    """The worker ended while it served a request. `stage`: what it was doing; `outside`: whether another process killed
    it."""

    def __init__(self, code: int | None, stage: str, stderr: str) -> None:
        self.code, self.stage, self.stderr = code, stage, stderr
        self.outside = code is not None and -code in _OUTSIDE
        super().__init__(self.reason)

    @property
    def reason(self) -> str:
        if self.code is not None and self.code < 0:
            with contextlib.suppress(ValueError):
                return signal.Signals(-self.code).name
        return f"exit status {self.code}"


class WorkerTimeoutError(Exception):
    """The deadline passed; the worker was killed."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        super().__init__(stage)


class WorkerProcess:
    """A child that runs `module.main(connection, life, *arguments)`, started at the first request, and again after it
    ended. One thread at a time may ask it; any thread may end it."""

    def __init__(self, module: str = "autosched.device.cpu.worker", *arguments: object) -> None:
        self.module, self.arguments = module, arguments
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._life: int | None = None
        self._stderr: IO[bytes] | None = None
        self._changing = threading.RLock()  # held while the process is started and closed

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process else None

    def ensure(self) -> bool:
        """Start a worker unless one is alive; returns whether it is new (and so holds no data)."""
        with self._changing:
            if self._process is not None and self._process.poll() is None:
                return False
            self.close()
            self._start()
            return True

    def ask(self, *message: Any, deadline_s: float, a_stage: bool = False) -> Any:
        """Send a request and wait for its answer: `deadline_s` seconds, or so many for each stage that the worker
        reports (`a_stage`). WorkerDiedError, WorkerTimeoutError; RuntimeError where it failed."""
        self.send(*message)
        return self.answer(deadline_s, a_stage)

    def send(self, *message: Any) -> None:
        """Send a request; `answer` must follow before the next one. WorkerDiedError."""
        sent = False
        try:
            self._connected().send(message)
            sent = True
        except OSError:
            raise self._death("start") from None
        finally:
            if not sent:
                self.close()

    def answer(self, deadline_s: float, a_stage: bool = False) -> Any:
        """The answer to what was sent, waited for as `ask` waits. Raises as `ask` does."""
        stage, clock = "start", time.monotonic()
        finished = False
        try:
            connection = self._connected()
            while True:
                left_s = deadline_s - (time.monotonic() - clock)
                if left_s <= 0 or not connection.poll(left_s):
                    raise WorkerTimeoutError(stage)
                what, answer = connection.recv()
                if what == "at":
                    stage = answer
                    clock = time.monotonic() if a_stage else clock
                    continue
                finished = True
                if what == "failed":
                    raise RuntimeError(answer)
                return answer
        except (EOFError, OSError):
            raise self._death(stage) from None
        finally:
            if not finished:  # deadline, Ctrl-C: whatever it is doing, it must not answer the next request
                self.close()

    def _connected(self) -> Connection[Any, Any]:
        """The connection. ConnectionError where another thread has closed it."""
        connection = self._connection
        if connection is None:
            raise ConnectionError
        return connection

    def _death(self, stage: str) -> WorkerDiedError:
        process = self._process
        code = process.wait() if process else -signal.SIGKILL  # None: another thread has closed it
        return WorkerDiedError(code, stage, self._stderr_tail())

    def kill(self) -> None:
        """End the worker from another thread than the one that asks it, which then gets a WorkerDiedError."""
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    def close(self) -> None:
        """Kill the worker. Each descriptor is closed once, by one thread: at a second attempt its number may be that of
        another file."""
        while not self._changing.acquire(timeout=AGAIN_S):
            self.kill()
        try:
            process, self._process = self._process, None
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                process.wait()
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
            life, self._life = self._life, None
            if life is not None:
                os.close(life)
            stderr, self._stderr = self._stderr, None
            if stderr is not None:
                stderr.close()
        finally:
            self._changing.release()

    def _start(self) -> None:
        if os.name != "posix":
            raise MissingError("the cpu device needs a POSIX system", hint="use -d simulator")
        ours, theirs = Pipe()
        life_read, life_write = os.pipe()
        arguments = (theirs.fileno(), life_read, *self.arguments)
        boot = f"from {self.module} import main; main{arguments}"
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        with scratch_errors():
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the worker
        self._process = subprocess.Popen(
            [sys.executable, "-c", boot],
            pass_fds=(theirs.fileno(), life_read),
            stdin=subprocess.DEVNULL,
            stdout=self._stderr,
            stderr=self._stderr,
            env=os.environ | threads,
        )
        theirs.close()
        os.close(life_read)
        self._connection, self._life = ours, life_write
        self.starts += 1
        try:
            ready = ours.poll(START_LIMIT_S) and ours.recv()[0] == "done"
        except (EOFError, OSError):
            ready = False
        except BaseException:  # Ctrl-C, a deadline: the next answer would be that it has started
            self.close()
            raise
        if not ready:
            with contextlib.suppress(subprocess.TimeoutExpired):  # its connection ends a little before it does
                self._process.wait(AGAIN_S)
            code, said = self._process.poll(), self._stderr_tail()
            self.close()
            if code is not None and -code in _OUTSIDE:
                raise MissingError(f"{self.module} was ended by {signal.Signals(-code).name} while it started")
            raise MissingError(f"{self.module} did not start", hint=said or "run: autosched doctor")

    def _stderr_tail(self) -> str:
        with self._changing:
            if self._stderr is None:
                return ""
            self._stderr.seek(0)
            return self._stderr.read()[-2000:].decode(errors="replace").strip()


STAGES = {
    "start": "before it began",
    "load": "while it was loaded",
    "prepare": "while it packed its operands",
    "check": "while its results were checked",
    "copy": "while its data were copied",
    "time": "while it was timed",
}
"""What a worker does in the stages that it reports."""


def stage_said(stage: str) -> str:
    """When something happened, of a stage such as `check`, or of builds in turn `check 3`."""
    name, *number = stage.split()
    said = STAGES.get(name, f"in stage {name}")
    return f"{said}, in turn with others" if number else said


def ask_worker(
    worker: WorkerProcess,
    message: tuple[Any, ...],
    deadline_s: float,
    ready: Callable[[], bool],
    why: Callable[[WorkerDiedError], str],
) -> Any:
    """The worker's answer, or the outcome of its death, in which `why` says what it died of. Somebody else's signal is
    not a candidate's fault: the first time, it is asked again. `ready` sees to a live worker that holds the data, each
    time; where it says no, nothing is asked. `deadline_s` is for the whole answer, or for each stage of builds in turn
    (so many runs of slow ones may take long, and a run that hangs is seen all the same)."""
    in_turn = message[0] == "interleaved"
    for attempt in (1, 2):
        if not ready():
            break
        try:
            return worker.ask(*message, deadline_s=deadline_s, a_stage=in_turn)
        except WorkerTimeoutError as late:
            said = f"no end after {deadline_s:.3g} s {stage_said(late.stage)}"
            return Outcome("timeout", message=said, extra={"stage": late.stage})
        except WorkerDiedError as death:
            if death.outside and attempt == 1:
                continue
            said = f"{death.reason} {stage_said(death.stage)}: {why(death)}"
            return Outcome("crash", message=said, extra={"signal": death.reason, "stage": death.stage})
        except RuntimeError as error:
            return Outcome("refused", message=str(error))
    return Outcome("refused", message="given up")
