"""Targets by name or file, and back to YAML or JSON."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from autosched.errors import SpecError, UnknownNameError
from autosched.machine.spec import TargetSpec, target_from_yaml
from autosched.machine.target import Memory, Target
from autosched.machine.units import written
from autosched.text_file import read_text

NATIVE = "native"
MAX_BYTES = 1 << 20


def target_names() -> tuple[str, ...]:
    """The built-in targets, sorted (`native`, this machine, is not among them)."""
    return tuple(sorted(_files()))


def load_target(name_or_path: str | Path, *, native: Callable[[], Target] | None = None) -> Target:
    """The target of a built-in name, of a YAML file, or `native`: this machine, described without measuring.

    `native` gives another way to describe this machine (with measured peaks, from a cache). UnknownNameError
    and SpecError (no such file, its content) say what is wrong.
    """
    text = str(name_or_path)
    if text == NATIVE:
        from autosched.machine.detect import detect

        return native() if native else detect()
    if isinstance(name_or_path, Path) or text.endswith((".yaml", ".yml")) or "/" in text:
        return _read(Path(name_or_path))
    files = _files()
    if text not in files:
        raise UnknownNameError("target", text, [*files, NATIVE])
    return target_from_yaml(files[text].read_text(encoding="utf-8"), f"targets/{text}.yaml")


def target_schema() -> dict[str, Any]:
    """The JSON schema of a target file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TargetSpec.model_json_schema()}


def target_data(target: Target) -> dict[str, Any]:
    """The target as plain data in the layout of its YAML; figures are text with units. Reading it back gives an equal
    target, but for the version where the file held other spellings."""

    def figure(value: object, source: str | None) -> object:
        return {"value": value, "source": source} if source else value

    clock_hz = target.clock_hz

    def rate(bytes_per_s: float) -> str:
        return written(bytes_per_s, "bandwidth", "B/cycle", "GB/s", "TB/s", "B/s", clock_hz=clock_hz)

    def memory(level: Memory) -> dict[str, Any]:
        bandwidth, one_core = level.bandwidth_bytes_per_s, level.core_bandwidth_bytes_per_s
        parts: dict[str, Any] = {
            "bytes": written(level.bytes, "bytes", "KiB", "MiB", "GiB", "MB", "GB", "B"),
            "bandwidth": bandwidth and rate(bandwidth),
            "core_bandwidth": one_core and rate(one_core),
            "latency": level.latency_s and written(level.latency_s, "time", "cycles", "ns", "s", clock_hz=clock_hz),
            "line": f"{level.line_bytes} B",
            "banks": level.banks,
            "energy": level.joules_per_byte and written(level.joules_per_byte, "energy per byte", "pJ/B", "J/B"),
        }
        described = {
            k: figure(v, target.sources.get(f"memories.{level.name}.{k}")) for k, v in parts.items() if v is not None
        }
        holds = {"holds": list(level.holds)} if level.holds else {}
        return {"name": level.name, "shared_by": level.shared_by, **holds, **described}

    units = {True: "op/cycle", False: "issue/cycle"}
    rates = {
        k: figure(f"{v!r} {units[k.startswith('ops.')]}", target.sources.get(f"rates.{k}"))
        for k, v in sorted(target.rates.items())
    }
    energy = {
        k: figure(written(v, "energy per operation", "pJ/op", "J/op"), target.sources.get(f"energy.{k}"))
        for k, v in sorted(target.energy.items())
    }
    drawn: dict[str, Any] = {"energy": energy} if energy else {}
    if target.static_watts is not None:
        drawn["power"] = figure(written(target.static_watts, "power", "W"), target.sources.get("power"))
    if not target.host:
        drawn["host"] = "none"
    if target.start_s is not None:
        started = written(target.start_s, "time", "cycles", "ns", "s", clock_hz=target.clock_hz)
        drawn["start"] = figure(started, target.sources.get("start"))
    clock = figure(written(target.clock_hz, "frequency", "GHz", "Hz"), target.sources.get("clock"))
    cores = figure(target.cores, target.sources.get("cores"))
    return {
        "name": target.name,
        "summary": target.summary,
        "source": target.source,
        "isa": target.isa,
        "features": sorted(target.features),
        "units": {"cores": cores, "clock": clock, "rates": rates, **drawn},
        "memories": [memory(m) for m in target.memories],
        "limits": {k: figure(v, target.sources.get(f"limits.{k}")) for k, v in target.limits.items()},
        "compiler": dict(target.compiler),
    }


def target_yaml(target: Target) -> str:
    """The target as a YAML file's text."""
    return str(yaml.safe_dump(target_data(target), width=120, sort_keys=False, allow_unicode=True))


def _read(path: Path) -> Target:
    hint = f"built-in targets: {', '.join(target_names())}, {NATIVE}"
    return target_from_yaml(read_text(path, SpecError, MAX_BYTES, hint), str(path))


def _files() -> dict[str, Any]:
    folder = resources.files("autosched.targets")
    return {f.name.removesuffix(".yaml"): f for f in folder.iterdir() if f.name.endswith(".yaml")}
