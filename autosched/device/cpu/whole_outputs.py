"""Whole outputs of a data set as the program's loops as written compute them, in the timing worker: run once, kept in
files for workers that come after."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.llvm.machine.jit import load
from autosched.device.cpu.arena import POISONS, Bytes, plain
from autosched.device.job import Band, PlainRun, Rows
from autosched.machine.native import NativeCalls

if TYPE_CHECKING:
    from autosched.device.cpu.data import CpuData

LIST = "plain.json"
"""The file that says which rows the others hold."""


@dataclass(frozen=True)
class WholeOutputs:
    """`views` are outputs of which `rows` are known; of the others nothing is."""

    views: Mapping[str, Bytes]
    rows: Mapping[str, tuple[Rows, ...]]
    complete: bool

    def pieces(self, name: str, values: npt.NDArray[Any]) -> list[tuple[Rows, npt.NDArray[Any]]]:
        """The known rows of an array of the output's shape."""
        return [(rows, rows_of(values, rows)) for rows in self.rows[name]]

    def known(self, name: str, box: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
        """Which elements of a box are known, flat."""
        found = np.zeros([n for _, n in box], np.bool_)
        for rows in self.rows[name]:
            low, n = box[rows.axis] if box else (0, 1)
            rows_of(found, Rows(rows.axis, min(max(rows.low - low, 0), n), min(max(rows.high - low, 0), n)))[...] = True
        return found.reshape(-1)


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


def rows_of(values: npt.NDArray[Any], rows: Rows) -> npt.NDArray[Any]:
    """These rows of an array, a view."""
    where = (*(slice(None) for _ in range(rows.axis)), slice(rows.low, rows.high))
    return values[where] if values.shape else values[...]
