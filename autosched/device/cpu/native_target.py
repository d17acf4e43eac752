"""`native` with measured figures, and a cache of them: what `tune` starts from and `targets detect` prints."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import llvmlite

from autosched.device.cpu.builder import Builder
from autosched.errors import UsageError
from autosched.machine.detect import detect
from autosched.machine.peaks import EFFORTS, Peaks, measure_peaks, with_peaks
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic

SCHEMA = "autosched/peaks/1"


def native_target(
    intrinsics: Iterable[Intrinsic] = (), *, cache: Path | None = None, effort: str = "quick"
) -> tuple[Target, Peaks]:
    """This machine with measured clock, bandwidths and issue rates of `intrinsics`.

    `cache` is a JSON file: figures of this machine and this version are taken from it, and what was measured is kept
    there (nowhere else; a file that cannot be written is no error). UsageError for an unknown effort.
    """
    if effort not in EFFORTS:
        raise UsageError(f"the effort is {' or '.join(EFFORTS)}, not {effort!r}")
    target = detect()
    wanted = list(intrinsics)
    known = _read(cache, target, effort)
    done = {} if known is None else known.rates | known.skipped
    missing = [i for i in wanted if _key(i) not in done]
    if known is None or missing:
        builder = Builder()
        try:
            fresh = measure_peaks(
                target, missing, effort=effort, bandwidth=known is None, compile_ir=builder.compile
            )
        finally:
            builder.close()
        known = _joined(known, _keyed(fresh, missing))
        _write(cache, target, effort, known)
    peaks = _named(known, wanted)
    return with_peaks(target, peaks), peaks


def _key(intrinsic: Intrinsic) -> str:
    return f"{intrinsic.name}@{intrinsic.version}"


def _keyed(peaks: Peaks, intrinsics: list[Intrinsic]) -> Peaks:
    """Figures under names with versions: an edited YAML file is another instruction."""
    return _renamed(peaks, {i.name: _key(i) for i in intrinsics})


def _named(peaks: Peaks, intrinsics: list[Intrinsic]) -> Peaks:
    return _renamed(peaks, {_key(i): i.name for i in intrinsics})


def _renamed(peaks: Peaks, names: dict[str, str]) -> Peaks:
    return replace(
        peaks,
        rates={names[k]: v for k, v in peaks.rates.items() if k in names},
        all_cores={names[k]: v for k, v in peaks.all_cores.items() if k in names},
        skipped={names[k]: v for k, v in peaks.skipped.items() if k in names},
    )


def _joined(old: Peaks | None, new: Peaks) -> Peaks:
    """New figures beside old ones. Rates are per cycle, so each goes with the clock it was measured by."""
    if old is None:
        return new
    scale = new.clock_hz / old.clock_hz
    return replace(
        old,
        rates=old.rates | {k: v * scale for k, v in new.rates.items()},
        all_cores=old.all_cores | new.all_cores,
        skipped=old.skipped | new.skipped,
        seconds=old.seconds + new.seconds,
    )


def _identity(target: Target, effort: str) -> dict[str, str]:
    return {"schema": SCHEMA, "machine": target.version, "effort": effort, "llvmlite": llvmlite.__version__}


def _read(cache: Path | None, target: Target, effort: str) -> Peaks | None:
    """Cached figures; None where there are none, or not of this machine, or the file is damaged."""
    if cache is None:
        return None
    try:
        data: dict[str, Any] = json.loads(cache.read_text(encoding="utf-8"))
        identity = _identity(target, effort)
        if {k: data.get(k) for k in identity} != identity:
            return None
        peaks = Peaks(**{f.name: data["peaks"][f.name] for f in fields(Peaks)})
        figures = [peaks.clock_hz, *peaks.rates.values(), *peaks.bandwidth_one.values(), *peaks.bandwidth_all.values()]
        return peaks if all(isinstance(f, float) and f > 0 for f in figures) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _write(cache: Path | None, target: Target, effort: str, peaks: Peaks) -> None:
    if cache is None:
        return
    text = json.dumps({**_identity(target, effort), "cpu": target.summary, "peaks": asdict(peaks)}, indent=1)
    with contextlib.suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True)
        part = cache.with_name(f".{cache.name}.part")
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(cache)  # a reader sees the old file or the new one
