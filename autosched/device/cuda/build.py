"""A candidate as a `CudaJob`: lowered, printed, compiled to a cubin."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from autosched.codegen.cuda import CudaSource, print_cuda
from autosched.codegen.cuda.launch import (
    Argument,
    BufferArgument,
    Launch,
    LaunchPlan,
    MapArgument,
    ScalarArgument,
    TensorMapEncoding,
    check_launch,
)
from autosched.codegen.cuda.types import map_type
from autosched.codegen.lower import lower
from autosched.device.correctness.oracle import slack
from autosched.device.cuda.compile.builder import CudaBuilder, TranslationUnit
from autosched.device.cuda.compile.nvrtc import Cubin, CudaCompileError
from autosched.device.cuda.launch_job import CudaJob, Encoding, KernelMemory, LaunchCall, Mapped, Pointer, Value
from autosched.device.protocol import Build
from autosched.errors import AutoschedError, InternalError, MissingError
from autosched.ir.dtypes import DType
from autosched.machine.target import Target
from autosched.tiling.candidate import Candidate


@dataclass(frozen=True)
class Printed:
    """A candidate's text, or why it has none; `seconds` is what lowering and printing took."""

    candidate: Candidate
    source: CudaSource | None
    error: str
    seconds: float


def printed(candidate: Candidate, target: Target) -> Printed:
    """Lower and print. A candidate that cannot be printed says why; MissingError passes;
    InternalError where the mistake is ours."""
    clock = time.perf_counter()
    source, error = None, ""
    try:
        source = print_cuda(lower(candidate.plan, candidate.schedule), target)
        for launch in (*source.plan.prepare, *source.plan.launches):
            check_launch(launch, dict(target.limits))
    except MissingError:
        raise
    except AutoschedError as failure:
        error = failure.message
    except Exception as failure:
        raise InternalError.of(f"lowering of {candidate.key}", failure) from failure
    return Printed(candidate, source, error, time.perf_counter() - clock)


def builds(
    wanted: Sequence[tuple[Candidate, Mapping[str, Any]]], target: Target, builder: CudaBuilder
) -> Iterator[Build]:
    """A build for each (candidate, values of run-time scalars), in order. All are printed before the first is answered;
    texts are compiled side by side, while others are printed and while the caller uses what is built. Closing it ends
    the compilers whose results the caller has not taken."""
    texts: list[Printed] = []
    begun: list[Future[Cubin | CudaCompileError] | None] = []
    try:
        for candidate, _ in wanted:
            texts.append(text := printed(candidate, target))
            s = text.source
            begun.append(None if s is None else builder.begin(TranslationUnit(s.text, s.plan.arch, s.headers)))
        for text, waiting, (_, scalars) in zip(texts, begun, wanted, strict=True):
            clock = time.perf_counter()
            cubin = None if waiting is None else waiting.result()
            yield _built(text, cubin, scalars, time.perf_counter() - clock)
    finally:
        if left := [b for b in begun if b is not None and not b.done()]:
            builder.give_up(left)


def _built(
    text: Printed, cubin: Cubin | CudaCompileError | None, scalars: Mapping[str, Any], compile_s: float
) -> Build:
    seconds = text.seconds + (compile_s if text.source else 0.0)
    if text.source is None or cubin is None or isinstance(cubin, CudaCompileError):
        message = cubin.message if isinstance(cubin, CudaCompileError) else text.error
        return Build(text.candidate, error=message, seconds=seconds)
    sha = hashlib.sha256(text.source.text.encode()).hexdigest()[:16]
    return Build(
        text.candidate,
        replace(job_of(text.source.plan, cubin.code, scalars), slack=slack(text.candidate.plan)),
        None,
        seconds,
        sha,
        {"lower_s": text.seconds, **taken(text.source.plan, cubin)},
    )


def taken(plan: LaunchPlan, cubin: Cubin) -> dict[str, Any]:
    """What the main kernel takes, for a trial's record: the one with the most registers."""
    kernels = {launch.kernel: launch for launch in plan.launches}
    name = max(kernels, key=lambda k: cubin.kernels[k].registers)
    own = {k: v for k, v in asdict(cubin.kernels[name]).items() if k != "barriers"}
    own["shared_bytes"] += kernels[name].shared_bytes
    said = {"warnings": list(cubin.warnings)} if cubin.warnings else {}
    return own | {"toolkit": cubin.toolkit} | said


def job_of(plan: LaunchPlan, code: bytes, scalars: Mapping[str, Any]) -> CudaJob:
    """What the worker needs of a plan, with the values of the program's run-time scalars."""
    values = {n: scalar_bytes(scalars[n], d) for n, d in _scalars(plan).items()}
    return replace(memory_of(plan, code), calls=calls_of(plan.launches, values), prepare=calls_of(plan.prepare, values))


def memory_of(plan: LaunchPlan, code: bytes) -> CudaJob:
    """The code, memory and tensor maps of a plan, without its launches."""
    held = {w.name: KernelMemory(w.bytes) for w in plan.workspaces} | {
        w.name: KernelMemory(w.bytes, True) for w in plan.packed
    }
    return CudaJob(code, (), held=held, maps={m.name: encoding_of(m) for m in plan.maps})


def calls_of(launches: Sequence[Launch], scalars: Mapping[str, bytes]) -> tuple[LaunchCall, ...]:
    """Launches as the device takes them; scalars by name, as `scalar_bytes` has them."""
    return tuple(_call(launch, scalars) for launch in launches)


def _scalars(plan: LaunchPlan) -> dict[str, DType]:
    """Types of the run-time scalars that launches take."""
    arguments = (a for launch in (*plan.prepare, *plan.launches) for a in launch.arguments)
    return {a.name: a.dtype for a in arguments if isinstance(a, ScalarArgument)}


def encoding_of(tensor_map: TensorMapEncoding) -> Encoding:
    m = tensor_map
    walk = (m.walk.lower, m.walk.upper, m.walk.steps) if m.walk else None
    return Encoding(m.buffer, map_type(m.dtype), m.extents, m.strides, m.box, m.swizzle, walk)


def scalar_bytes(value: Any, dtype: DType) -> bytes:
    """A run-time scalar as the kernel takes it."""
    return np.asarray(value).astype(dtype.numpy).tobytes()


def _call(launch: Launch, scalars: Mapping[str, bytes]) -> LaunchCall:
    def argument(one: Argument) -> Pointer | Value | Mapped:
        match one:
            case BufferArgument(name):
                return Pointer(name)
            case ScalarArgument(name):
                return Value(scalars[name], name)
            case MapArgument(name):
                return Mapped(name)

    arguments = tuple(argument(a) for a in launch.arguments)
    return LaunchCall(launch.kernel, launch.grid, launch.block, launch.shared_bytes, arguments, launch.cluster)
