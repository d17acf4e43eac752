"""Rows of a simulator shared among processes: each lays out the space for itself and answers for every so-manieth."""

from __future__ import annotations

import multiprocessing
import queue
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np

from autosched.errors import NoScheduleError
from autosched.search.evaluate.row_answer import RowAnswer, answers
from autosched.search.request import TuneRequest
from autosched.search.space.rows import Rows
from autosched.search.tuning.tune import prepare

WAIT_S = 1.0
"""Seconds between two looks at whether a process has died."""


def shared(request: TuneRequest, rows: Rows, jobs: int) -> Iterator[tuple[int, RowAnswer]]:
    """The answer for each row, with its place, as they come. An error in one process ends all."""
    context = multiprocessing.get_context("spawn")
    told: Any = context.Queue()
    jobs = min(jobs, len(rows))
    parts = [np.arange(first, len(rows), jobs) for first in range(jobs)]
    made = [context.Process(target=_answer, args=(request, rows.take(p), p, told), daemon=True) for p in parts]
    for process in made:
        process.start()
    try:
        left = len(rows)
        while left:
            try:
                found = told.get(timeout=WAIT_S)
            except queue.Empty:
                if any(process.exitcode for process in made):
                    said = "a process that recorded rows has died"
                    raise NoScheduleError(said, hint="record with fewer --jobs") from None
                continue
            if isinstance(found, BaseException):
                raise found
            left -= 1
            yield found
    finally:
        for process in made:
            process.terminate()
            process.join()


def _answer(request: TuneRequest, rows: Rows, places: Any, told: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked ends this one
    try:
        tuning = prepare(request)
        try:
            for place, answer in answers(tuning.study.space, tuning.device, rows):
                told.put((int(places[place]), answer))
        finally:
            tuning.device.close()
    except Exception as error:
        told.put(error)
