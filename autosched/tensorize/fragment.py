"""`Fragment`: a matrix that threads hold together, and which of them has which element."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autosched.logic import Int, evaluate
from autosched.tensorize.intrinsic import Operand

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Fragment:
    """An operand of a known fragment map, as `lanes` threads hold it.

    >>> from autosched.tensorize.spec.catalogue import Catalogue
    >>> wide = Catalogue.builtin()["cuda/wgmma.m64n96k16.f16.f32"]
    >>> Fragment(wide.accumulator, 128).piece.shape
    (64, 8)
    """

    operand: Operand
    lanes: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.operand.shape

    @property
    def elements(self) -> int:
        return self.operand.elements

    @property
    def coordinates(self) -> tuple[Int, ...]:
        """Of the element that is number `v` of lane `t`'s."""
        assert self.operand.fragment is not None
        return self.operand.fragment.coordinates

    @cached_property
    def owners(self) -> tuple[Numbers, Numbers]:
        """The lane that holds each element, by its row-major number, and its number among that lane's; of several lanes
        it is one."""
        t, v, number = self._numbers
        lane, own = np.full(self.elements, -1), np.full(self.elements, -1)
        lane[number], own[number] = t, v
        return lane, own

    @cached_property
    def _numbers(self) -> tuple[Numbers, Numbers, Numbers]:
        """Of each lane's elements: the lane, the number among its own, and the row-major number."""
        t, v = np.meshgrid(np.arange(self.lanes), np.arange(self.operand.lane_elements(self.lanes)), indexing="ij")
        number = np.zeros_like(t)
        for coordinate, extent in zip(self.coordinates, self.shape, strict=True):
            number = number * extent + np.asarray(evaluate(coordinate, {"t": t, "v": v}))
        return t, v, number

    @cached_property
    def piece(self) -> Fragment:
        """The narrowest run of columns whose map comes again in all others: accumulators of different widths are made
        of the same pieces.

        >>> from autosched.tensorize.spec.catalogue import Catalogue
        >>> wide = Catalogue.builtin()["cuda/wgmma.m64n96k16.f16.f32"]
        >>> Fragment(wide.accumulator, 128).piece.shape
        (64, 8)
        """
        if len(self.shape) != 2:
            return self
        rows, columns = self.shape
        _, v, number = self._numbers
        row, column = np.divmod(number, columns)
        for wide in (n for n in range(1, columns) if columns % n == 0 and rows * n % self.lanes == 0):
            own = rows * wide // self.lanes
            first_row, first_column = (np.take(x, np.arange(v.shape[1]) % own, axis=1) for x in (row, column))
            again = (row == first_row) & (column == first_column + v // own * wide)
            if again.all() and (column[:, :own] < wide).all():
                return Fragment(replace(self.operand, shape=(rows, wide)), self.lanes)
        return self

