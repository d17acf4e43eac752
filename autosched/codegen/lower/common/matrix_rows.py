"""A register that holds a matrix, row by row: what stands at element `e` of row `er`."""

from __future__ import annotations

from collections.abc import Mapping

from autosched.codegen.analysis.access import split_divisible
from autosched.codegen.lower.common.positions import LANE
from autosched.logic import Binary, Const, Int, Var, interval
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps.common.layout import filled, rows_held

ROW = "er"
"""The variable of loops over rows: none of a nest's is called so."""


def row_lanes(nest: Nest, operand: str) -> dict[str, Int]:
    """For each intrinsic axis the operand has, its coordinate at element `e` of row `er`."""
    assert nest.intrinsic.matrices is not None
    width = filled(nest, operand)
    ranges = {ROW: (0, rows_held(nest, operand) - 1), LANE: (0, width - 1)}
    lanes = nest.lane_coordinates(operand, Var(ROW) * width + Var(LANE))
    return {name: _Folding(ranges).fold(coordinate) for name, coordinate in lanes.items()}


class _Folding:
    """Quotients and remainders by constants, where the range of what is divided decides them.

    >>> str(_Folding({"r": (0, 15), "e": (0, 63)}).fold((Var("r") * 64 + Var("e")) // 4 % 16))
    'e // 4'
    """

    def __init__(self, ranges: Mapping[str, tuple[int, int]]) -> None:
        self.ranges = dict(ranges)
        self.parts: dict[str, Int] = {}

    def fold(self, node: Int) -> Int:
        return self._back(self._visit(node))

    def _visit(self, node: Int) -> Int:
        """The node as a sum over variables, some of which stand for `parts`."""
        if not isinstance(node, Binary):
            return node
        left, right = self._visit(node.left), self._visit(node.right)
        if node.op not in ("//", "%") or not isinstance(right, Const):
            return substitute_int(Binary(node.op, left, right), {})
        divisor = right.value
        split = split_divisible(left, divisor)
        if split is None:
            return self._part(Binary(node.op, left, right))
        whole, rest = split
        low, high = interval(rest, self.ranges)
        if low >= 0 and high < divisor:
            return whole if node.op == "//" else rest
        if node.op == "//":
            return whole + self._part(rest // divisor)
        return self._part(rest % divisor)

    def _part(self, node: Int) -> Int:
        name = f"@{len(self.parts)}"
        self.ranges[name] = interval(node, self.ranges)
        self.parts[name] = node
        return Var(name)

    def _back(self, node: Int) -> Int:
        for name in reversed(self.parts):
            node = substitute_int(node, {name: self.parts[name]})
        return node
