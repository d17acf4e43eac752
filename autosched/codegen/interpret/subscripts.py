"""Subscripts and conditions compiled once into closures over the loop variables; where the lanes of an access lie."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from autosched.codegen.interpret.storage import Storage
from autosched.codegen.tree.kernel import Lane
from autosched.logic import Bool, Int, affine, evaluate, free_vars
from autosched.logic.expr import ARITHMETIC, COMPARE, And, Binary, Compare
from autosched.logic.walk import substitute_int

Env: TypeAlias = dict[str, Any]
Mask: TypeAlias = "npt.NDArray[np.bool_] | None"
"""The lanes that are evaluated; None is all of them."""
Evaluator: TypeAlias = Callable[[Env, Mask], Any]
WIDTH = ""
"""The key under which an Env holds the number of lanes; no loop variable can have this name."""


def compile_int(node: Int) -> Callable[[Env], Any]:
    """`node` as a function of the loop variables (ints) and the lane variable (an int64 array)."""
    form = affine(node)
    if form is None:
        return _compile_parts(node)
    return _sum(form.constant, tuple(form.coefficients.items()))


def _sum(constant: int, terms: tuple[tuple[str, int], ...]) -> Callable[[Env], Any]:
    """A constant and variables times factors. Most subscripts have no term or one, and a loop over them takes longer
    than they do."""
    if not terms:
        return lambda env: constant
    (name, factor), *others = terms
    if not others:
        if factor == 1:
            return (lambda env: env[name] + constant) if constant else operator.itemgetter(name)
        return (lambda env: env[name] * factor + constant) if constant else (lambda env: env[name] * factor)
    if len(others) == 1:
        ((second, times),) = others
        return lambda env: env[name] * factor + env[second] * times + constant

    def run(env: Env) -> Any:
        total: Any = constant
        for name, factor in terms:
            total = total + env[name] * factor
        return total

    return run


def _compile_parts(node: Int) -> Callable[[Env], Any]:
    """A formula that is not affine, its affine parts compiled."""
    if not isinstance(node, Binary) or node.op not in ARITHMETIC:
        return lambda env: evaluate(node, env)
    combine, left, right = ARITHMETIC[node.op], compile_int(node.left), compile_int(node.right)
    return lambda env: combine(left(env), right(env))


def compile_place(index: Sequence[Int], storage: Storage, lane: Lane | None) -> Evaluator:
    """The element numbers of an access as a function of variables and mask, as `Storage.flat` has them; lanes that
    stand evenly apart are a slice.

    Such lanes are inside where the first and the last are, and one sum has them all.
    """
    general = [compile_int(i) for i in index]
    var, lanes = (lane.var, np.arange(lane.width, dtype=np.int64)) if lane else ("", np.zeros(1, np.int64))

    def looked_at(env: Env, mask: Mask) -> Any:
        known = env if lane is None else env | {var: lanes}
        return storage.flat([i(known) for i in general], mask)

    steps = [s for s in (_step(i, var) for i in index) if s is not None]
    if len(steps) < len(index):
        return looked_at
    last = len(lanes) - 1
    dimensions: list[tuple[Callable[[Env], Any], int, int, int]] = []
    fixed = 0
    for i, step, extent, stride in zip(index, steps, storage.buffer.shape, storage.strides, strict=True):
        first = substitute_int(i, {var: 0}) if step else i
        least, end = max(0, -step * last), extent - max(0, step * last)
        form = affine(first)
        if form is not None and not form.coefficients and least <= form.constant < end:
            fixed += form.constant * stride  # looked at once for all times
        else:
            dimensions.append((compile_int(first), least, end, stride))
    apart = sum(step * stride for step, stride in zip(steps, storage.strides, strict=True))
    moves, length, alike = lanes * apart, apart * last + 1, not any(steps)

    def run(env: Env, mask: Mask) -> Any:
        start = fixed
        for first, least, end, stride in dimensions:
            at = first(env)
            if at < least or at >= end:
                return looked_at(env, mask)  # says where, unless the lanes outside are masked off
            start += at * stride
        if mask is not None:
            return np.where(mask, start + moves, 0)
        if alike:
            return start
        return slice(start, start + length, apart) if apart > 0 else start + moves

    return run


def _step(index: Int, lane: str) -> int | None:
    """How far apart an index is for neighbouring lanes; None where not all are evenly apart."""
    if lane not in free_vars(index):
        return 0
    form = affine(index)
    return None if form is None else form.coefficient(lane)


def compile_bool(node: Bool) -> Callable[[Env], Any]:
    """`node` as `compile_int` has numbers: a bool, or an array of them where it reads the lane variable."""
    if isinstance(node, Compare):
        compare: Callable[[Any, Any], Any] = COMPARE[node.op]
        left, right = compile_int(node.left), compile_int(node.right)
        return lambda env: compare(left(env), right(env))
    if not isinstance(node, And):
        return lambda env: evaluate(node, env)
    parts = [compile_bool(p) for p in node.parts]

    def run(env: Env) -> Any:
        result: Any = True
        for part in parts:
            found = part(env)
            if found is False:
                return False
            if found is not True:
                result = found if result is True else np.logical_and(result, found)
        return result

    return run
