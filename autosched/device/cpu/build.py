"""A candidate as a `Job`: lowered, printed and compiled."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from autosched.codegen.llvm.module import print_llvm, print_parts, scalar_type
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Function, Kernel
from autosched.device.correctness.oracle import scalars_as_bytes
from autosched.device.cpu.builder import Builder
from autosched.device.job import EntryPoint, Job, ScratchBuffer
from autosched.device.protocol import Build
from autosched.errors import AutoschedError, InternalError, MissingError
from autosched.machine.target import Target
from autosched.tiling.candidate import Candidate


@dataclass(frozen=True)
class LoweredCandidate:
    """A candidate as the texts of LLVM modules, which are still to be compiled; `failed` where it cannot be lowered.
    `lower_s` is what lowering and printing took; `scalars` are the values of the program's, `violations` as in
    `Job`."""

    candidate: Candidate
    kernel: Kernel | None
    texts: tuple[str, ...]
    lower_s: float
    scalars: dict[str, Any]
    violations: tuple[str, ...] = ()
    failed: Build | None = None


def draft(candidate: Candidate, scalars: dict[str, Any], violations: tuple[str, ...] = ()) -> LoweredCandidate:
    """Lower and print. Raises MissingError for what this machine lacks, InternalError for a mistake of ours."""
    clock = time.perf_counter()
    try:
        kernel = lower(candidate.plan, candidate.schedule)
        texts = print_parts(kernel)
    except MissingError:  # this machine's fault, not the candidate's
        raise
    except AutoschedError as error:
        took_s = time.perf_counter() - clock
        failed = Build(candidate, error=error.message, seconds=took_s)
        return LoweredCandidate(candidate, None, (), took_s, scalars, violations, failed)
    except Exception as error:
        raise InternalError.of(f"lowering of {candidate.key}", error) from error
    return LoweredCandidate(candidate, kernel, texts, time.perf_counter() - clock, scalars, violations)


def build_all(
    wanted: Iterable[tuple[Candidate, dict[str, Any], tuple[str, ...]]], target: Target, builder: Builder
) -> Iterator[Build]:
    """Lower and compile each (candidate, scalars, violations) for `target`, in order: one is printed while the one
    before it compiles in the builder's process. A candidate that cannot be built is a Build with an error."""
    compiler = target.compiler
    waiting: LoweredCandidate | None = None
    try:
        for one in wanted:
            made = draft(*one)
            if waiting is not None:
                yield finished(waiting, builder.finish)
            if made.failed is None:
                builder.begin(made.texts, compiler.get("cpu"), compiler.get("features"))
            waiting = made
        if waiting is not None:
            yield finished(waiting, builder.finish)
    finally:
        builder.give_up()


def compile_draft(made: LoweredCandidate, target: Target, builder: Builder) -> Build:
    """The build of a draft."""
    compiler = target.compiler
    return finished(made, lambda: builder.compile_all(made.texts, compiler.get("cpu"), compiler.get("features")))


def finished(made: LoweredCandidate, code_of: Callable[[], tuple[bytes, ...]]) -> Build:
    """The build of a draft whose object files `code_of` answers."""
    if made.failed is not None or made.kernel is None:
        return made.failed or Build(made.candidate, error="it was not lowered")
    clock = time.perf_counter()
    try:
        code = code_of()
    except MissingError:
        raise
    except AutoschedError as error:
        return Build(made.candidate, error=error.message, seconds=made.lower_s + time.perf_counter() - clock)
    sha = hashlib.sha256("\n".join(made.texts).encode()).hexdigest()[:16]
    job = replace(job_of(made.kernel, code, made.scalars), violations=made.violations)
    seconds = made.lower_s + time.perf_counter() - clock
    extra: dict[str, Any] = {"lower_s": made.lower_s}
    if made.violations:
        extra["violations"] = list(made.violations)
    return Build(made.candidate, job, None, seconds, sha, extra)


def compiled(candidate: Candidate, target: Target, builder: Builder) -> tuple[Kernel, bytes]:
    """The candidate's kernel and its object code; AutoschedError where it cannot be built."""
    kernel = lower(candidate.plan, candidate.schedule)
    compiler = target.compiler
    return kernel, builder.compile(print_llvm(kernel), compiler.get("cpu"), compiler.get("features"))


def job_of(kernel: Kernel, code: tuple[bytes, ...], scalars: dict[str, Any]) -> Job:
    """What the worker needs of a kernel, with the values of the program's run-time scalars."""
    given = scalars_as_bytes(kernel.program, scalars)
    passed = [(scalar_type(s.dtype), given[s.name]) for s in kernel.program.scalars.values()]
    own = {
        b.name: ScratchBuffer(b.elements * b.dtype.bytes, b.scope == "packed")
        for b in kernel.buffers.values()
        if b.scope in ("packed", "workspace") and b.name in _used(kernel)
    }
    prepare = tuple(EntryPoint(f.name, f.buffers) for f in kernel.prepare)
    main = EntryPoint(kernel.main.name, kernel.main.buffers, tuple(passed))
    return Job(code, main, prepare, own, kernel.threads, scalars=tuple(kernel.program.scalars))


def _used(kernel: Kernel) -> set[str]:
    functions: tuple[Function, ...] = (*kernel.prepare, kernel.main)
    return {name for f in functions for name in f.buffers}
