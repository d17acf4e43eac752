"""Target YAML: pydantic at the edge, a frozen `Target` inside. A file that loads is consistent."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from autosched.errors import SpecError
from autosched.machine.gpu_figures import contradictions
from autosched.machine.rate_names import CLASSES, misnamed
from autosched.machine.target import Memory, Target
from autosched.machine.units import quantity
from autosched.tensorize.spec.features import isa_hint, misspelt_isa
from autosched.yaml_lines import Document, parse_yaml, validate

SHARED_BY = ("thread", "core", "device")
HOLDS = ("inputs", "accumulators")
KEYS_HINT = "name, isa, features, units (cores, clock, rates), memories, limits, compiler"
CLOCK_RANGE_HZ = (1e6, 1e11)
"""Slower than any computer of interest, faster than any there is: outside it a unit was mistaken."""
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.+-]*"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Figure(_Strict):
    """A number with its unit as text, or `{value, source}`."""

    value: str | int | float
    source: str = ""

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, data: Any) -> Any:
        return data if isinstance(data, dict) else {"value": data}


class Count(_Strict):
    """A positive integer, or `{value, source}`."""

    value: int = Field(gt=0)
    source: str = ""

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, data: Any) -> Any:
        return data if isinstance(data, dict) else {"value": data}


class Units(_Strict):
    """What computes: `cores` (or SMs), their `clock`, `rates` and `energy` per intrinsic or class, the `power` that
    is drawn however little is done, the time that the host takes to `start` commands, and whether there is a `host`
    that computes (`none`: instructions do everything)."""

    cores: Count
    clock: Figure
    rates: dict[str, Figure] = {}
    energy: dict[str, Figure] = {}
    power: Figure | None = None
    start: Figure | None = None
    host: Literal["none"] | None = None


class MemorySpec(_Strict):
    """One level of storage; the list runs from registers outward."""

    name: str = Field(pattern=_NAME)
    bytes: Figure
    bandwidth: Figure | None = None
    core_bandwidth: Figure | None = None
    latency: Figure | None = None
    shared_by: str = "core"
    line: Figure | None = None
    banks: Count | None = None
    energy: Figure | None = None
    holds: list[str] = []


class Limits(_Strict):
    """What a schedule must keep within; what nothing looks up would be kept by nobody, so there are no other names."""

    vector_registers: Count | None = None
    vector_bytes: Count | None = None
    issue_width: Count | None = None
    page_bytes: Count | None = None
    warp_threads: Count | None = None
    threads_per_block: Count | None = None
    warps_per_core: Count | None = None
    blocks_per_core: Count | None = None
    registers_per_core: Count | None = None
    registers_per_thread: Count | None = None
    shared_bytes: Count | None = None
    static_shared_bytes: Count | None = None
    shared_bytes_reserved_per_block: Count | None = None
    cluster_blocks: Count | None = None
    queue_load: Count | None = None
    queue_store: Count | None = None
    queue_execute: Count | None = None


class Compiler(_Strict):
    """How source is built: by which `kind` of compiler, for which `arch` of a GPU, or for LLVM's `triple`, `cpu` and
    `features`."""

    kind: str | None = None
    arch: str | None = None
    triple: str | None = None
    cpu: str | None = None
    features: str | None = None


class TargetSpec(_Strict):
    """A target file."""

    name: str = Field(pattern=f"^{_NAME}$")
    summary: str = ""
    source: str = ""
    isa: str = Field(pattern=f"^{_NAME}$")
    features: list[str] = []
    units: Units
    memories: list[MemorySpec] = Field(min_length=1)
    limits: Limits = Limits()
    compiler: Compiler = Compiler()


def target_from_yaml(text: str, file: str) -> Target:
    """Read a target's YAML; `file` names it in errors. SpecError with `file:line` on anything unknown or impossible."""
    document = parse_yaml(text, file)
    if not isinstance(document.data, dict):
        raise _error(document, "a target file is a mapping of keys", hint=KEYS_HINT)
    _check_given(document, document.data)
    spec = validate(TargetSpec, document)
    sources: dict[str, str] = {}

    def figure(value: Figure | Count, name: str) -> None:
        if value.source:
            sources[name] = value.source

    figure(spec.units.cores, "cores")
    figure(spec.units.clock, "clock")
    clock_hz = _figure(document, spec.units.clock, "frequency", None, "units", "clock")
    low, high = CLOCK_RANGE_HZ
    if not low <= clock_hz <= high:
        raise _error(document, f"a clock of {clock_hz:g} Hz is impossible", "units", "clock", hint="check its unit")
    for part, keys in (("rates", spec.units.rates), ("energy", spec.units.energy)):
        for key in keys:
            if (wrong := misnamed(key)) is not None:
                raise _error(document, wrong[0], "units", part, key, hint=wrong[1])
    rates = {}
    for key, rate in spec.units.rates.items():
        dimension = "operations" if key.startswith("ops.") else "issues"
        rates[key] = _figure(document, rate, dimension, clock_hz, "units", "rates", key)
        figure(rate, f"rates.{key}")
    energy = {}
    for key, cost in spec.units.energy.items():
        energy[key] = _figure(document, cost, "energy per operation", clock_hz, "units", "energy", key)
        figure(cost, f"energy.{key}")
    static_watts = None
    if spec.units.power is not None:
        static_watts = _figure(document, spec.units.power, "power", clock_hz, "units", "power")
        figure(spec.units.power, "power")
    start_s = None
    if spec.units.start is not None:
        start_s = _figure(document, spec.units.start, "time", clock_hz, "units", "start")
        figure(spec.units.start, "start")
    if spec.units.host is not None:
        _check_without_host(document, spec)
    limits: dict[str, Count] = {key: getattr(spec.limits, key) for key in document.data.get("limits", {})}
    for key, limit in limits.items():
        figure(limit, f"limits.{key}")
    memories = []
    for i, level in enumerate(spec.memories):
        memories.append(_memory(document, level, i, clock_hz))
        for part in ("bytes", "bandwidth", "core_bandwidth", "latency", "line", "banks", "energy"):
            if (value := getattr(level, part)) is not None:
                figure(value, f"memories.{level.name}.{part}")
    _check_order(document, memories)
    for place, message, hint in contradictions({k: v.value for k, v in limits.items()}, tuple(memories)):
        raise _error(document, message, *place, hint=hint or None)
    for i, feature in enumerate(spec.features):
        if feature in spec.features[:i]:
            raise _error(document, f"feature {feature!r} is listed twice", "features", i)
    if meant := misspelt_isa(spec.isa):
        raise _error(document, f"no isa is called {spec.isa!r}", "isa", hint=isa_hint(meant))
    return Target(
        name=spec.name,
        isa=spec.isa,
        features=frozenset(spec.features),
        cores=spec.units.cores.value,
        clock_hz=clock_hz,
        memories=tuple(memories),
        rates=rates,
        limits={k: v.value for k, v in limits.items()},
        compiler=spec.compiler.model_dump(exclude_unset=True),
        summary=spec.summary.strip(),
        source=spec.source.strip(),
        version=version_of(document.data),
        sources=sources,
        energy=energy,
        static_watts=static_watts,
        start_s=start_s,
        host=spec.units.host is None,
    )


