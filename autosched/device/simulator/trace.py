"""A trace of one kernel for Perfetto (ui.perfetto.dev) or chrome://tracing: what each unit did, and when.

The Chrome trace format's complete events (`ph: X`, microseconds): a lane for the kernel's statements and one for each
server of the model. On a GPU it is the core with the most blocks. Its end is the trial's time, but for noise and the
time that cold data take; `otherData.seconds` says it.
"""

from __future__ import annotations

from typing import Any

from autosched.codegen.tree.kernel import For, Kernel
from autosched.device.simulator.cpu import cpu_model
from autosched.device.simulator.engine import TICKS, ServiceSpan, Simulated
from autosched.device.simulator.gpu import block_code, gpu_model
from autosched.device.simulator.spatial import spatial_model
from autosched.device.simulator.spatial.requests import SERVERS
from autosched.device.simulator.spatial.spatial_model import StatementRun
from autosched.device.simulator.walk.facts import Facts
from autosched.device.simulator.walk.walk import facts
from autosched.machine.target import Target
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.units import NO_UNITS, AcceleratorUnits

MOST_SPANS = 20_000
"""Spans that are kept of one statement; what comes later is not drawn."""


def trace(kernel: Kernel, target: Target, units: AcceleratorUnits = NO_UNITS) -> dict[str, Any]:
    """The trace as a JSON object. Raises what the models raise for kernels that the target cannot run."""
    events: list[dict[str, Any]] = [_named("process_name", 0, f"{kernel.name} on {target.name}, simulated")]
    lanes = {"statements": 0}
    events.append(_named("thread_name", 0, "statements"))
    scale = 1e6 / TICKS / target.clock_hz
    start, cut = 0.0, False
    left: frozenset[str] = frozenset()
    parts = [facts(kernel, stmt) for stmt in kernel.main.body]
    number = 0
    for what, run in _runs(kernel, parts, target, units):
        if run.start:
            events.append(_event(what, 0, start, run.start * 1e6, {}))
            start += run.start * 1e6
        spans: list[ServiceSpan] = []

        def record(span: ServiceSpan, kept: list[ServiceSpan] = spans) -> bool:
            kept.append(span)
            return len(kept) < MOST_SPANS

        servers, outcome, ends, left = _played(kernel, run, target, units, record, left)
        past = 0
        for done in ends:
            stmt = kernel.main.body[number]
            note = stmt.note if isinstance(stmt, For) and stmt.note else type(stmt).__name__
            said = {"events": outcome.events}
            events.append(_event(f"{number}: {note}", 0, start + past * scale, (done - past) * scale, said))
            number, past = number + 1, done
        for span in spans:
            name = servers[span.server]
            if name not in lanes:
                lanes[name] = len(lanes)
                events.append(_named("thread_name", lanes[name], name))
            if span.end > span.start:
                args = {"actor": span.actor, "amount": span.amount}
                end = (span.end - span.start) * scale
                events.append(_event(span.name, lanes[name], start + span.start * scale, end, args))
        start, cut = start + outcome.end * scale, cut or len(spans) >= MOST_SPANS or outcome.skipped > 0
    about = {"kernel": kernel.name, "target": target.name, "complete": not cut, "schedule": str(kernel.schedule)}
    about["seconds"] = start * 1e-6
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}


def _played(
    kernel: Kernel, run: StatementRun, target: Target, units: AcceleratorUnits, record: Any, kept: frozenset[str]
) -> tuple[tuple[str, ...], Simulated, tuple[int, ...], frozenset[str]]:
    """The servers, what they did, the end of each statement, and the buffers that a GPU's next grid finds in L2 as
    this one finds `kept`."""
    found = run.parts[0]
    match scheme_of(target):
        case "gpu":
            grid = gpu_model.play(kernel, found, target, record, kept)
            return block_code.SERVERS, grid.outcome, (grid.outcome.end,), grid.left
        case "spatial":
            played = spatial_model.play_run(kernel, run, target, units, record)
            return SERVERS, played.outcome, played.ends, kept
        case _:
            cpu = cpu_model.play_cpu(kernel, found, target, cpu_model.threads_of(found), record)
            return cpu.servers, cpu.outcome, (cpu.outcome.end,), kept


def _runs(
    kernel: Kernel, parts: list[Facts], target: Target, units: AcceleratorUnits
) -> list[tuple[str, StatementRun]]:
    """Statements that run beside each other, an accelerator's only; what passes before them is on a trial's account,
    and on no unit's."""
    match scheme_of(target):
        case "gpu":
            return [("launch", StatementRun((found,), gpu_model.LAUNCH_SECONDS)) for found in parts]
        case "spatial":
            return [("start", run) for run in spatial_model.runs(kernel, parts, target, units)]
        case _:
            wakes = [cpu_model.WAKE_SECONDS if cpu_model.is_parallel(stmt) else 0.0 for stmt in kernel.main.body]
            before = [("call", cpu_model.CALL_SECONDS + wakes[0]), *(("wake", s) for s in wakes[1:])]
            return [(what, StatementRun((found,), s)) for (what, s), found in zip(before, parts, strict=True)]


def _event(name: str, lane: int, start: float, duration: float, args: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "ph": "X", "pid": 0, "tid": lane, "ts": start, "dur": duration, "args": args}


def _named(what: str, lane: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 0, "tid": lane, "args": {"name": name}}
