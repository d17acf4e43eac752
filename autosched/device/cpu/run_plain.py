"""Runs the program's loops as written on a data set, in the timing worker: once, kept in files for workers that come
after."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from autosched.codegen.llvm.machine.jit import load
from autosched.device.cpu.arena import POISONS, Bytes, plain
from autosched.device.cpu.data import CpuData
from autosched.device.cpu.whole_outputs import WholeOutputs, rows_of
from autosched.device.job import Band, PlainRun
from autosched.machine.native import NativeCalls

LIST = "plain.json"
"""The file that says which rows the others hold."""


def run_plain(
    data: CpuData, folder: Path, bands: Sequence[Band], count: int, budget_s: float, scalars: Mapping[str, bytes]
) -> tuple[WholeOutputs, PlainRun]:
    """Run the bands, the first of `count`, in their order, no further one where it would end past `budget_s` seconds,
    and keep what they write in the folder; or take what it holds of them."""
    listed = folder / LIST
    if listed.exists():
        known = json.loads(listed.read_text())
        run = PlainRun(**known["run"])
        return _whole({n: _mapped(folder / n, t.bytes) for n, t in _outputs(data)}, bands, run), run
    views = {name: plain(t.bytes) for name, t in _outputs(data)}
    done, spent_s, longest_s = 0, 0.0, 0.0
    for band in bands:
        if done and spent_s + longest_s > budget_s:
            break
        took_s = _run(data, band, scalars)
        spent_s, longest_s, done = spent_s + took_s, max(longest_s, took_s), done + 1
        for name, rows in band.rows.items():
            written = data.as_array(name, data.guarded[name].view)
            rows_of(data.as_array(name, views[name]), rows)[...] = rows_of(written, rows)
    run = PlainRun(done, count, spent_s)
    for name, view in views.items():
        view.tofile(folder / name)
    listed.write_text(json.dumps({"run": asdict(run)}))
    return _whole(views, bands, run), run


def _run(data: CpuData, band: Band, scalars: Mapping[str, bytes]) -> float:
    """Call a band on the guarded tensors; its own memory is touched only where it writes."""
    loaded, job = load(band.job.objects), band.job
    scratch = {name: plain(s.bytes) for name, s in job.scratch.items()}
    views = {name: g.view for name, g in data.guarded.items()}
    data.reset(views, POISONS[0])
    addresses = {n: int(v.ctypes.data) for n, v in {**views, **scratch}.items()}
    took_s = 0.0
    for entry in (*job.prepare, job.given(scalars)):
        took_s += NativeCalls(loaded.address(entry.symbol), [[addresses[b] for b in entry.buffers]], entry.scalars)(1)
    for name in data.outputs:
        data.guarded[name].intact()
    return took_s


def _whole(views: Mapping[str, Bytes], bands: Sequence[Band], run: PlainRun) -> WholeOutputs:
    rows = {name: tuple(b.rows[name] for b in bands[: run.done]) for name in views}
    return WholeOutputs(views, rows, run.done == run.bands)


def _outputs(data: CpuData) -> list[tuple[str, Any]]:
    return [(name, data.tensors[name]) for name in data.outputs]


def _mapped(path: Path, size: int) -> Bytes:
    return np.memmap(path, np.uint8, "r", shape=(size,)) if size else np.zeros(0, np.uint8)
