"""The program's tensors on the device: what goes in, and whether what comes out is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.device.correctness.compare import Difference, Wrong, compare
from autosched.device.cpu.data import numpy_dtype
from autosched.device.cuda.comparing import BITS, DOUBLES, ELEMENTS, Comparer, Wanted
from autosched.device.cuda.driver import Card, CudaError
from autosched.device.cuda.launch_job import Sample
from autosched.device.job import TensorFile
from autosched.ir.oracle.slack import NO_SLACK, Slack

GUARD = 4096
"""Canary bytes before and after every array of the check."""
CANARY, SCRATCH_POISON = 0xA5, 0xFF
ROOM = 4.0
"""Times the largest tolerance of what the interpreter computed: both kernels may be off, other sums may be larger."""
PART = 1 << 22
POISONS = (0xCD, 0x7F)
"""As the CPU's (`device.cpu.arena`): outputs hold the first before the check and the second before timing."""


def write_tolerances(folder: Path, wants: Mapping[str, Any], tolerances: Mapping[str, Any], slack: Slack) -> None:
    """The tolerances of jobs of this slack, beside those that `.tol` holds."""
    for name, tolerance in tolerances.items():
        if tolerance is not None:
            whole = np.broadcast_to(np.asarray(tolerance, np.float64), np.shape(wants[name]))
            np.ascontiguousarray(whole).tofile(_of(folder, name, slack))


def _of(folder: Path, name: str, slack: Slack) -> Path:
    return folder / f"{name}.{slack.key}.tol"


