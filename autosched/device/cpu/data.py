"""The program's tensors in the timing worker, and whether what a kernel wrote into them is right."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.device.correctness.compare import Closeness, Difference, Wrong, closeness, compare, furthest, scale
from autosched.device.correctness.wants import SAMPLES
from autosched.device.cpu.arena import ALIGN, Bytes, Guarded, plain
from autosched.device.cpu.whole_outputs import WholeOutputs, rows_of
from autosched.device.job import Box, PlainRun, RowsAlong, TensorFile


@dataclass(frozen=True)
class OutputBox:
    """What a box of an output (None: all of it) must be: flat, with tolerances (None: equal)."""

    box: Box | None
    want: npt.NDArray[Any]
    allowed: npt.NDArray[Any] | None
    scale: npt.NDArray[Any] | None

    def of(self, output: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Its elements in an output, flat."""
        if self.box is None:
            return output.reshape(-1)
        return np.ascontiguousarray(output[tuple(slice(low, low + n) for low, n in self.box)]).reshape(-1)

    def index(self, flat: int, shape: tuple[int, ...]) -> list[int]:
        """Where in the output its element lies."""
        if self.box is None:
            return [int(i) for i in np.unravel_index(flat, shape)]
        inner = np.unravel_index(flat, [n for _, n in self.box])
        return [int(i) + low for i, (low, _) in zip(inner, self.box, strict=True)]


