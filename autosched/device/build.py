"""A candidate as a `Job`: lowered, printed and compiled."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from typing import Any

import numpy as np

from autosched.codegen.kernel import Function, Kernel
from autosched.codegen.llvm.module import print_llvm, scalar_type
from autosched.codegen.lower import lower
from autosched.device.builder import Builder
from autosched.device.job import Entry, Job, Scratch
from autosched.device.protocol import Build
from autosched.errors import AutoschedError, MissingError
from autosched.machine.target import Target
from autosched.tiling.schedule import Candidate


def build(
    candidate: Candidate,
    target: Target,
    builder: Builder,
    scalars: dict[str, Any],
    violations: tuple[str, ...] = (),
) -> Build:
    """Lower and compile for `target`. A candidate that cannot be built is a Build with an error. `violations`: see
    `Job`."""
    clock = time.perf_counter()
    costs: dict[str, float] = {}
    try:
        kernel = lower(candidate.plan, candidate.schedule)
        text = print_llvm(kernel)
        costs["lower_s"] = time.perf_counter() - clock
        code = builder.compile(text, target.compiler.get("cpu"), target.compiler.get("features"))
    except MissingError:  # this machine's fault, not the candidate's
        raise
    except AutoschedError as error:
        return Build(candidate, error=error.message, seconds=time.perf_counter() - clock)
    sha = hashlib.sha256(text.encode()).hexdigest()[:16]
    job = replace(job_of(kernel, code, scalars), violations=violations)
    return Build(candidate, job, None, time.perf_counter() - clock, sha, costs)


def compiled(candidate: Candidate, target: Target, builder: Builder) -> tuple[Kernel, bytes]:
    """The candidate's kernel and its object code; AutoschedError where it cannot be built."""
    kernel = lower(candidate.plan, candidate.schedule)
    compiler = target.compiler
    return kernel, builder.compile(print_llvm(kernel), compiler.get("cpu"), compiler.get("features"))


def job_of(kernel: Kernel, code: bytes, scalars: dict[str, Any]) -> Job:
    """What the worker needs of a kernel, with the values of the program's run-time scalars."""
    passed = []
    for scalar in kernel.program.scalars.values():
        value = np.asarray(scalars[scalar.name]).astype(scalar.dtype.numpy)
        passed.append((scalar_type(scalar.dtype), value.tobytes()))
    own = {
        b.name: Scratch(b.elements * b.dtype.bytes, b.scope == "packed")
        for b in kernel.buffers.values()
        if b.scope in ("packed", "workspace") and b.name in _used(kernel)
    }
    prepare = tuple(Entry(f.name, f.buffers) for f in kernel.prepare)
    return Job(code, Entry(kernel.main.name, kernel.main.buffers, tuple(passed)), prepare, own, kernel.threads)


def _used(kernel: Kernel) -> set[str]:
    functions: tuple[Function, ...] = (*kernel.prepare, kernel.main)
    return {name for f in functions for name in f.buffers}
