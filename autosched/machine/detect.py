"""This machine as a `Target`, without measuring: features, cores, caches. `peaks` adds what only a clock can tell."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm

from autosched.backends import host_backend
from autosched.machine.host import host_features, llvm_features
from autosched.machine.spec import version_of
from autosched.machine.target import Memory, Target

ASSUMED_CACHES = {"L1": 32 << 10, "L2": 1 << 20, "L3": 16 << 20}
ASSUMED_BYTES_PER_CYCLE = {"L1": 64.0, "L2": 32.0, "L3": 16.0, "DRAM": 8.0}
ASSUMED_LATENCY_CYCLES = {"L1": 4, "L2": 14, "L3": 50, "DRAM": 300}
"""Common server CPUs; used where the system says nothing, and said so in the target's `sources`."""
ASSUMED_CLOCK_HZ = 3e9
ASSUMED = "assumed, this machine does not say"


@dataclass(frozen=True, slots=True)
class Cache:
    """A data cache as the system describes it; `shared` when more than one usable core has it."""

    level: int
    bytes: int
    line_bytes: int
    shared: bool


def usable_cpus() -> tuple[int, ...]:
    """The CPUs this process may run on, ascending."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The CPU's name as the system gives it, with family and model where the name is a class of machines."""
    fields = _cpuinfo(cpuinfo)
    name = fields.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{k} {fields[k]}" for k in ("cpu family", "model", "stepping") if k in fields]
    return name + (f" ({', '.join(numbers)})" if numbers else "")


def caches(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> tuple[Cache, ...]:
    """The data caches of the first core, from sysfs; empty where there is none."""
    found = []
    for folder in sorted(root.glob("index*")):
        try:
            kind = (folder / "type").read_text().strip()
            level = int((folder / "level").read_text())
            size = _size((folder / "size").read_text().strip())
            line = int((folder / "coherency_line_size").read_text())
            sharers = _cpu_count((folder / "shared_cpu_list").read_text().strip())
        except (OSError, ValueError):
            continue
        if kind in ("Data", "Unified") and size > 0:
            found.append(Cache(level, size, line, sharers > 1))
    return tuple(sorted(found, key=lambda c: c.level))


def detect(sysfs: Path = Path("/sys/devices/system/cpu"), cpuinfo: Path = Path("/proc/cpuinfo")) -> Target:
    """This machine. What the system does not tell is assumed, and `sources` says which figures those are."""
    backend, features = host_backend(), host_features()
    isa = backend.isa
    sources: dict[str, str] = {}
    clock_hz = _clock_hz(sysfs, cpuinfo)
    sources["clock"] = "reported by the system; not measured" if clock_hz else ASSUMED
    clock_hz = clock_hz or ASSUMED_CLOCK_HZ
    widest = next(v for v in backend.vectors if v[0] in features or not v[0])
    _, vector_bytes, vector_registers = widest
    memories = [Memory("registers", vector_bytes * vector_registers, None, None, "core")]
    found = {f"L{c.level}": c for c in caches(sysfs / "cpu0" / "cache")}
    for name, size in ASSUMED_CACHES.items():
        if name in found:
            cache = found[name]
            shared_by = "device" if cache.shared or cache.level >= 3 else "core"
            memories.append(_level(name, cache.bytes, shared_by, clock_hz, cache.line_bytes))
            sources[f"memories.{name}.bytes"] = "sysfs"
        elif not found:
            memories.append(_level(name, size, "device" if name == "L3" else "core", clock_hz))
            sources[f"memories.{name}.bytes"] = ASSUMED
        if name in {m.name for m in memories}:
            sources[f"memories.{name}.bandwidth"] = sources[f"memories.{name}.latency"] = "assumed, not measured"
    memories.append(_level("DRAM", max(_ram_bytes(), *(m.bytes for m in memories)), "device", clock_hz))
    sources["memories.DRAM.bandwidth"] = sources["memories.dram.latency"] = "assumed, not measured"
    flags = ",".join(f"{'+' if on else '-'}{k}" for k, on in sorted(llvm_features().items()))
    cores, model = len(usable_cpus()), cpu_model(cpuinfo)
    return Target(
        name="native",
        isa=isa,
        features=features,
        cores=cores,
        clock_hz=clock_hz,
        memories=tuple(memories),
        rates={"load": 2.0, "store": 1.0, "scalar": 2.0},
        limits={"vector_registers": vector_registers, "vector_bytes": vector_bytes, "page_bytes": 4096},
        compiler={
            "kind": "llvm",
            "triple": str(llvm.get_process_triple()),
            "cpu": str(llvm.get_host_cpu_name()),
            "features": flags,
        },
        summary=model,
        source="detected",
        version=identity(isa, features, cores, tuple(memories), model),
        sources=sources,
    )


def identity(isa: str, features: frozenset[str], cores: int, memories: tuple[Memory, ...], model: str) -> str:
    """A version that holds what this machine is, and nothing measured: results of two runs on it belong together."""
    sizes = {m.name: m.bytes for m in memories if m.name != "DRAM"}
    return version_of([model, isa, sorted(features), cores, sizes])


def _level(name: str, size: int, shared_by: str, clock_hz: float, line: int = 64) -> Memory:
    cycles = ASSUMED_LATENCY_CYCLES[name]
    return Memory(name, size, ASSUMED_BYTES_PER_CYCLE[name] * clock_hz, cycles / clock_hz, shared_by, line)


def _cpuinfo(path: Path) -> dict[str, str]:
    """The first processor's fields."""
    try:
        first = path.read_text().split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {k.strip(): v.strip() for k, _, v in pairs}


def _clock_hz(sysfs: Path, cpuinfo: Path) -> float | None:
    try:
        return float((sysfs / "cpu0" / "cpufreq" / "cpuinfo_max_freq").read_text()) * 1e3
    except (OSError, ValueError):
        pass
    try:
        megahertz = float(_cpuinfo(cpuinfo).get("cpu MHz", ""))
    except ValueError:
        return None
    return megahertz * 1e6 if megahertz >= 1 else None


def _ram_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 30


def _size(text: str) -> int:
    """`48K` or `32M` in bytes."""
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * scale


def _cpu_count(text: str) -> int:
    """How many CPUs a list such as `0-3,8` names."""
    total = 0
    for part in text.split(","):
        low, _, high = part.partition("-")
        total += int(high or low) - int(low) + 1
    return total