class CpuData:
    """The program's tensors in this process: guarded for the check, plain for timing; and what the oracle wants."""

    def __init__(self, folder: Path, tensors: tuple[TensorFile, ...]) -> None:
        self.folder = folder
        self.tensors = {t.name: t for t in tensors}
        self.guarded: dict[str, Guarded] = {}
        self.plain: dict[str, Bytes] = {}
        self.initial: dict[str, Bytes] = {}
        self._copies: list[dict[str, Bytes]] = []
        self.known: dict[str, Bytes] = {}
        """Whole outputs of the first kernel that was right in all boxes."""
        self.whole: WholeOutputs | None = None
        """Those of the loops as written."""
        for number, t in enumerate(tensors):
            guarded = Guarded(t.bytes)
            self.plain[t.name] = plain(t.bytes, stagger=5 * number)
            if t.input:
                with (folder / f"{t.name}.in").open("rb", buffering=0) as file:
                    _fill(guarded.view, file)
                self.plain[t.name][:] = guarded.view
                if t.output:
                    self.initial[t.name] = guarded.view.copy()
                else:
                    guarded.freeze()
            self.guarded[t.name] = guarded
        self.pieces: dict[str, list[OutputBox]] = {}
        self.sampled = False
        self.read_wants()

    def read_wants(self) -> bool:
        """What the outputs must be, read from the folder (again, where a box was added); whether what is known of whole
        outputs does not hold any more, and is forgotten."""
        rows: dict[str, list[tuple[int, Box]]] = {}
        listed = self.folder / SAMPLES
        self.sampled = listed.exists()
        for name, start, box in json.loads(listed.read_text()) if self.sampled else ():
            rows.setdefault(name, []).append((start, tuple((low, n) for low, n in box)))
        for t in self.tensors.values():
            if t.output:
                tolerance = self.folder / f"{t.name}.tol"
                exact = not tolerance.exists()
                want = np.fromfile(self.folder / f"{t.name}.want", numpy_dtype(t.dtype) if exact else np.float64)
                allowed = None if exact else np.fromfile(tolerance, np.float64)
                self.pieces[t.name] = [
                    _piece(box, want[here], None if allowed is None else allowed[here])
                    for box, here in _places(rows.get(t.name))
                ]
        before = self.known, self.whole
        try:
            if self.known:
                self.verify(self.known)
        except Wrong:
            self.known = {}
        if self._wrong_loops():
            self.whole = None
        return before != (self.known, self.whole)

    def refer(self, whole: WholeOutputs, run: PlainRun) -> PlainRun:
        """Have whole outputs compared with those of the loops as written, of which this run made so much (`run_plain`),
        unless these are wrong in a box."""
        self.whole = whole
        if wrong := self._wrong_loops():
            self.whole = None
            return replace(run, wrong=wrong)
        return replace(run, vague=tuple(n for n in self.outputs if np.isinf(getattr(self._close(n), "room", 0.0))))

    def _wrong_loops(self) -> str:
        """Where the loops as written are past a tolerance in a box, if anywhere."""
        for name, pieces in self.pieces.items() if self.whole is not None else ():
            assert self.whole is not None
            shape = self.tensors[name].shape
            for piece in pieces:
                known = self.whole.known(name, piece.box or [(0, n) for n in shape])
                got = piece.of(self.as_array(name, self.whole.views[name]))
                allowed = None if piece.allowed is None else piece.allowed[known]
                difference = compare(got[known], piece.want[known], allowed)
                if not difference.ok:
                    index = piece.index(int(np.flatnonzero(known)[difference.index]), shape)
                    return f"{name}{index}: {difference.got:.9g}, not {difference.want:.9g}"
        return ""

    def as_array(self, name: str, view: Bytes) -> npt.NDArray[Any]:
        """A tensor's bytes as an array of its shape."""
        t = self.tensors[name]
        values: npt.NDArray[Any] = view.view(numpy_dtype(t.dtype)).reshape(t.shape)
        return values

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.pieces)

    @property
    def inouts(self) -> tuple[str, ...]:
        return tuple(self.initial)

    def elsewhere(self, number: int) -> dict[str, Bytes]:
        """A copy of the plain tensors on other pages, the same for all who ask for the `number`."""
        while len(self._copies) <= number:
            copies = len(self._copies) + 1
            self._copies.append({n: copy_of(v, i + copies) for i, (n, v) in enumerate(self.plain.items())})
        return self._copies[number]

    def reset(self, views: dict[str, Bytes], poison: int) -> None:
        """Outputs to poison, inouts to their values at entry."""
        for name in self.outputs:
            views[name][:] = self.initial.get(name, poison)

    def verify(self, views: dict[str, Bytes]) -> Difference | None:
        """The difference nearest to its tolerance; Wrong at the first output that is past it."""
        found: list[Difference] = []
        for name, pieces in self.pieces.items():
            output = self.as_array(name, views[name])
            for piece in pieces:
                difference = compare(piece.of(output), piece.want, piece.allowed, piece.scale)
                if not difference.ok:
                    raise _wrong(name, difference, piece, output.shape)
                found.append(difference)
        return max(found, key=lambda d: d.error / d.tolerance if d.tolerance else 0.0, default=None)

    def verify_whole(self, views: dict[str, Bytes]) -> None:
        """Of outputs of which boxes alone are known, right in these: Wrong where they are not as near to those of the
        loops as written, and where there are none to the first right ones, as two right ones are; `extra` says where to
        look then. The first ones are kept."""
        if not self.sampled or (self.known and self._same(views, self.known)):
            return
        whole = self.whole
        if whole is not None:
            self._near(views, whole.views, "the loops as written say", whole)
        if self.known and not (whole is not None and whole.complete):
            self._near(views, self.known, "the first kernel that is right in all boxes says")
        if not self.known:
            self.known = {name: views[name].copy() for name in self.outputs}

    def _near(
        self, views: Mapping[str, Bytes], others: Mapping[str, Bytes], said: str, whole: WholeOutputs | None = None
    ) -> None:
        """Wrong where outputs, or the known rows of them, differ by more than two right ones may."""
        for name in self.outputs:
            close = self._close(name)
            got, other = self.as_array(name, views[name]), self.as_array(name, others[name])
            every = [(RowsAlong(0, 0, 0), got)] if whole is None or whole.complete else whole.pieces(name, got)
            for rows, part in every:
                against = other if part is got else rows_of(other, rows)
                at = furthest(np.ascontiguousarray(part).reshape(-1), np.ascontiguousarray(against).reshape(-1), close)
                if at is None:
                    continue
                index = [int(i) for i in np.unravel_index(at, part.shape)]
                if part is not got:
                    index[rows.axis] += rows.low
                values = f"{float(part.flat[at]):.9g}; {said} {float(against.flat[at]):.9g}"
                raise Wrong(f"{name}{index} is {values}", index=index, extra={"stray": ["", name, index]})

    def _close(self, name: str) -> Closeness | None:
        """How far two right kernels may be apart in an output; None: nowhere."""
        pieces = self.pieces[name]
        return None if pieces[0].allowed is None else closeness([(p.want, p.allowed) for p in pieces])

    def _same(self, views: Mapping[str, Bytes], others: Mapping[str, Bytes]) -> bool:
        return all(np.array_equal(_words(views[name]), _words(others[name])) for name in self.outputs)

    def verify_again(self, views: dict[str, Bytes], verified: dict[str, Bytes]) -> None:
        """`verify` for outputs of the same inputs as those `verified` before: of equal bytes nothing is left to say,
        and to see that they are equal costs a tenth of comparing with the oracle."""
        if not self._same(views, verified):
            self.verify(views)
            self.verify_whole(views)


