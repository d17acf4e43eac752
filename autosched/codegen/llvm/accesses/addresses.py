"""Addresses of elements: flat offsets as sums, pointers hoisted out of the loops that do not move them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from autosched.codegen.analysis.access import offset_multiple, strides
from autosched.codegen.llvm.accesses.indexing import Linear
from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.llvm.lanes import LaneIndexing
from autosched.codegen.tree.kernel import Buffer, Lane
from autosched.ir.value import Index
from autosched.logic import Affine, Int, affine, merge_dimensions


class Addresses(LaneIndexing):
    """Adds buffers: offsets, pointers and what is known of their alignment."""

    def __init__(self, emitter: Emitter) -> None:
        super().__init__(emitter)
        self._offsets: dict[Any, Any] = {}

    def offset(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None) -> Linear:
        """The flat element offset of the subscripts that are axes' formulas, at lane 0."""
        key = (id(index), buffer.name, lane)
        known = self._offsets.get(key)
        if known is None:
            known = self._offsets[key] = index, _flat(index, buffer.shape, lane.var if lane is not None else "")
        if known[1] is not None:
            return self._bind(known[1])
        result = Linear(0)
        parts, shape = merge_dimensions(index, buffer.shape)
        for part, stride in zip(parts, strides(shape), strict=True):
            if isinstance(part, Int):
                result = result.plus(self.at_lane(part, lane), stride)
        return result

    def inside(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None) -> bool:
        """Whether the element at lane 0 is known to lie in the buffer: it may be read though no lane wants it."""
        if not all(isinstance(part, Int) for part in index):
            return False
        bounds = self.range_of(self.offset(buffer, index, lane))
        return bounds is not None and bounds[0] >= 0 and bounds[1] < buffer.elements

    def pointer(self, base: str, offset: Linear, size: int) -> str:
        """`base + offset` elements of `size` bytes: the moving part at the head of each loop, the rest a constant."""
        pointer = base
        if offset.terms:
            here = self.out.caches[-1]  # an unrolled body asks for the same sums again and again
            key = base, offset.terms, size
            pointer = here.get(key) or here.setdefault(key, self._moving(base, offset.terms, size))
        if offset.constant:
            pointer = self.out.let(f"getelementptr i8, ptr {pointer}, i64 {offset.constant * size}", "q")
        return pointer

    def _moving(self, base: str, terms: tuple[tuple[str, int], ...], size: int) -> str:
        """`base` and these terms, in elements of `size` bytes."""
        pointer = base
        groups: dict[int, list[tuple[str, int]]] = {}
        for name, c in terms:
            groups.setdefault(self.out.depth.get(name, 0), []).append((name, c * size))
        for depth in sorted(groups):
            step = self.operand(Linear(0, tuple(groups[depth])))
            text = f"getelementptr i8, ptr {pointer}, i64 {step}"
            pointer = self.out.pure(text, self.out.depth_of(pointer, step), text, "p")
        return pointer

    def alignment(self, buffer: Buffer, offset: Linear, size: int) -> int:
        """Bytes of provable alignment: workspaces and packed buffers start on 64 bytes, arrays on an element."""
        if buffer.scope not in ("workspace", "packed"):
            return size
        multiple = offset_multiple(dict(offset.terms), offset.constant) * size
        return next(a for a in (64, 32, 16, 8, 4, 2, 1) if multiple % a == 0) if multiple else 64


@lru_cache(maxsize=1 << 12)  # kernels of one plan have most of their subscripts in common
def _flat(index: tuple[Index, ...], shape: tuple[int, ...], lane: str) -> Affine | None:
    """The flat element offset at lane 0 as a sum over axes, None where it is none."""
    parts, merged = merge_dimensions(index, shape)
    total = Affine()
    for part, stride in zip(parts, strides(merged), strict=True):
        form = affine(part) if isinstance(part, Int) else None
        if form is None:
            return None
        total = total.plus(form, stride)
    return Affine({v: c for v, c in total.coefficients.items() if v != lane}, total.constant)
