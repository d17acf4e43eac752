"""Random elementwise programs of operations that the vector unit of `examples/chips` has one at a time, with awkward
subscripts, broadcasts, guards and bounds; some sum up what they compute."""

from __future__ import annotations

from random import Random

from autosched.ir import parse
from autosched.ir.program import Program

EXTENTS = (1, 2, 3, 7, 15, 16, 17, 33, 63, 64, 65, 70)
TENSORS = {"f32": ("X", "Y", "R", "K", "a"), "s32": ("P", "Q", "L", "b")}
INDEX = {
    "X": "[i, j]", "Y": "[j, i]", "R": "[i]", "K": "[j]", "a": "[0]",
    "P": "[i, j]", "Q": "[j, i]", "L": "[j]", "b": "[0]",
}  # fmt: skip


def expression_program(seed: int) -> Program:
    rng = Random(f"expressions {seed}")
    m, n = rng.choice(EXTENTS[:5]), rng.choice(EXTENTS)
    m, n = (m, n) if rng.random() < 0.7 else (n, m)
    out = rng.choice(("f32", "f32", "s32", "s8"))
    value = _value(rng, out, rng.choice((1, 2, 2, 3)))
    shapes = {
        "X": f"f32[{m}, {n}]", "Y": f"f32[{n}, {m}]", "R": f"f32[{m}]", "K": f"f32[{n}]", "a": "f32[1]",
        "P": f"s32[{m}, {n}]", "Q": f"s32[{n}, {m}]", "L": f"s32[{n}]", "b": "s32[1]",
    }  # fmt: skip
    used = [t for t in shapes if f"{t}[" in value]
    given = ", ".join(f"{t}: {shapes[t]}" for t in used)
    comma = ", " if given else ""
    if out != "s8" and rng.random() < 0.3:
        op, start = ("max", "-inf" if out == "f32" else "-2147483648") if rng.random() < 0.6 else ("+", "0")
        add = f"Z[i] += {value}" if op == "+" else f"Z[i] = max(Z[i], {value})"
        body = f"    for i in range({m}):\n        Z[i] = {start}\n        for j in range({n}):\n            {add}\n"
        return parse(f"def f({given}{comma}Z: {out}[{m}]):\n{body}", filename="f.py")
    guard = rng.choice(("", "", "", "        if i + j < 9:\n    "))
    body = f"    for i, j in grid({m}, {n}):\n{guard}        Z[i, j] = {value}\n"
    return parse(f"def f({given}{comma}Z: {out}[{m}, {n}]):\n{body}", filename="f.py")


def _value(rng: Random, dtype: str, depth: int) -> str:
    if dtype == "s8":
        return f"sat_s8(round({_value(rng, 'f32', depth)}))"
    if depth == 0:
        name = rng.choice(TENSORS[dtype])
        return name + INDEX[name]
    if dtype == "f32" and rng.random() < 0.3:
        function, of = rng.choice((("exp", "f32"), ("f32", "s32")))
        return f"{function}({_value(rng, of, depth - 1)})"
    if dtype == "s32" and rng.random() < 0.3:
        return f"max({_value(rng, 's32', depth - 1)}, 0)"
    op = rng.choice("+-*/" if dtype == "f32" else "+-")
    left, right = _value(rng, dtype, rng.randrange(depth)), _value(rng, dtype, depth - 1)
    return f"({left} {op} {right})" if rng.random() < 0.5 else f"({right} {op} {left})"
