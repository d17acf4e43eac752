"""Random sums over numbers of which data say one, written in many ways: as a guard, a choice, a product with a choice
of one and zero; of integers and floats; with offsets, numbers that lie outside, types that wrap, other conditions."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from autosched.ir import parse
from autosched.ir.program import Program

FLOATS = ("f32", "f64")
SCALARS = {"g": 3}


def random_hot(seed: int) -> Program:
    """A sum, or a maximum, over `p` of elements that data choose by `I`."""
    rng = random.Random(seed)
    kind, dtype = rng.choice(["s32", "s32", "u8", "s8", "s64"]), rng.choice(["f32", "f32", "s32", "f64"])
    m, n, k = rng.choice([1, 3, 5]), rng.choice([2, 4]), rng.choice([1, 6, 9])
    if kind in ("u8", "s8") and rng.random() < 0.3:
        k = rng.choice([130, 300])  # a type of 8 bits wraps
    low = rng.choice([0, 0, 0, 2, -2])
    data = rng.choice(["I[i]", "I[i]", "I[i]", "I[j]", "J[i, j]", f"{kind}(g)", "I[i] + I[j]", f"I[i] - {kind}(i)"])
    form = rng.choice(["p", "p", "p", "p + 2", "p - 1", "p + i", "2 * p", "p - j"])
    equal = rng.choice([f"{data} == {kind}({form})", f"{kind}({form}) == {data}", f"{data} - {kind}({form}) == 0"])
    if rng.random() < 0.3:
        equal += rng.choice([" and M[i] != 0", " and X[i, j] > 0", f" and I[j] != {kind}(p)"])
    zero, one, extra = ("0.0", "1.0", "2.5") if dtype in FLOATS else ("0", "1", "3")
    place = rng.choice([f"p - {low}", f"p - {low}", f"(p - {low}) // 2"]) if low else rng.choice(["p", "p", "p // 2"])
    read = rng.choice([f"W[{place}, j]", f"W[{place}, j]", f"V[{place}]", f"{dtype}(p)"])
    if dtype in FLOATS and rng.random() < 0.2:
        read = f"{dtype}(f16({rng.choice([read, f'H[{place}]', f'Q[{place}]'])}))"  # which may overflow
    term = rng.choice([read, read, f"{read} * X[i, j]", f"{read} + {extra}"])
    op = rng.choice(["+=", "+=", "+=", "-=", "max"])
    other = {"max": "-inf" if dtype in FLOATS else "-2147483648"}.get(op, rng.choice([zero, zero, zero, extra]))
    way = rng.choice(["guard", "choice", "choice", "product", "product", "unequal"])
    if op == "max" and way == "product":
        way = "choice"
    value = {
        "guard": term,
        "choice": f"({term} if {equal} else {other})",
        "product": f"({one} if {equal} else {other}) * ({term})",
        "unequal": f"({other} if {equal.replace('==', '!=')} else {term})",
    }[way]
    around = rng.random() < 0.25
    element = rng.choice(["O[i, j]", "O[i, j]", "O[i // 2, j]", "O[0, 0]", "O[0, 0]"]) if around else "O[i, j]"
    if around and op != "max" and rng.random() < 0.5:
        value = f"({value} if {element} < 2 else {zero})"
    target = f"{element} = max({element}, {value})" if op == "max" else f"{element} {op} {value}"
    start = rng.choice(["0", "0", "B[j]", ""])
    lines = ["for i, j in grid(m, n):"]
    lines += [f"    O[i, j] = {start}"] if start else []
    lines += [f"    for p in range({low}, {low + k}):"]
    if way == "guard":
        lines += [f"        if {equal}:", f"            {target}"]
    else:
        lines += [f"        {target}"]
    if around:
        lines = [f"for p in range({low}, {low + k}):", "    for i, j in grid(m, n):"]
        lines += [f"        if {equal}:", f"            {target}"] if way == "guard" else [f"        {target}"]
    head = f"I: {kind}[5], J: {kind}[5, 5], M: s32[5], W: {dtype}[{k}, 5], V: {dtype}[{k}], X: {dtype}[5, 5]"
    head += f", H: bf16[{k}], Q: s32[{k}], B: {dtype}[5], g: s32, O: {dtype}[m, n]"
    assumed = rng.choice(["", "", f"    assume({max(low, 0)} <= I <= {max(low, 0) + min(k - 1, 100)})\n"])
    text = f"def f({head}, *, m={m}, n={n}):\n{assumed}" + "".join(f"    {line}\n" for line in lines)
    return parse(text, filename="f.py")


def data_of(program: Program, seed: int) -> dict[str, npt.NDArray[np.generic]]:
    """Inputs of a program: numbers in the loop and beside it, at the ends of their type, and floats of both signs with
    zeros of both."""
    rng = np.random.default_rng(seed)
    found: dict[str, npt.NDArray[np.generic]] = {}
    stated = {a.subject: a for a in program.assumptions}
    for name in program.inputs:
        tensor = program.tensors[name]
        if tensor.dtype.is_float:
            values = rng.integers(-3, 4, tensor.extents) * rng.choice([0.5, -0.5], tensor.extents)
            values = np.where(rng.random(tensor.extents) < 0.1, 1e5, values)  # no number of f16
        else:
            low, high = tensor.dtype.limits
            values = rng.integers(-4, 13, tensor.extents)
            far = rng.choice([low, high, -2, 126, 127, 131], tensor.extents)
            values = np.where(rng.random(tensor.extents) < 0.15, far, values)
            if name in stated:
                values = np.clip(values, int(stated[name].low or 0), int(stated[name].high or 0))
            values = np.clip(values, int(low), int(high))
        found[name] = values.astype(tensor.dtype.numpy)
    return found
