"""What the ranges of loops say: conditions less that, and which elements lie inside their buffer."""

from __future__ import annotations

from collections.abc import Mapping

from autosched.ir.value import Index, is_plain
from autosched.logic import FALSE, TRUE, And, Bool, Compare, Not, Or, Truth, all_of, any_of, interval


def known(condition: Bool, ranges: Mapping[str, tuple[int, int]]) -> Bool:
    """`condition` where every variable in `ranges` lies within its inclusive bounds.

    >>> from autosched.logic import Var
    >>> x = Var("x")
    >>> print(known(all_of(x + 1 > 0, x * 8 + 3 < 56), {"x": (0, 7)}), known(x < 0, {"x": (0, 6)}))
    x * 8 + 3 < 56 False
    """
    match condition:
        case And(parts):
            return all_of(*(known(p, ranges) for p in parts))
        case Or(parts):
            return any_of(*(known(p, ranges) for p in parts))
        case Not(part):
            inner = known(part, ranges)
            return FALSE if inner == TRUE else TRUE if inner == FALSE else Not(inner)
        case Compare():
            return _compared(condition, ranges)
    return condition


def inside(index: tuple[Index, ...], shape: tuple[int, ...], ranges: Mapping[str, tuple[int, int]]) -> bool:
    """Whether each subscript is known to be at least 0 and less than the shape's number; data decide on none.

    >>> from autosched.logic import Var
    >>> x, e = Var("x"), Var("e")
    >>> inside((x, x * 8 + e), (4, 32), {"x": (0, 3), "e": (0, 7)}), inside((x + 1,), (4,), {"x": (0, 3)})
    (True, False)
    """
    if not is_plain(index):
        return False
    try:
        found = [interval(part, ranges) for part in index]
    except (KeyError, ValueError):
        return False
    return all(low >= 0 and high < extent for (low, high), extent in zip(found, shape, strict=True))


def _compared(comparison: Compare, ranges: Mapping[str, tuple[int, int]]) -> Bool:
    try:
        answer = decided(comparison.op, interval(comparison.left - comparison.right, ranges))
    except (KeyError, ValueError):
        return comparison
    return comparison if answer is None else Truth(answer)


def decided(op: str, bounds: tuple[int, int] | None) -> bool | None:
    """Whether `x op 0` holds for every (True) or no (False) x in the inclusive bounds.

    >>> decided("<", (-3, -1)), decided("!=", (1, 4)), decided("<=", (0, 1))
    (True, True, None)
    """
    if bounds is None:
        return None
    low, high = bounds
    always, never = {
        "<": (high < 0, low >= 0),
        "<=": (high <= 0, low > 0),
        ">": (low > 0, high <= 0),
        ">=": (low >= 0, high < 0),
        "==": (low == high == 0, low > 0 or high < 0),
        "!=": (low > 0 or high < 0, low == high == 0),
    }[op]
    return True if always else False if never else None