class CudaData:
    """Arrays of one data set on the GPU; `addresses` are the tensors', each between canaries. They are compared on the
    GPU where there is a `comparer`, which is closed with them, and here where it finds something wrong."""

    def __init__(
        self,
        card: Card,
        folder: Path,
        tensors: tuple[TensorFile, ...],
        samples: tuple[Sample, ...] = (),
        comparer: Comparer | None = None,
    ) -> None:
        self.card, self.comparer = card, comparer
        self.tensors = {t.name: t for t in tensors}
        self.samples = samples
        self._folder = folder
        self.addresses: dict[str, int] = {}
        self.first: dict[str, int] = {}
        """Inouts' values at entry, on the GPU."""
        self.references: dict[str, int] = {}
        """Whole outputs as a plain kernel wrote them, on the GPU."""
        self._wanted: dict[tuple[str, Slack], Wanted] = {}
        self._bases: list[int] = []
        self._want: dict[str, npt.NDArray[Any]] = {}
        self._allowed: dict[tuple[str, Slack], npt.NDArray[Any] | None] = {}
        for t in tensors:
            base = card.allocate(t.bytes + 2 * GUARD)
            self._bases.append(base)
            card.fill(base, CANARY, t.bytes + 2 * GUARD)
            card.wait("filling")
            self.addresses[t.name] = base + GUARD
            if t.input:
                values = np.fromfile(folder / f"{t.name}.in", np.uint8)
                assert values.size == t.bytes
                card.upload(self.addresses[t.name], values)
                if t.output:
                    self.first[t.name] = card.allocate(t.bytes)
                    card.upload(self.first[t.name], values)
            if t.output:
                tolerance = self._allowed[t.name, NO_SLACK] = _read(folder / f"{t.name}.tol")
                kind = numpy_dtype(t.dtype) if tolerance is None else np.float64
                self._want[t.name] = np.fromfile(folder / f"{t.name}.want", kind)
        card.wait("copying to the device", 0)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self._want)

    @property
    def bytes(self) -> int:
        return sum(t.bytes for t in self.tensors.values())

    def reset(self, addresses: Mapping[str, int], poison: int) -> None:
        """Outputs to poison, inouts to their values at entry."""
        for name in self.outputs:
            size = self.tensors[name].bytes
            if name in self.first:
                self.card.copy(addresses[name], self.first[name], size)
            else:
                self.card.fill(addresses[name], poison, size)

    def refill(self, addresses: Mapping[str, int]) -> None:
        """Inouts to their values at entry."""
        for name, source in self.first.items():
            self.card.copy(addresses[name], source, self.tensors[name].bytes)

    def untouched(self) -> None:
        """Wrong where bytes around an array were written; they are made good for the next kernel."""
        touched = []
        edge = np.empty(GUARD, np.uint8)
        for t, base in zip(self.tensors.values(), self._bases, strict=True):
            for at in (base, base + GUARD + t.bytes):
                self.card.download(edge, at)
                if (edge != CANARY).any():
                    touched.append(t.name)
                    self.card.fill(at, CANARY, GUARD)
        if touched:
            raise Wrong(f"bytes outside {', '.join(dict.fromkeys(touched))} were written")

    def verify(self, addresses: Mapping[str, int], slack: Slack = NO_SLACK) -> Difference | None:
        """The difference nearest to its tolerance (that of this slack); Wrong at the first output that is past it."""
        found: list[Difference] = []
        for name in self._want:
            near = self._nearest(name, addresses[name], slack)
            found += self._compared(name, addresses[name], slack) if near is None else [near]
        return max(found, key=lambda d: d.error / d.tolerance if d.tolerance else 0.0, default=None)

    def keep(self, addresses: Mapping[str, int]) -> None:
        """What these outputs hold is what whole outputs are compared with from now on."""
        for name in () if self.first else self.outputs:
            size = self.tensors[name].bytes
            self.references[name] = self.card.allocate(size)
            self.card.copy(self.references[name], addresses[name], size)
        self.card.wait("copying data")

    def verify_whole(self, addresses: Mapping[str, int], slack: Slack = NO_SLACK) -> None:
        """Wrong where an element is further from the reference than `ROOM` times the largest tolerance of the boxes.
        Inouts hold sums of many calls by now, and are left out."""
        for name, reference in self.references.items():
            t = self.tensors[name]
            tolerance = self._tolerance(name, slack)
            room = None if tolerance is None else ROOM * float(tolerance.max())
            if self.comparer is not None:
                how = BITS if room is None else ELEMENTS
                wanted = Wanted(prod(t.shape), how, reference, room=room or 0.0)
                if not self.comparer(addresses[name], t.dtype, wanted).wrong:
                    continue
            got, known = self._output(name, addresses[name]).reshape(-1), self._output(name, reference).reshape(-1)
            for start in range(0, known.size, PART):
                here = slice(start, start + PART)
                if (at := _strays(got[here], known[here], room)) is not None:
                    index = [int(i) for i in np.unravel_index(start + at, t.shape)]
                    shown = f"{float(got[start + at]):.9g}", f"{float(known[start + at]):.9g}"
                    said = f"{name}{index} is {shown[0]}; a plain kernel, right in all boxes, says {shown[1]}"
                    raise Wrong(said, index=index)

    def _nearest(self, name: str, address: int, slack: Slack) -> Difference | None:
        """The difference nearest to its tolerance, found on the GPU; None where an element is wrong, or there is no
        room."""
        if self.comparer is None:
            return None
        try:
            wanted = self._on_card(self.comparer, name, slack)
        except CudaError as error:
            if error.code != "CUDA_ERROR_OUT_OF_MEMORY":
                raise
            self.comparer.close()
            self.comparer = None
            return None
        t = self.tensors[name]
        found = self.comparer(address, t.dtype, wanted)
        if found.wrong:
            return None
        number, tolerance = found.nearest, self._tolerance(name, slack)
        got = np.empty(1, numpy_dtype(t.dtype))
        place = number if not wanted.places else int(self._places(name)[number])
        self.card.download(got, address + place * got.itemsize)
        shown, want = float(got[0]), float(self._want[name][number])
        error_of = 0.0 if tolerance is None or shown == want or np.isnan(want) else abs(shown - want)
        return Difference(True, number, error_of, 0.0 if tolerance is None else float(tolerance[number]), shown, want)

    def _on_card(self, comparer: Comparer, name: str, slack: Slack) -> Wanted:
        """What is wanted of an output, which is put on the GPU when it is first asked for."""
        if (name, slack) not in self._wanted:
            tolerance = self._tolerance(name, slack)
            allowed = 0 if tolerance is None else comparer.put(tolerance)
            known = next((w for (n, _), w in self._wanted.items() if n == name), None)
            if known is None:
                boxed = any(s.output == name for s in self.samples)
                how = BITS if tolerance is None else DOUBLES
                put = comparer.put(self._places(name)) if boxed else 0
                known = Wanted(self._want[name].size, how, comparer.put(self._want[name]), places=put)
            self._wanted[name, slack] = replace(known, tolerances=allowed)
        return self._wanted[name, slack]

    def _places(self, name: str) -> npt.NDArray[Any]:
        """Where in an output the elements of its boxes lie; all of them in order where there is no box."""
        found = np.arange(self._want[name].size, dtype=np.uint64)
        for s in self.samples:
            if s.output == name:
                where = np.ix_(*(range(low, low + n) for low, n in s.box))
                flat = np.ravel_multi_index(where, self.tensors[name].shape)
                found[s.start : s.start + s.elements] = flat.reshape(-1)
        return found

    def _compared(self, name: str, address: int, slack: Slack) -> list[Difference]:
        """The differences of an output's parts, found here."""
        want, tolerance = self._want[name], self._tolerance(name, slack)
        got = self._output(name, address)
        parts = [s for s in self.samples if s.output == name]
        if not parts:
            return [_compared(name, got, want, tolerance, (0,) * got.ndim)]
        found = []
        for s in parts:
            here = slice(s.start, s.start + s.elements)
            corner = got[tuple(slice(low, low + n) for low, n in s.box)]
            near = None if tolerance is None else tolerance[here]
            found.append(_compared(name, corner, want[here], near, tuple(low for low, _ in s.box)))
        return found

    def _output(self, name: str, address: int) -> npt.NDArray[Any]:
        """What an output at this address holds."""
        t = self.tensors[name]
        got = np.empty(t.shape, numpy_dtype(t.dtype))
        self.card.download(got, address)
        return got

    def _tolerance(self, name: str, slack: Slack) -> npt.NDArray[Any] | None:
        if (name, slack) not in self._allowed:
            self._allowed[name, slack] = _read(_of(self._folder, name, slack))
        return self._allowed[name, slack]

    def close(self) -> None:
        for address in (*self._bases, *self.first.values(), *self.references.values()):
            self.card.free(address)
        if self.comparer is not None:
            self.comparer.close()
        self._bases, self.first, self.references = [], {}, {}


