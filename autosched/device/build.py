"""A candidate as a `Job`: lowered, printed and compiled."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
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
    (built,) = build_all([(candidate, scalars, violations)], target, builder)
    return built


def build_all(
    wanted: Iterable[tuple[Candidate, dict[str, Any], tuple[str, ...]]], target: Target, builder: Builder
) -> Iterator[Build]:
    """`build` for each (candidate, scalars, violations) in order: one is printed while the one before it compiles in
    the builder's process."""
    compiler = target.compiler
    waiting: Callable[[], Build] | None = None
    try:
        for candidate, scalars, violations in wanted:
            clock = time.perf_counter()
            text = ""
            try:
                kernel = lower(candidate.plan, candidate.schedule)
                text = print_llvm(kernel)
            except MissingError:  # this machine's fault, not the candidate's
                raise
            except AutoschedError as error:
                failed = Build(candidate, error=error.message, seconds=time.perf_counter() - clock)
            lower_s = time.perf_counter() - clock
            if waiting is not None:
                yield waiting()
            if text:
                builder.begin(text, compiler.get("cpu"), compiler.get("features"))
                waiting = partial(_finished, builder, candidate, kernel, text, scalars, violations, lower_s)
            else:
                waiting = partial(replace, failed)
        if waiting is not None:
            yield waiting()
    finally:
        builder.give_up()


def _finished(
    builder: Builder,
    candidate: Candidate,
    kernel: Kernel,
    text: str,
    scalars: dict[str, Any],
    violations: tuple[str, ...],
    lower_s: float,
) -> Build:
    """The build whose text the builder compiles."""
    clock = time.perf_counter()
    try:
        code = builder.finish()
    except MissingError:
        raise
    except AutoschedError as error:
        return Build(candidate, error=error.message, seconds=lower_s + time.perf_counter() - clock)
    sha = hashlib.sha256(text.encode()).hexdigest()[:16]
    job = replace(job_of(kernel, code, scalars), violations=violations)
    return Build(candidate, job, None, lower_s + time.perf_counter() - clock, sha, {"lower_s": lower_s})


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
