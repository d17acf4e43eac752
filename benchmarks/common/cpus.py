"""The CPUs of a comparison, and how every side's threads come to lie there: one on each, the caller's on the first.

Threads that the system places now and then share a core for milliseconds while another is idle: on two CPUs a quarter
of the calls of a product of 1024x1024x1024 took twice as long.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from autosched.machine.detect import usable_cpus


def chosen(threads: int) -> tuple[int, ...]:
    """The last ones, since the first serve most interrupts."""
    return usable_cpus()[-threads:]


def hold(cpus: Sequence[int]) -> None:
    """Keep this thread, and those that it makes, to these CPUs."""
    os.sched_setaffinity(0, set(cpus))


def places(cpus: Sequence[int]) -> dict[str, str]:
    """What tells every OpenMP runtime to put thread i on CPU i; read when a process loads one."""
    return {"OMP_PLACES": ",".join(f"{{{c}}}" for c in cpus), "OMP_PROC_BIND": "true"}


def place(cpus: Sequence[int]) -> None:
    """Put our pool's workers, and the calling thread, on one CPU each."""
    from autosched.codegen.llvm.machine.runtime import pool

    pool().start(len(cpus), cpus)
    hold(cpus[:1])


@contextmanager
def everywhere(cpus: Sequence[int]) -> Iterator[None]:
    """The calling thread may use all of them inside: a measurement that starts threads of its own asks which."""
    hold(cpus)
    try:
        yield
    finally:
        hold(cpus[:1])
