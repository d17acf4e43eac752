"""The interpreter's memory: arrays that notice what a machine would let pass.

Reads of elements that nothing has written, indices outside, and two parallel iterations that touch one element are
errors here; on a machine they would be wrong numbers on some days.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.tree.kernel import Buffer, KernelError

Flat = Any  # a flat element number, an int64 array of them, or a slice of lanes that stand evenly apart


class OutOfBoundsError(KernelError):
    """A valid lane's index lies outside its buffer."""


class UninitialisedError(KernelError):
    """A read of an element that was never written."""


class RaceError(KernelError):
    """Two iterations of a parallel loop touch one element, and one of them writes it."""


_NOBODY, _SEVERAL = -1, -2
Arrival = tuple[str, int, int]
"""A barrier, its slot, and how many arrivals there are with this one."""


@dataclass
class Region:
    """One run of a parallel loop: which iteration wrote and which read each element since it began. `earlier` regions
    are not over for all: iterations arrived at barriers that ended them, and have not waited there yet."""

    loop: str
    iteration: int = 0
    touched: dict[str, tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]] = field(default_factory=dict)
    earlier: tuple[tuple[Arrival, Region], ...] = ()

    def arrived(self, at: Arrival) -> Region:
        """The region that begins as all iterations arrive."""
        return Region(self.loop, earlier=(*self.earlier, (at, replace(self, earlier=()))))

    def waited(self, at: Arrival) -> None:
        """All iterations have arrived: what they did before is over."""
        over = [n for n, (end, _) in enumerate(self.earlier) if end == at]
        if over:
            self.earlier = self.earlier[over[0] + 1 :]

    def _of(self, storage: Storage) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        found = self.touched.get(storage.buffer.name)
        if found is None:
            found = tuple(np.full(storage.data.size, _NOBODY, np.int32) for _ in range(2))  # type: ignore[assignment]
            self.touched[storage.buffer.name] = found  # type: ignore[assignment]
        return found  # type: ignore[return-value]

    def wrote(self, storage: Storage, flat: Flat) -> None:
        writers, readers = self._of(storage)
        self._look(storage, flat, writers, "written")
        self._look(storage, flat, readers, "read")
        for before, read in self._before(storage):
            self._look(storage, flat, before, "written")
            self._look(storage, flat, read, "read")
        writers[flat] = self.iteration

    def read(self, storage: Storage, flat: Flat) -> None:
        writers, readers = self._of(storage)
        self._look(storage, flat, writers, "written")
        for before, _ in self._before(storage):
            self._look(storage, flat, before, "written")
        before = readers[flat]
        others = before != self.iteration
        if _any(others):
            shared = others & (before != _NOBODY)
            readers[flat] = np.where(shared, _SEVERAL, self.iteration) if _any(shared) else self.iteration

    def _before(self, storage: Storage) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]]:
        """Who wrote and who read in earlier regions."""
        for _, region in self.earlier:
            if (found := region.touched.get(storage.buffer.name)) is not None:
                yield found

    def _look(self, storage: Storage, flat: Flat, touched: npt.NDArray[np.int32], verb: str) -> None:
        """RaceError where another iteration has touched one of the elements."""
        seen = touched[flat]
        others = seen != self.iteration
        if not _any(others):  # nearly always all are this one's, or nobody's
            return
        clash = others & (seen != _NOBODY)
        if _any(clash):
            at = int(np.atleast_1d(storage.numbers[flat])[np.atleast_1d(clash)][0])
            other = "several" if touched[at] == _SEVERAL else f"number {touched[at]}"
            raise RaceError(
                f"race in parallel loop {self.loop}: iteration number {self.iteration} touches "
                f"{storage.element(at)}, which is {verb} by another ({other})"
            )


def _any(truth: Any) -> bool:
    """`np.any`, which takes longer than what it looks at."""
    return bool(np.count_nonzero(truth)) if isinstance(truth, np.ndarray) else bool(truth)


class Storage:
    """The elements of one buffer, flat. `written` is None where everything counts as initialised; `regions` are the
    parallel loops that run around the access, None where an element cannot be shared between iterations."""

    def __init__(
        self, buffer: Buffer, data: npt.NDArray[Any], *, initialised: bool, shared: list[Region] | None
    ) -> None:
        self.buffer = buffer
        self.data = data.reshape(-1)
        self.written: npt.NDArray[np.bool_] | None = None if initialised else np.zeros(self.data.size, np.bool_)
        self.regions = shared
        strides = [1]
        for n in reversed(buffer.shape[1:]):
            strides.append(strides[-1] * n)
        self.strides = tuple(reversed(strides)) if buffer.shape else ()

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The number of each element: `numbers[flat]` has those that a slice means."""
        return np.arange(self.data.size)

    def element(self, flat: int) -> str:
        """`C[3, 5]` for a flat element number."""
        index = np.unravel_index(flat, self.buffer.shape) if self.buffer.shape else ()
        return f"{self.buffer.name}[{', '.join(str(int(i)) for i in index)}]"

    def flat(self, index: list[Any], mask: npt.NDArray[np.bool_] | None) -> Flat:
        """The flat element numbers of `index` (ints or lane arrays); masked-off lanes get 0 and are not checked."""
        total: Any = 0
        vector = False
        for i, n, stride in zip(index, self.buffer.shape, self.strides, strict=True):
            if isinstance(i, np.ndarray):
                vector = True
                outside = (i < 0) | (i >= n)
                if mask is not None:
                    outside &= mask
                if _any(outside):
                    self._outside(index, int(np.flatnonzero(outside)[0]))
            elif not 0 <= i < n and (mask is None or mask.any()):
                self._outside(index, 0 if mask is None else int(np.flatnonzero(mask)[0]))
            total = total + i * stride
        if mask is not None:
            return np.where(mask, total, 0)
        return total if vector else int(total)

    def _outside(self, index: list[Any], lane: int) -> None:
        shown = ", ".join(str(int(i[lane] if isinstance(i, np.ndarray) else i)) for i in index)
        shape = ", ".join(str(n) for n in self.buffer.shape)
        raise OutOfBoundsError(f"{self.buffer.name}[{shown}] is outside {self.buffer.name}: [{shape}] (lane {lane})")

    def load(self, flat: Flat, mask: npt.NDArray[np.bool_] | None) -> Any:
        """The elements, checked; masked-off lanes read element 0 unchecked."""
        if self.written is not None or self.regions:
            used = flat if mask is None else flat[mask]
            if self.written is not None and _any(~self.written[used]):
                missing = np.atleast_1d(self.numbers[used])[np.atleast_1d(~self.written[used])][0]
                if self.buffer.scope == "state":
                    raise UninitialisedError(f"the state {self.buffer.name} is read before it is set")
                raise UninitialisedError(f"{self.element(int(missing))} is read but was never written")
            for region in self.regions or ():
                region.read(self, used)
        return self.data[flat]

    def store(self, flat: Flat, values: Any, mask: npt.NDArray[np.bool_] | None) -> None:
        """Write the lanes that `mask` keeps."""
        if mask is not None:
            flat, values = flat[mask], np.broadcast_to(values, mask.shape)[mask]
        for region in self.regions or ():
            region.wrote(self, flat)
        self.data[flat] = values
        if self.written is not None:
            self.written[flat] = True
