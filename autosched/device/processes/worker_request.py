"""A question to a worker that may die of it, and what its death means. Needs no program and no compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autosched.device.job import Outcome
from autosched.device.processes.process import WorkerDiedError, WorkerProcess, WorkerTimeoutError


def ask_worker(
    worker: WorkerProcess,
    message: tuple[Any, ...],
    deadline_s: float,
    ready: Callable[[], bool],
    why: Callable[[WorkerDiedError], str],
) -> Any:
    """The worker's answer, or the outcome of its death, in which `why` says what it died of. Somebody else's signal is
    not a candidate's fault: the first time, it is asked again. `ready` sees to a live worker that holds the data, each
    time; where it says no, nothing is asked."""
    for attempt in (1, 2):
        if not ready():
            break
        try:
            return worker.ask(*message, deadline_s=deadline_s)
        except WorkerTimeoutError as late:
            said = f"no end after {deadline_s:g} s (stage {late.stage})"
            return Outcome("timeout", message=said, extra={"stage": late.stage})
        except WorkerDiedError as death:
            if death.outside and attempt == 1:
                continue
            said = f"{death.reason} in stage {death.stage}: {why(death)}"
            return Outcome("crash", message=said, extra={"signal": death.reason, "stage": death.stage})
        except RuntimeError as error:
            return Outcome("refused", message=str(error))
    return Outcome("refused", message="given up")
