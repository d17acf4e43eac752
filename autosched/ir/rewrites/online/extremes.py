"""Between which expressions a bound lies while a row goes through a tile: `min(2 i + 17, 33 - i)` is greatest
inside."""

from __future__ import annotations

from autosched.logic import Binary, Const, Int, Where, affine, free_vars, maximum, minimum
from autosched.logic.walk import substitute_int


def extremes(node: Int, name: str, first: Int, last: Int) -> tuple[Int, Int] | None:
    """Expressions without `name` that `node` is not below, and not above, while that goes from `first` to `last`; these
    are reached where `node` is a sum, and may not be where it is several. None for what has no such bounds."""
    if name not in free_vars(node):
        return node, node
    form = affine(node)
    if form is not None:
        ends = substitute_int(node, {name: first}), substitute_int(node, {name: last})
        return ends if form.coefficient(name) > 0 else ends[::-1]
    match node:
        case Binary(op, left, right):
            pass
        case Where(_, left, right):
            op = "either"
        case _:
            return None
    of_left, of_right = extremes(left, name, first, last), extremes(right, name, first, last)
    if of_left is None or of_right is None:
        return None
    (a, b), (c, d) = of_left, of_right
    match op:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*" if isinstance(right, Const):
            return (a * right, b * right) if right.value >= 0 else (b * right, a * right)
        case "//" if isinstance(right, Const) and right.value > 0:
            return a // right, b // right
        case "%" if isinstance(right, Const) and right.value > 0:
            return Const(0), Const(right.value - 1)
        case "min":
            return minimum(a, c), minimum(b, d)
        case "max":
            return maximum(a, c), maximum(b, d)
        case "either":
            return minimum(a, c), maximum(b, d)
    return None
