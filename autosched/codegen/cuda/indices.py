"""Index expressions as CUDA C++: simplified under the ranges of the loops around them, in 32 bits, or in 64 where those
ranges leave 32."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autosched.codegen.c_like.indices import IndexPrinter
from autosched.codegen.cuda.simplify import Simplifier
from autosched.logic import Binary, Bool, Const, Int, Var

LEAST, MOST = -(2**31), 2**31 - 1
"""Of `int`."""


class CudaIndices(IndexPrinter):
    """`simplifier` answers the one for where the text stands; `wide` prints what 32 bits may not hold."""

    floor_helpers = {"//": "floor_div", "%": "floor_mod"}

    def __init__(
        self,
        names: Mapping[str, str],
        ranges: Mapping[str, tuple[int, int]],
        use: Callable[[str], None],
        simplifier: Callable[[], Simplifier],
        wide: CudaIndices | None = None,
    ) -> None:
        super().__init__(names, ranges, use)
        self.simplifier, self.wide = simplifier, wide
        self.round: Callable[[Int, int], str | None] | None = None  # remainders that are counted on with a loop

    def number(self, node: Int, level: int = 0) -> str:
        short = self.simplifier().number(node)
        if self.wide is not None and not self._fits(short):
            return self.wide.number(short, level)
        return super().number(short, level)

    def _fits(self, node: Int) -> bool:
        if isinstance(node, Var):
            return True
        bounds = self.simplifier().bounds(self.simplifier().sum(node))
        return bounds is None or (bounds[0] >= LEAST and bounds[1] <= MOST)

    def condition(self, node: Bool) -> str:
        text = self._bool(self.simplifier().condition(node), 0)
        return {"1": "true", "0": "false"}.get(text, text)

    def _int(self, node: Int) -> tuple[str, int]:
        match node:
            case Binary("^", left, right):
                return f"({self.number(left, 9)} ^ {self.number(right, 9)})", 9
            case Binary("min" | "max" as op, left, right):
                return f"{op}({self._side(left)}, {self._side(right)})", 9
            case Binary("%", left, Const(size)) if self.round is not None and (slot := self.round(left, size)):
                return slot, 9
        return super()._int(node)

    def _side(self, node: Int) -> str:
        """Of a minimum, whose sides have one type."""
        wide = isinstance(self.names, Wide)
        return f"INT64_C({node.value})" if isinstance(node, Const) and wide else self.number(node)

    def _natural(self, left: Int, right: Int) -> bool:
        bounds = [self.simplifier().bounds(self.simplifier().sum(side)) for side in (left, right)]
        return bounds[0] is not None and bounds[1] is not None and bounds[0][0] >= 0 and bounds[1][0] > 0


class Wide(dict[str, str]):
    """Variables spelled in 64 bits: `(int64_t)i`."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self.narrow = names

    def __missing__(self, key: str) -> str:
        return f"(int64_t){self.narrow[key]}"
