"""Element-order and fragment expressions (`t//4 + 8*(v%2)`) to `logic`, by way of `ast`; nothing is evaluated."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache
from math import prod

import numpy as np

from autosched.errors import Location, SpecError
from autosched.ir.map import Map
from autosched.logic import Const, Int, Var
from autosched.logic.expr import binary

MAX_TEXT = 400
_ACCEPTED = "accepted: + - * // % >> & over {names} and whole numbers; divisors, shifts and masks are constants"


def parse_expression(text: str, names: tuple[str, ...], location: Location) -> Int:
    """The integer expression `text` over `names`; SpecError for anything else.

    `x >> 2` reads as `x // 4` and `x & 7` as `x % 8`: the values are never negative.
    """
    hint = _ACCEPTED.format(names=" ".join(names))
    if len(text) > MAX_TEXT:
        raise SpecError(f"an expression of {len(text)} characters; at most {MAX_TEXT}", location=location)
    try:
        return _parsed(text, names)
    except _Bad as bad:
        raise SpecError(f"{text!r}: {bad}", hint=hint, location=location) from None
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise SpecError(f"{text!r} is not an expression", hint=hint, location=location) from None


@lru_cache(maxsize=4096)  # many instructions lay their operands out alike
def _parsed(text: str, names: tuple[str, ...]) -> Int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's own opinion of odd literals, as `1if`
        tree = ast.parse(text.strip(), mode="eval")
    return _read(tree.body, names)


class _Bad(Exception):
    pass


def _read(node: ast.expr, names: tuple[str, ...]) -> Int:
    match node:
        case ast.Constant(int() as value) if not isinstance(value, bool) and value < 2**31:
            return Const(value)
        case ast.Name(name):
            if name not in names:
                raise _Bad(f"unknown name {name!r}")
            return Var(name)
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() as op, right):
            sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}[type(op)]
            return binary(sign, _read(left, names), _read(right, names))
        case ast.BinOp(left, ast.FloorDiv() | ast.Mod() as op, right):
            return binary("//" if isinstance(op, ast.FloorDiv) else "%", _read(left, names), _constant(right, names, 1))
        case ast.BinOp(left, ast.RShift(), right):
            return binary("//", _read(left, names), Const(2 ** _constant(right, names, 0, 30).value))
        case ast.BinOp(left, ast.BitAnd(), right):
            mask = _constant(right, names, 1).value
            if mask & (mask + 1):
                raise _Bad(f"the mask {mask} is not of the form 2**n - 1")
            return binary("%", _read(left, names), Const(mask + 1))
    raise _Bad(f"{ast.unparse(node)!r} is not accepted here")


def _constant(node: ast.expr, names: tuple[str, ...], low: int, high: int = 2**31) -> Const:
    value = _read(node, names)
    if not isinstance(value, Const) or not low <= value.value <= high:
        raise _Bad(f"{ast.unparse(node)!r} must be a whole number from {low}")
    return value


@lru_cache(maxsize=4096)
def fault_of_bijection(relation: Map, shape: tuple[int, ...], copies: int = 1) -> str | None:
    """Why the map does not take its domain one to one onto the box `shape` (None: it does), by trying every point; with
    `copies`, why it does not take so many points to each element.

    Exhaustion is what loading uses, as it is fast; `check` proves the same with z3.
    """
    image, _ = relation.points()
    flat = image.reshape(len(shape), -1)
    names = [v for v, _ in relation.domain]
    grid = np.indices([n for _, n in relation.domain]).reshape(len(names), -1)

    def point(number: int) -> str:
        return ", ".join(f"{n}={int(grid[d, number])}" for d, n in enumerate(names))

    for d, extent in enumerate(shape):
        outside = np.flatnonzero((flat[d] < 0) | (flat[d] >= extent))
        if outside.size:
            at = int(outside[0])
            return f"at {point(at)} coordinate {d} is {int(flat[d, at])}, outside 0..{extent - 1}"
    numbers = np.asarray(np.ravel_multi_index(tuple(flat), shape))
    if copies > 1:
        held = np.bincount(numbers, minlength=prod(shape))
        wrong = np.flatnonzero(held != copies)
        if not wrong.size:
            return None
        element = ", ".join(str(int(c)) for c in np.unravel_index(int(wrong[0]), shape))
        return f"element [{element}] is held {int(held[wrong[0]])} times, not {copies}"
    order = np.asarray(np.argsort(numbers, kind="stable"))
    same = np.flatnonzero(np.diff(numbers[order]) == 0).tolist()
    if same:
        first, second = (int(n) for n in order[same[0] : same[0] + 2])
        element = ", ".join(str(int(c)) for c in flat[:, first])
        return f"{point(first)} and {point(second)} both hold element [{element}]"
    total = prod(shape)
    return None if numbers.size == total else f"it reaches {numbers.size} of {total} elements"