def numpy_dtype(name: str) -> Any:
    """A numpy type by name; those of ml_dtypes only where one is asked for, to keep the start short."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def copy_of(values: Bytes, stagger: int) -> Bytes:
    """A copy on other pages, `stagger` lines behind a page's beginning."""
    copied = plain(values.size, 5 * stagger)
    copied[:] = values
    return copied


def copies_of(values: Bytes, count: int, stagger: int) -> list[Bytes]:
    """Copies in one piece of memory, one behind the other. Where the last cache is large and the data small there are
    tens of thousands, and pages of their own would take seconds to touch."""
    stride = -(-values.size // ALIGN) * ALIGN + ALIGN
    rows = plain(count * stride, 5 * stagger).reshape(count, stride)[:, : values.size]
    rows[:] = values
    return list(rows)


def address_of(view: Bytes) -> int:
    return int(view.ctypes.data)


def _piece(box: Box | None, want: npt.NDArray[Any], allowed: npt.NDArray[Any] | None) -> OutputBox:
    return OutputBox(box, want, allowed, None if allowed is None else scale(allowed))


def _fill(view: Bytes, file: io.FileIO) -> None:
    """Read as many bytes as there are: one call to the system reads 2 GiB at most."""
    done = 0
    while done < len(view):
        count = file.readinto(view[done:].data)
        if not count:
            raise EOFError(f"{file.name} has {done:,} bytes, {len(view):,} are wanted")
        done += count


def _places(rows: list[tuple[int, Box]] | None) -> list[tuple[Box | None, slice]]:
    """The boxes, each with where its elements lie."""
    if rows is None:
        return [(None, slice(None))]
    return [(box, slice(start, start + int(np.prod([n for _, n in box])))) for start, box in rows]


def _wrong(name: str, d: Difference, piece: OutputBox, shape: tuple[int, ...]) -> Wrong:
    index = piece.index(d.index, shape)
    said = f", tolerance {d.tolerance:.3g}" if d.tolerance else ""
    compared = "elements" if piece.box is None else "elements compared"
    return Wrong(
        f"{name}{index} is {d.got:.9g}, not {d.want:.9g} (error {d.error:.3g}{said}); "
        f"{d.wrong:,} of {piece.want.size:,} {compared} are wrong",
        d,
        index,
    )


def _words(view: Bytes) -> npt.NDArray[Any]:
    """The bytes, eight at a time where they are as many."""
    return view if view.size % 8 else view.view(np.uint64)
