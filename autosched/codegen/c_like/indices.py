"""Addresses, bounds and conditions as C expressions of type `ptrdiff_t`.

Floor division prints as `/` where the ranges of the loops show that nothing is negative, else as a helper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from autosched.logic import And, Binary, Bool, Compare, Const, Int, Not, Or, Truth, Var, Where, interval

_LEVEL = {"+": 4, "-": 4, "*": 5, "//": 5, "%": 5}
_PRIMARY = 9
INDEX_TYPE = "ptrdiff_t"


class IndexPrinter:
    """Prints `logic` expressions; `names` spells variables, `ranges` holds their inclusive bounds where known, and
    `use` is told each helper function that the text calls."""

    floor_helpers: ClassVar[Mapping[str, str]] = {"//": "floor_div_index", "%": "floor_mod_index"}

    def __init__(
        self, names: Mapping[str, str], ranges: Mapping[str, tuple[int, int]], use: Callable[[str], None]
    ) -> None:
        self.names = names
        self.ranges = ranges
        self.use = use

    def number(self, node: Int, level: int = 0) -> str:
        """`node`, in parentheses where its own operator binds looser than `level` (4: a sum's part, 5: a factor)."""
        text, own = self._int(node)
        return f"({text})" if own < level else text

    def condition(self, node: Bool) -> str:
        """`node` as an `if` condition."""
        return self._bool(node, 0)

    def choice(self, node: Bool) -> str:
        """`node` to stand before `?`."""
        text = self.condition(node)
        return f"({text})" if " " in text else text

    def _int(self, node: Int) -> tuple[str, int]:
        match node:
            case Const(value):
                return str(value), _PRIMARY if value >= 0 else 4
            case Var(name):
                return self.names[name], _PRIMARY
            case Binary("min" | "max" as op, left, right):
                self.use(f"{op}_index")
                return f"{op}_index({self.number(left)}, {self.number(right)})", _PRIMARY
            case Binary("//" | "%" as op, left, right) if not self._natural(left, right):
                name = self.floor_helpers[op]
                self.use(name)
                return f"{name}({self.number(left)}, {self.number(right)})", _PRIMARY
            case Binary(op, left, right):
                level = _LEVEL[op]
                symbol = "/" if op == "//" else op
                return f"{self.number(left, level)} {symbol} {self.number(right, level + 1)}", level
            case Where(condition, then, other):
                return f"{self._bool(condition, 3)} ? {self.number(then, 3)} : {self.number(other, 3)}", 0
        raise TypeError(f"not an integer expression: {node!r}")

    def _natural(self, left: Int, right: Int) -> bool:
        """Whether C's division, which truncates, is floor division here."""
        try:
            return interval(left, self.ranges)[0] >= 0 and interval(right, self.ranges)[0] > 0
        except (KeyError, ValueError):
            return False

    def _bool(self, node: Bool, level: int) -> str:
        """Levels: 0 or, 1 and, 2 a comparison, 3 anything tighter."""
        match node:
            case Truth(value):
                return "1" if value else "0"
            case Compare(op, left, right):
                return _wrap(f"{self.number(left, 4)} {op} {self.number(right, 4)}", 2, level)
            case And(parts):
                return _wrap(" && ".join(self._bool(p, 2) for p in parts), 1, level)
            case Or(parts):
                # A conjunction inside gets parentheses too: compilers warn without them.
                return _wrap(" || ".join(self._bool(p, 2) for p in parts), 0, level)
            case Not(part):
                return f"!({self._bool(part, 0)})"
        raise TypeError(f"not a condition: {node!r}")


def _wrap(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text


def loop_range(lower: Int, upper: Int, step: int, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    """Inclusive bounds of a loop variable, or None where they are not known."""
    try:
        low, high = interval(lower, ranges)[0], interval(upper, ranges)[1] - 1
    except (KeyError, ValueError):
        return None
    if isinstance(lower, Const) and isinstance(upper, Const) and high >= low:
        high = low + (high - low) // step * step
    return low, max(low, high)
