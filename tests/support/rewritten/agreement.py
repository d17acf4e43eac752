"""Whether a rewritten program agrees with the one it came from: over the reals, and in numbers.

Over the reals: in f64, by no more than the program itself moves with its inputs. In numbers: the same results are no
number or infinite, and sums are as close to exact arithmetic as the certificate says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from support.rewritten.certified import Evaluation, is_simple, opened
from support.rewritten.oracle import run
from support.rewritten.rows_of_kinds import Arrays

from autosched import ir
from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.verdict import RewriteVerdict

FIRST_ORDER = 0.05
"""Bounds are to first order in u x: greater errors of an exponent are checked by nobody."""


@dataclass(frozen=True)
class Options:
    """How the one pass is asked for."""

    block: int
    parts: int
    tile: int | None

    @classmethod
    def drawn(cls, seed: int) -> Options:
        r = Random(seed)
        tile = r.choice([None, None, None, 1, 2, 5])
        return cls(r.choice([1, 2, 3, 8, 32]), r.choice([1, 1, 2, 3]), tile)


def in_f64(given: Program) -> Program:
    """The program in f64, its numbers as its own type has them."""
    text = str(given)
    narrow = np.float16 if re.search(r"X: f16", text) else np.float64 if re.search(r"X: f64", text) else np.float32
    with np.errstate(all="ignore"):
        text = re.sub(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)", lambda m: repr(float(narrow(m[0]))), text)
    return ir.parse(re.sub(r"\b(f32|bf16|f16)\b", "f64", text))


def wrong_reals(before: Program, v: RewriteVerdict, data: Arrays, c: float) -> str:
    """In f64: by how much more than the program itself moves with its inputs."""
    assert v.after is not None
    double, other = in_f64(before), in_f64(v.after)
    exact = {n: a.astype(np.float64) if before.tensors[n].dtype.is_float else a for n, a in data.items()}
    given = {"c": np.float64(c)}
    expected, got = run(double, exact, given), run(other, exact, given)
    if v.numerics == "real" and not all(np.isfinite(expected[n]).all() for n in before.written):
        return ""  # log(exp(x)) is x also where exp(x) is 0
    rng = np.random.default_rng(0)
    moved = {n: a * (1 + rng.uniform(-1e-12, 1e-12, a.shape)) if a.dtype == float else a for n, a in exact.items()}
    near = run(double, moved, given)
    for name in sorted(set(before.written) & set(got)):
        a, b, m = got[name], expected[name], near[name]
        with np.errstate(all="ignore"):
            there = np.isfinite(b) & np.isfinite(m)
            if v.numerics == "real":
                there &= np.isfinite(a)
            elif not np.array_equal(np.isnan(a), np.isnan(b)):
                return f"{name} is {a}, not {b}"
            size = np.abs(b[there]).max(initial=1.0)
            allowed = 1e-9 * size + 1e4 * np.abs(m - b).max(initial=0.0, where=there)
            if (np.abs(a - b) > allowed)[there].any():
                return f"{name} is {a}, not {b}, allowed {allowed}, c = {c}"
    return ""


def wrong_numbers(before: Program, v: RewriteVerdict, how: Options, data: Arrays, c: float) -> str:
    """In the program's types: what is no number, and what is farther from exact arithmetic than is certified."""
    assert v.after is not None
    given = {n: s.dtype.numpy(c) for n, s in before.scalars.items()}
    expected, got = run(before, data, given), run(v.after, data, given)
    hidden = {t for b in v.because for t in re.findall(r"elements of (\w+) that the mask", b)}
    if hidden & {n for n, a in data.items() if a.dtype.kind == "f" and not np.isfinite(a).all()}:
        return ""
    members = {s.assign.tensor for s in before.stages if s.name in v.stages}
    same = all(_same(got[n], expected[n]) for n in members & set(got))
    for name in sorted(set(before.written) & set(got) & (set(before.written) if same else members)):
        a, b = (np.asarray(x[name], np.float64) for x in (got, expected))
        if v.numerics != "bitwise":
            b = np.where(exact_where_the_program_overflows(before, name, data, given, a, b), a, b)
        if not np.array_equal(np.isnan(a), np.isnan(b)):
            return f"{name} is no number elsewhere: {a}, not {b}, c = {c}"
        if not np.array_equal(np.isinf(a), np.isinf(b)) or not np.array_equal(a[np.isinf(a)], b[np.isinf(a)]):
            return f"{name} is infinite elsewhere: {a}, not {b}, c = {c}"
        if v.numerics == "bitwise" and not np.array_equal(a, b, equal_nan=True):
            return f"{name} is {a}, not {b}, c = {c}"
    if v.error is None or not is_simple(before):
        return ""
    for stage in before.stages:
        if stage.name in v.stages and stage.assign.op in ("+=", "-=") and stage.init is not None:
            wrong = _beyond(before, v, how, stage, got, expected, data, given, opened(before, members))
            if wrong:
                return f"{wrong}, c = {c}"
    return ""


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a), np.signbit(b))


