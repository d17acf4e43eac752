"""What only a clock can tell of this machine: its frequency, issue rates and bandwidths.

Peaks are the best of several short runs: a neighbour on the machine can only make a run slower. Instruction rates are
measured on x86-64; elsewhere they stay what the intrinsic's timing says.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.backends import BACKENDS
from autosched.machine import native
from autosched.machine.detect import usable_cpus
from autosched.machine.object_loader import Loaded
from autosched.machine.probes import (
    MOST_ACCUMULATORS,
    VECTOR_CHAINS,
    clock_loop,
    issue_loop,
    load_loop,
    register_pitch,
    vector_loop,
)
from autosched.machine.target import Memory, Target
from autosched.tensorize.intrinsic import Intrinsic

Compiler = Callable[[str], bytes]
MEASURED = "measured on this machine"


@dataclass(frozen=True, slots=True)
class PeakEffort:
    """Seconds of one run, and runs a figure."""

    run_s: float
    runs: int


CORES_A_CACHE = 8
"""Last-level caches come in pieces, each for some cores; 1/8 of four times a piece, by every core, leaves them all."""
_MOST_TIMES = 1 << 40
"""Repetitions of a loop in one run at most."""
FIRST_WORK = 1e5
"""Issues or bytes of the first, sizing run: some ten microseconds."""
MOST_BYTES = 2 << 30
EFFORTS = {"quick": PeakEffort(1e-3, 5), "full": PeakEffort(2e-3, 20)}
"""Many short runs, not few long ones: a neighbour on the core spoils a long run and misses some short ones."""


@dataclass(frozen=True)
class Peaks:
    """`rates`: issues a cycle and core, by intrinsic. `all_cores`: issues a second, all cores at once. Bandwidths in
    bytes a second by memory: of one core, and of all cores together. `skipped`: intrinsic to why it has no rate.
    `vectors`: operations of any kind on the widest vectors that a core begins in a cycle, 0 where that was not
    measured."""

    clock_hz: float
    rates: dict[str, float] = field(default_factory=dict)
    all_cores: dict[str, float] = field(default_factory=dict)
    bandwidth_one: dict[str, float] = field(default_factory=dict)
    bandwidth_all: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    vectors: float = 0.0

    def issues_per_s(self, name: str) -> float:
        """Of one core."""
        return self.rates[name] * self.clock_hz


def measure_peaks(
    target: Target,
    intrinsics: Iterable[Intrinsic] = (),
    *,
    effort: str = "quick",
    bandwidth: bool = True,
    compile_ir: Compiler = native.compile_ir,
) -> Peaks:
    """Measure this machine, which `target` describes. Quick: about 20 ms an intrinsic and 0.2 s for the rest.

    `compile_ir` turns IR text into object code and raises where it cannot; give one that compiles in another process
    where the intrinsics are a user's, since LLVM ends the process for some texts.
    """
    started = time.perf_counter()
    native.start()
    how = EFFORTS[effort]
    cpus = usable_cpus()
    clock_hz = _clock(how, cpus[-1:])
    rates: dict[str, float] = {}
    everywhere: dict[str, float] = {}
    skipped: dict[str, str] = {}
    for intrinsic in intrinsics:
        if why := _unmeasurable(intrinsic, target):
            skipped[intrinsic.name] = why
            continue
        try:
            text, issues = issue_loop(intrinsic, target.limits.get("vector_registers", 16), target.features)
            code = compile_ir(text)
        except Exception as error:  # whatever this compiler raises; one intrinsic is not worth the command
            skipped[intrinsic.name] = (str(error).splitlines() or ["does not compile"])[0]
            continue
        one, every = _issue_rates(intrinsic, code, issues, how, cpus, every=effort == "full")
        rates[intrinsic.name] = one / clock_hz
        if every:
            everywhere[intrinsic.name] = every
    alone, together = _bandwidths(target, how, cpus) if bandwidth else ({}, {})
    vectors = _vectors(target, how, cpus[-1:]) / clock_hz if bandwidth else 0.0
    return Peaks(clock_hz, rates, everywhere, alone, together, skipped, time.perf_counter() - started, vectors)


def with_peaks(target: Target, peaks: Peaks) -> Target:
    """The target with its measured figures; its version stays, because it is the same machine."""
    measured = peaks.rates | ({"vector": peaks.vectors} if peaks.vectors else {})
    sources = dict(target.sources) | {"clock": MEASURED} | {f"rates.{n}": MEASURED for n in measured}
    memories = []
    for level in target.memories:
        known = peaks.bandwidth_all if level.shared_by == "device" else peaks.bandwidth_one
        changes: dict[str, Any] = {}
        if level.latency_s is not None:  # assumed in cycles of the clock that was reported
            changes["latency_s"] = level.latency_s * target.clock_hz / peaks.clock_hz
        if level.name in known:
            changes["bandwidth_bytes_per_s"] = known[level.name]
            if level.shared_by == "device" and level.name in peaks.bandwidth_one:
                changes["core_bandwidth_bytes_per_s"] = min(peaks.bandwidth_one[level.name], known[level.name])
                sources[f"memories.{level.name}.core_bandwidth"] = MEASURED
            sources[f"memories.{level.name}.bandwidth"] = MEASURED
        memories.append(replace(level, **changes))
    rates = target.rates | measured
    return replace(target, clock_hz=peaks.clock_hz, rates=rates, memories=tuple(memories), sources=sources)


def _unmeasurable(intrinsic: Intrinsic, target: Target) -> str | None:
    if not target.backend.measured_rates:
        measured = " and ".join(isa for isa, backend in BACKENDS.items() if backend.measured_rates)
        return f"issue rates are measured on {measured} only, not on {target.isa}"
    own = intrinsic.portable or intrinsic.isa == target.isa
    if not own or intrinsic.kind != "compute" or intrinsic.scope != "thread":
        return f"not an instruction of a CPU thread ({intrinsic.isa}, {intrinsic.kind}, {intrinsic.scope})"
    if missing := sorted(intrinsic.requires - target.features):
        return f"this machine lacks {', '.join(missing)}"
    named = intrinsic.matrices is not None or all("llvm" in o.registers for o in intrinsic.operands.values())
    if "llvm" not in intrinsic.emit or not named:
        return "it has no llvm text"
    return None


def _function(code: bytes, *arguments: Any) -> tuple[Any, Loaded]:
    loaded = Loaded(code)
    return ctypes.CFUNCTYPE(None, *arguments)(loaded.address("probe")), loaded


def _took(call: Callable[[int], object], times: int) -> float:
    clock = time.perf_counter()
    call(times)
    return time.perf_counter() - clock


def _best(
    call: Callable[[int], object],
    work: float,
    how: PeakEffort,
    took: Callable[[Callable[[int], object], int], float] = _took,
) -> float:
    """Work a second: `call(n)` does `n` times `work`; the fastest of the runs. Runs are made longer until the fastest
    of them lasts: one that a neighbour held up says nothing about how long they should be."""
    times = max(1, int(FIRST_WORK / work))
    while True:
        took_s = min(took(call, times) for _ in range(how.runs))
        if took_s >= how.run_s / 2 or times >= _MOST_TIMES:
            return times * work / took_s
        times = min(_MOST_TIMES, times * max(2, min(64, int(how.run_s / max(took_s, 1e-9)))))


def _pinned(jobs: Sequence[tuple[int, Callable[[], float]]]) -> list[float]:
    """Run each job on its CPU, all at once, in threads of their own: the caller's affinity stays as it is."""
    results = [0.0] * len(jobs)
    failures: list[BaseException] = []
    gate = threading.Barrier(len(jobs))

    def body(index: int, cpu: int, job: Callable[[], float]) -> None:
        try:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, {cpu})  # of this thread
            gate.wait()
            results[index] = job()
        except BaseException as error:
            failures.append(error)
            gate.abort()

    threads = [threading.Thread(target=body, args=(i, cpu, job)) for i, (cpu, job) in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


def _clock(how: PeakEffort, cpus: Sequence[int]) -> float:
    text, operations = clock_loop()
    function, _keep = _function(native.compile_ir(text), ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    return _pinned([(cpus[0], lambda: _best(lambda n: function(1, 3, n), operations, how))])[0]


def _vectors(target: Target, how: PeakEffort, cpus: Sequence[int]) -> float:
    """Operations on the widest vectors a second of one core."""
    width = target.limits.get("vector_bytes", 16)
    text, operations = vector_loop(width)
    function, _keep = _function(native.compile_ir(text), ctypes.c_void_p, ctypes.c_int64)
    values = _lines((VECTOR_CHAINS + 1) * max(1, width // 64))
    return _pinned([(cpus[0], lambda: _best(lambda n: function(values.ctypes.data, n), operations, how))])[0]


def _issue_rates(
    intrinsic: Intrinsic, code: bytes, issues: int, how: PeakEffort, cpus: Sequence[int], every: bool
) -> tuple[float, float | None]:
    """Issues a second of one core, and of all together."""
    function, _keep = _function(code, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    rng = np.random.default_rng(0)
    pitch = register_pitch(intrinsic)

    def job() -> float:
        inputs = _lines(len(intrinsic.inputs) * pitch // 64)
        for i, operand in enumerate(intrinsic.inputs):
            # Near one: neither subnormal nor growing quickly.
            integer = operand.dtype.is_integer
            values = rng.integers(0, 100, operand.elements) if integer else rng.uniform(0.5, 1.0, operand.elements)
            raw = values.astype(operand.dtype.numpy).view(np.uint8)[:pitch]
            inputs[pitch * i : pitch * i + raw.size] = raw
        accumulators = _lines(MOST_ACCUMULATORS * pitch // 64)
        accumulators[:] = 0
        return _best(lambda n: function(inputs.ctypes.data, accumulators.ctypes.data, n), issues, how)

    one = _pinned([(cpus[-1], job)])[0]
    if not every:
        return one, None
    each = _pinned([(cpu, job) for cpu in cpus])
    return max(one, *each), sum(each)


def _bandwidths(target: Target, how: PeakEffort, cpus: Sequence[int]) -> tuple[dict[str, float], dict[str, float]]:
    """Load bandwidth by memory: of one core, and of all cores at once."""
    text, block = load_loop(target.limits.get("vector_bytes", 16))
    kinds = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    function, _keep = _function(native.compile_ir(text), *kinds)
    alone: dict[str, float] = {}
    together: dict[str, float] = {}
    levels = [m for m in target.memories if m.name != "registers"]
    sizes = {m.name: _walk(levels, i, len(cpus)) for i, m in enumerate(levels)}
    data = {cpu: _lines(-(-max(sizes.values(), default=0) // 64)) for cpu in cpus}

    def job(cpu: int, size: int) -> Callable[[], float]:
        view, out = data[cpu], _lines(16)
        blocks = size // block
        return lambda: _best(lambda n: function(view.ctypes.data, blocks, out.ctypes.data, n), blocks * block, how)

    def touch(cpu: int) -> Callable[[], float]:
        def fill() -> float:
            data[cpu][:] = 1  # untouched pages are all one page of zeros
            return 0.0

        return fill

    _pinned([(cpu, touch(cpu)) for cpu in cpus])
    for level in levels:
        size = sizes[level.name]
        if size < block:
            continue
        alone[level.name] = _pinned([(cpus[-1], job(cpus[-1], size))])[0]
        together[level.name] = alone[level.name]
        if len(cpus) > 1:
            together[level.name] = sum(_pinned([(cpu, job(cpu, size)) for cpu in cpus]))
    return alone, together


def _walk(levels: Sequence[Memory], i: int, cores: int) -> int:
    """Bytes that one core walks through so that its data comes from level `i`: half of it where that is enough to
    leave the level inside, all cores together where it is shared; several times the last cache for DRAM."""
    level, inner = levels[i], levels[i - 1] if i else None
    most = min(MOST_BYTES, levels[-1].bytes // 4) // cores
    if i == len(levels) - 1 and inner is not None:
        return min(max(4 * inner.bytes, 64 << 20) // min(cores, CORES_A_CACHE), most) // 4096 * 4096
    share = level.bytes // 2 // (cores if level.shared_by == "device" else 1)
    floor = 2 * inner.bytes if inner is not None else 0
    return min(max(share, floor), level.bytes, most) // 4096 * 4096


def _lines(count: int) -> npt.NDArray[np.uint8]:
    """Memory of `count` cache lines, aligned to one."""
    raw = np.empty(64 * count + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + 64 * count]
