"""Boxes that TMA moves, as the interpreter does it: by the hardware's own rules, in bytes.

Elements of a box lie one after the other in shared memory, the innermost dimension first. With a swizzle of 128, 64 or
32 bytes, bits 4 to 6 (5, 4) of a byte's address are turned by bits 7 to 9 (8, 7), counted from where the buffer begins,
which is a multiple of 1024 (PTX ISA, swizzling modes of tensor copies).

Pixels along a walk follow each other as a window's corner does (PTX ISA, im2col mode).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.interpret.storage import Storage
from autosched.codegen.interpret.subscripts import Env, compile_int
from autosched.codegen.tree.kernel import KernelError, TileCopy

SWIZZLED_BITS = {0: 0, 32: 1, 64: 2, 128: 3}
LEAST_BYTES = 128  # of which every box's place in shared memory is a multiple


class BoxMover:
    """`BoxMover(box, storages)(env)` moves it. KernelError where it begins at no place that the engine accepts."""

    def __init__(self, box: TileCopy, storages: Mapping[str, Storage]) -> None:
        self.box, seen = box, box.map
        self.there, self.here = storages[seen.buffer], storages[box.buffer]
        self.coordinates = [compile_int(c) for c in box.coordinates]
        self.index = [compile_int(i) for i in box.index]
        self.inside = [compile_int(i) for i in box.inside]
        self.first = compile_int(box.first)
        # Position of each element of the box along each dimension, in the order in which they lie in shared memory.
        numbers = np.arange(seen.elements)
        self.places: list[npt.NDArray[np.int64]] = []
        for side in seen.box:
            self.places.append(numbers % side)
            numbers = numbers // side
        self.strides = (1, *seen.strides)

    def __call__(self, env: Env) -> None:
        box, seen = self.box, self.box.map
        inside = np.ones(seen.elements, np.bool_)
        far = np.zeros(seen.elements, np.int64)
        for at, extent, stride in zip(self._there(env), seen.extents, self.strides, strict=True):
            inside &= (at >= 0) & (at < extent)
            far += at * stride
        index = [i(env) for i in self.index]
        first = self.first(env)
        for number in range(box.blocks):
            near = self._near(index if box.blocks == 1 else [first + number * box.apart, *index[1:]])
            if box.store:
                self.there.store(far[inside], self.here.load(near[inside], None), None)
            else:
                values = np.zeros(seen.elements, self.here.data.dtype)
                values[inside] = self.there.load(far[inside], None)
                self.here.store(near, values, None)

    def _there(self, env: Env) -> list[npt.NDArray[np.int64]]:
        """Where each element of the box is along each dimension."""
        first, walk = [c(env) for c in self.coordinates], self.box.map.walk
        if walk is None:
            return [place + c for place, c in zip(self.places, first, strict=True)]
        channels, pixels = self.places
        extents = self.box.map.extents[1:-1]
        at = [channels + first[0]]
        number, below = pixels, 1  # of the place from which the walk began
        for d, (low, step) in enumerate(zip(walk.lower, walk.steps, strict=True)):
            begins = first[d + 1] - low
            if begins % step or not 0 <= begins <= extents[d] - 1 + walk.upper[d] - low:
                raise KernelError(f"pixels begin at {first[d + 1]} along dimension {d + 1}: no place of the walk")
            number = number + begins // step * below
            below *= (extents[d] - 1 + walk.upper[d] - low) // step + 1
        for d, (low, step) in enumerate(zip(walk.lower, walk.steps, strict=True)):
            places = (extents[d] - 1 + walk.upper[d] - low) // step + 1
            at.append(low + number % places * step + self.inside[d](env))
            number = number // places
        return [*at, number + first[-1]]

    def _near(self, index: list[int]) -> Any:
        """Flat element numbers of the box in its shared buffer."""
        first = self.here.flat(index, None)
        if first + self.box.map.elements > self.here.data.size:
            raise KernelError(f"a box at {self.here.element(first)} reaches past {self.here.buffer.name}")
        bits = self.here.buffer.dtype.bits
        if first * bits % (LEAST_BYTES * 8):
            raise KernelError(f"a box begins at {self.here.element(first)}, no multiple of {LEAST_BYTES} bytes")
        return swizzled(first + np.arange(self.box.map.elements), self.box.map.swizzle, bits)


def swizzled(flat: Any, swizzle: int, bits: int) -> Any:
    """Where element number `flat` of a buffer (`bits` an element) lies once the address is turned."""
    address, mask = flat * bits // 8, (1 << SWIZZLED_BITS[swizzle]) - 1
    swizzled = address ^ (((address >> 7) & mask) << 4)
    return swizzled * 8 // bits + flat * bits % 8 // bits