def _check_without_host(document: Document, spec: TargetSpec) -> None:
    """SpecError where a chip without a host has nothing to compute in, or states rates of what a host would do."""
    if not any(m.holds for m in spec.memories):
        hint = "give one of the memories `holds: [inputs]`, and one `holds: [accumulators]`"
        said = "a chip without a host needs memories that the program fills"
        raise _error(document, said, "units", "host", hint=hint)
    for key in spec.units.rates:
        if key in CLASSES:
            hint = "describe an instruction that does it, or leave `host` out"
            raise _error(document, f"{key} is a host's rate, and there is no host", "units", "rates", key, hint=hint)


def version_of(data: Any) -> str:
    """A short hash of a description's content (its layout and comments do not count)."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def _error(document: Document, message: str, *path: str | int, hint: str | None = None) -> SpecError:
    return SpecError(message, hint=hint, location=document.location(*path))


def _check_given(document: Document, data: Any, *path: str | int) -> None:
    """SpecError at the first key that has no value: a figure left blank is a figure that is missing."""
    match data:
        case None:
            raise _error(document, f"{path[-1]} has no value", *path, hint="give the figure, or leave the key out")
        case dict():
            for key, value in data.items():
                _check_given(document, value, *path, key)
        case list():
            for i, value in enumerate(data):
                _check_given(document, value, *path, i)
        case _:
            pass


def _figure(document: Document, value: Figure, dimension: str, clock_hz: float | None, *path: str | int) -> float:
    try:
        return quantity(value.value, dimension, clock_hz)
    except SpecError as error:
        raise _error(document, f"{path[-1]}: {error.message}", *path, hint=error.hint) from None


def _memory(document: Document, level: MemorySpec, i: int, clock_hz: float) -> Memory:
    if level.shared_by not in SHARED_BY:
        raise _error(
            document, f"shared_by is one of {', '.join(SHARED_BY)}, not {level.shared_by!r}", "memories", i, "shared_by"
        )

    def optional(part: str, dimension: str) -> float | None:
        value: Figure | None = getattr(level, part)
        return None if value is None else _figure(document, value, dimension, clock_hz, "memories", i, part)

    size = _figure(document, level.bytes, "bytes", None, "memories", i, "bytes")
    line = optional("line", "bytes") or 64.0
    for part, figure in (("bytes", size), ("line", line)):
        if figure != int(figure):
            raise _error(document, f"{part}: {figure} is not a whole number of bytes", "memories", i, part)
    whole, one_core = optional("bandwidth", "bandwidth"), optional("core_bandwidth", "bandwidth")
    if one_core is not None and (level.shared_by != "device" or whole is None or one_core > whole):
        message = "core_bandwidth is one core's part of the bandwidth of a level that the device shares"
        raise _error(document, message, "memories", i, "core_bandwidth")
    return Memory(
        name=level.name,
        bytes=int(size),
        bandwidth_bytes_per_s=whole,
        core_bandwidth_bytes_per_s=one_core,
        latency_s=optional("latency", "time"),
        shared_by=level.shared_by,
        line_bytes=int(line),
        banks=None if level.banks is None else level.banks.value,
        joules_per_byte=optional("energy", "energy per byte"),
        holds=_held(document, level, i),
    )


def _held(document: Document, level: MemorySpec, i: int) -> tuple[str, ...]:
    for k, what in enumerate(level.holds):
        if what not in HOLDS:
            known = " and ".join(HOLDS)
            raise _error(document, f"a scratchpad holds {known}, not {what!r}", "memories", i, "holds", k)
    return tuple(level.holds)


def _inside(level: Memory, before: list[Memory]) -> list[Memory]:
    """The levels just inside of one: the one before it, with all scratchpads where that is one."""
    if not before or (level.holds and before[-1].holds):
        return []
    return [m for m in before if m.holds] if before[-1].holds else before[-1:]


def _check_order(document: Document, memories: list[Memory]) -> None:
    """Levels run outward: none is smaller or quicker to answer than the one inside it, and the last one has a speed.

    Registers do not take part in the order of sizes: a GPU core's register file is larger than its shared memory. Nor
    do scratchpads among themselves: they lie side by side.
    """
    hint = "levels are listed from registers outward; scratchpads lie side by side, in any order"
    for i, level in enumerate(memories):
        if level.name in [m.name for m in memories[:i]]:
            raise _error(document, f"memory {level.name!r} is described twice", "memories", i, "name")
        for inner in _inside(level, memories[:i]):
            if inner.name != "registers" and level.bytes < inner.bytes:
                said = f"{level.name} ({level.bytes:,} B) is smaller than {inner.name} ({inner.bytes:,} B) inside it"
                raise _error(document, said, "memories", i, "bytes", hint=hint)
            if inner.latency_s is not None and level.latency_s is not None and level.latency_s < inner.latency_s:
                said = f"{level.name} answers sooner than {inner.name} inside it"
                raise _error(document, said, "memories", i, "latency", hint=hint)
    if memories[-1].bandwidth_bytes_per_s is None:
        name, last = memories[-1].name, len(memories) - 1
        hint = "it is where tensors come from; give it as `20 GB/s` or `8 B/cycle`"
        raise _error(document, f"{name}, the outermost memory, has no bandwidth", "memories", last, hint=hint)