def _read(path: Path) -> npt.NDArray[Any] | None:
    return np.fromfile(path, np.float64) if path.exists() else None


def _strays(got: npt.NDArray[Any], known: npt.NDArray[Any], room: float | None) -> int | None:
    """The first element that is not what is known, or not as near."""
    bits = np.dtype(f"u{got.itemsize}")
    others = np.flatnonzero(got.view(bits) != known.view(bits))  # few of them, where sums are rounded to 16 bits
    if not others.size:
        return None
    if room is None:
        return int(others[0])
    g, k = got[others].astype(np.float32), known[others].astype(np.float32)
    with np.errstate(invalid="ignore"):
        bad = ~((np.abs(g - k) <= room) | (g == k) | (np.isnan(g) & np.isnan(k)))
    return int(others[np.argmax(bad)]) if bad.any() else None


def _compared(name: str, got: Any, want: Any, tolerance: Any, at: tuple[int, ...]) -> Difference:
    """The difference of a part of an output that begins `at`."""
    d = compare(np.ascontiguousarray(got).reshape(-1), want, tolerance)
    if d.ok:
        return d
    index = [int(i) + low for i, low in zip(np.unravel_index(d.index, got.shape), at, strict=True)]
    allowed = f", tolerance {d.tolerance:.3g}" if d.tolerance else ""
    raise Wrong(
        f"{name}{index} is {d.got:.9g}, not {d.want:.9g} (error {d.error:.3g}{allowed}); "
        f"{d.wrong:,} of {want.size:,} elements compared are wrong",
        d,
        index,
    )