def exact_where_the_program_overflows(before: Program, name: str, data: Arrays, given: Any, a: Any, b: Any) -> Any:
    """Where the program's own numbers overflow on the way and exact ones do not, and a result is one of these."""
    if np.isfinite(b).all() or np.isfinite(a[~np.isfinite(b)]).sum() == 0:
        return np.zeros(b.shape, bool)
    double = in_f64(before)
    wide = {n: x.astype(np.float64) if before.tensors[n].dtype.is_float else x for n, x in data.items()}
    exact = run(double, wide, {n: np.float64(x) for n, x in given.items()})[name]
    with np.errstate(all="ignore"):
        near = np.abs(a - exact) <= 1e-2 * np.abs(exact) + 1e-2 * np.abs(exact[np.isfinite(exact)]).max(initial=1e-6)
    return ~np.isfinite(b) & np.isfinite(a) & np.isfinite(exact) & near


def _beyond(before: Program, v: RewriteVerdict, how: Options, stage: Stage, got: Arrays, expected: Arrays,
            data: Arrays, given: Any, elementwise: Mapping[str, Stage]) -> str:  # fmt: skip
    name = stage.assign.tensor
    computed = data | expected | got
    extremes = frozenset(s.assign.tensor for s in before.stages if s.assign.op in ("max=", "min="))
    exact = Evaluation(before, computed, given, elementwise, extremes).stage(stage)
    with np.errstate(all="ignore"):
        length = max(1, int(np.nanmax(exact.terms, initial=1)))
        blocks = how.parts * (math.ceil(math.ceil(length / how.parts) / how.block) + 1)
        allowed = bound(v, exact.terms, blocks, exact.apart) * exact.size
        top = max(np.abs(a[np.isfinite(a)].astype(np.float64)).max(initial=1.0) for a in computed.values())
        least = float(np.finfo(before.tensors[name].dtype.numpy).smallest_subnormal)
        allowed = allowed + least * (exact.terms + 1) * 64 * max(top, 1.0)
        off = np.abs(np.asarray(got[name], np.float64) - exact.value)
        u = np.finfo(before.tensors[name].dtype.numpy).eps
        there = ~exact.tiny & (exact.apart * u < FIRST_ORDER) & np.isfinite(exact.value) & np.isfinite(exact.size)
        there &= np.isfinite(np.asarray(got[name], np.float64))
        if not (there & ~(off <= allowed)).any():
            return ""
        worst = np.unravel_index(np.argmax(np.where(there, off / np.maximum(allowed, 1e-300), 0)), off.shape)
    at = f"{name}{list(map(int, worst))}"
    of = f"{v.error}, n = {exact.terms[worst]}, x = {exact.apart[worst]:.4g}, size {exact.size[worst]:.4g}"
    is_ = f"{at} is {got[name][worst]}, exactly {exact.value[worst]}"
    return f"{is_}: off by {off[worst]:.3g}, allowed {allowed[worst]:.3g} ({of})"


def bound(v: RewriteVerdict, terms: np.ndarray, blocks: int, apart: np.ndarray) -> np.ndarray:
    """The certificate's error, relative to Σ |terms|, read off its text."""
    assert v.error is not None
    match = re.fullmatch(r"\(n(?: \+ (\d+) b)?(?: \+ (\d+) x)? \+ (\d+)\) u Σ\|terms\|, u = 2\^-(\d+)", v.error)
    assert match is not None, v.error
    per_block, per_distance, once, digits = (int(g or 0) for g in match.groups())
    return np.asarray((terms + per_block * blocks + per_distance * apart + once) * 2.0**-digits)
