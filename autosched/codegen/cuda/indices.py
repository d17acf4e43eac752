"""Index expressions as CUDA C++: simplified under the ranges of the loops around them, in 32 bits or in 64."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autosched.codegen.c.indices import IndexPrinter
from autosched.codegen.cuda.simplify import Simplifier
from autosched.logic import Binary, Bool, Int

INDEX_TYPE = "int"


class CudaIndices(IndexPrinter):
    """`simplifier` answers the one for where the text stands."""

    def __init__(
        self,
        names: Mapping[str, str],
        ranges: Mapping[str, tuple[int, int]],
        use: Callable[[str], None],
        simplifier: Callable[[], Simplifier],
    ) -> None:
        super().__init__(names, ranges, use)
        self.simplifier = simplifier

    def number(self, node: Int, level: int = 0) -> str:
        text, own = self._int(self.simplifier().number(node))
        return f"({text})" if own < level else text

    def condition(self, node: Bool) -> str:
        text = self._bool(self.simplifier().condition(node), 0)
        return {"1": "true", "0": "false"}.get(text, text)

    def _int(self, node: Int) -> tuple[str, int]:
        match node:
            case Binary("^", left, right):
                return f"({self.number(left, 9)} ^ {self.number(right, 9)})", 9
            case Binary("min" | "max" as op, left, right):
                return f"{op}({self.number(left)}, {self.number(right)})", 9
            case Binary("//" | "%" as op, left, right) if not self._natural(left, right):
                name = "floor_div" if op == "//" else "floor_mod"
                self.use(name)
                return f"{name}({self.number(left)}, {self.number(right)})", 9
        return super()._int(node)

    def _natural(self, left: Int, right: Int) -> bool:
        """Whether C's division, which truncates, is floor division here."""
        bounds = [self.simplifier().bounds(self.simplifier().sum(side)) for side in (left, right)]
        return bounds[0] is not None and bounds[1] is not None and bounds[0][0] >= 0 and bounds[1][0] > 0


class Wide(dict[str, str]):
    """Variables spelled in 64 bits: `(int64_t)i`."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self.narrow = names

    def __missing__(self, key: str) -> str:
        return f"(int64_t){self.narrow[key]}"
