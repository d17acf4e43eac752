"""A GPU as a target: what its driver says, and what only running something tells: bandwidths and issue rates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from autosched.device.cuda.client import Client
from autosched.device.cuda.compile.builder import CudaBuilder, TranslationUnit
from autosched.device.cuda.compile.nvrtc import Cubin, CudaCompileError
from autosched.device.cuda.compile.toolkit import arch_number
from autosched.device.cuda.driver import CardFacts
from autosched.device.cuda.launch_job import CudaJob, KernelMemory, LaunchCall, Pointer, Value
from autosched.device.cuda.probes import STREAM, issue_probe
from autosched.device.job import Outcome
from autosched.machine.peaks import MEASURED
from autosched.machine.spec import version_of
from autosched.machine.target import Memory, Target
from autosched.tensorize.intrinsic import Intrinsic

FEATURES = (61, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 120)
RUNS, DEADLINE_S = 7, 30.0
DRAM_BYTES, L2_SHARE = 1 << 30, 3
"""Streams from DRAM, and the part of the last cache (one in so many) that streams from it walk through."""
SAID = "reported by the driver"


@dataclass(frozen=True)
class MeasuredRates:
    """Issues a cycle and core by intrinsic, bandwidths in bytes a second by memory (`copy`: read and written), and why
    an intrinsic has no rate."""

    rates: dict[str, float] = field(default_factory=dict)
    bandwidths: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def detect_card(intrinsics: Iterable[Intrinsic] = (), ordinal: int = 0) -> tuple[Target, MeasuredRates]:
    """The device number `ordinal`, with the rates of `intrinsics` that it has. MissingError where there is no GPU."""
    client = Client(ordinal)
    try:
        facts = client.facts()
        builder = CudaBuilder(newest=facts.driver)
        try:
            target = described(facts)
            measured = _measure(client, builder, target, facts, [i for i in intrinsics if target.has(i.requires)])
        finally:
            builder.close()
    finally:
        client.close()
    return with_measured(target, measured), measured


def described(facts: CardFacts) -> Target:
    """The target as far as the driver tells; bandwidths are not known yet."""
    limits, number = facts.limits, arch_number(facts.arch)
    arch = f"{facts.arch}a" if number >= 90 else facts.arch
    features = {f"sm_{n}" for n in FEATURES if n <= number} | {arch}
    clock_hz = limits["clock_khz"] * 1e3
    per_core = limits["threads_per_core"] // limits["warp_threads"]
    memories = (
        Memory("registers", 4 * limits["registers_per_core"], None, None, "core"),
        Memory("shared", limits["shared_bytes_per_core"], 128 * clock_hz, 30 / clock_hz, "core", 128, 32),
        Memory("L2", limits["l2_bytes"], None, 250 / clock_hz, "device", 128),
        Memory("DRAM", facts.memory_bytes, None, 600 / clock_hz, "device", 128),
    )
    kept = {
        "warp_threads": limits["warp_threads"],
        "threads_per_block": limits["threads_per_block"],
        "warps_per_core": per_core,
        "blocks_per_core": limits["blocks_per_core"],
        "registers_per_core": limits["registers_per_core"],
        "registers_per_thread": 255,
        "shared_bytes": limits["shared_bytes"],
        "static_shared_bytes": 49152,
        "shared_bytes_reserved_per_block": limits["shared_bytes_reserved_per_block"],
        "vector_bytes": 16,
    } | ({"cluster_blocks": 8} if number >= 90 else {})
    assumed = "assumed: 128 bytes a cycle and core; latencies of 30, 250 and 600 cycles"
    sources = {f"limits.{n}": SAID for n in kept} | {"clock": SAID, "cores": SAID, "memories.shared.bandwidth": assumed}
    name = re.sub(r"[^a-z0-9]+", "-", facts.name.lower()).strip("-")
    sizes = {m.name: m.bytes for m in memories if m.name != "DRAM"}
    return Target(
        name,
        "cuda",
        frozenset(features),
        limits["cores"],
        clock_hz,
        memories,
        limits=kept,
        compiler={"kind": "nvrtc", "arch": arch},
        summary=f"{facts.name}, as its driver describes it and as measured here",
        source="the driver, and measured",
        sources=sources,
        version=version_of([name, sorted(features), limits["cores"], sizes]),
    )


def with_measured(target: Target, measured: MeasuredRates) -> Target:
    """The target with its measured figures; its version stays, because it is the same GPU."""
    found = measured.bandwidths
    memories = tuple(
        replace(m, bandwidth_bytes_per_s=found[m.name]) if m.name in found else m for m in target.memories
    )
    sources = dict(target.sources) | {f"rates.{n}": MEASURED for n in measured.rates}
    sources |= {f"memories.{m.name}.bandwidth": MEASURED for m in memories if m.name in found}
    return replace(target, memories=memories, rates=target.rates | measured.rates, sources=sources)


def _measure(
    client: Client, builder: CudaBuilder, target: Target, facts: CardFacts, intrinsics: list[Intrinsic]
) -> MeasuredRates:
    arch, cores = target.compiler["arch"], target.cores
    bandwidths = _bandwidths(client, builder.build(TranslationUnit(STREAM, arch)), cores, facts)
    probes = {i.name: issue_probe(i) for i in intrinsics}
    skipped = {n: p for n, p in probes.items() if isinstance(p, str)}
    made = {n: p for n, p in probes.items() if not isinstance(p, str)}
    cubins = builder.build_all([TranslationUnit(p.text, arch, p.headers) for p in made.values()])
    rates = {}
    for (name, probe), cubin in zip(made.items(), cubins, strict=True):
        if isinstance(cubin, CudaCompileError):
            skipped[name] = cubin.message[:200]
            continue
        per_core = max(1, target.limits["warps_per_core"] * 32 // probe.threads // 2)
        call = LaunchCall("probe", (cores * per_core, 1, 1), (probe.threads, 1, 1), 0, (Pointer("to"),))
        took = _probe(client, CudaJob(cubin.code, (call,), held={"to": KernelMemory(256)}))
        if isinstance(took, str):
            skipped[name] = took
        else:
            rates[name] = probe.issues * probe.workers * per_core / (took * target.clock_hz)
    return MeasuredRates(rates, bandwidths, skipped)


def _bandwidths(client: Client, cubin: Cubin, cores: int, facts: CardFacts) -> dict[str, float]:
    found = {}
    inside = facts.limits["l2_bytes"] // L2_SHARE // 4096 * 4096
    for name, size, turns in (("L2", inside, 64), ("DRAM", DRAM_BYTES, 1)):
        words = tuple(Value(n.to_bytes(4, "little")) for n in (size // 16, turns))
        call = LaunchCall("read", (4 * cores, 1, 1), (512, 1, 1), 0, (Pointer("from"), Pointer("to"), *words))
        held = {"from": KernelMemory(size), "to": KernelMemory(256)}
        took = _probe(client, CudaJob(cubin.code, (call,), held=held))
        if not isinstance(took, str):
            found[name] = size * turns / took
    arguments = Pointer("from"), Pointer("to"), Value((DRAM_BYTES // 16).to_bytes(4, "little"))
    call = LaunchCall("copied", (4 * cores, 1, 1), (512, 1, 1), 0, arguments)
    memory = KernelMemory(DRAM_BYTES)
    took = _probe(client, CudaJob(cubin.code, (call,), held={"from": memory, "to": memory}))
    if not isinstance(took, str):
        found["copy"] = 2 * DRAM_BYTES / took
    return found


def _probe(client: Client, job: CudaJob) -> float | str:
    """Seconds of the fastest of several runs, or what went wrong."""
    answer = client.probe(DEADLINE_S, job, 1, RUNS)
    return answer.message if isinstance(answer, Outcome) else float(answer)
