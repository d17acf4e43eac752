"""Programs with one mistake each, for what checks a kernel: the right text, and the same text with the mistake.

`«right|wrong»` marks the place. A kernel of the wrong program is one that a lowering with that mistake would make.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan

from support.plans import machine, plans_of  # isort: skip

PLACE = re.compile(r"«(.*?)\|(.*?)»", re.S)


@dataclass(frozen=True)
class Mutant:
    """A program with a marked mistake; `about` says what of the check it asks for."""

    name: str
    about: str
    text: str

    def __str__(self) -> str:
        return self.name

    @property
    def right(self) -> Program:
        return parse(PLACE.sub(lambda m: m[1], self.text))

    @property
    def wrong(self) -> Program:
        return parse(PLACE.sub(lambda m: m[2], self.text))

    def kernel(self) -> tuple[Kernel, Plan, int]:
        """A kernel with the mistake, its plan and the row."""
        plan = plans_of(self.wrong, machine())[0]
        row = int(plan.space.few[0])
        return lower(plan, plan.space.schedule(row)), plan, row


def _each(value: str, head: str, size: str = "n=70", more: str = "") -> str:
    """One element each, in a loop over `i`."""
    return f"def f({head}, *, {size}):\n{more}    for i in range(n):\n        Y[i] = {value}\n"


def _sum(value: str, head: str, size: str, start: str = "0", op: str = "Y[i] +=") -> str:
    """One sum a row."""
    wanted = f"Y[i] = {op}(Y[i], {value})" if op in ("min", "max") else f"{op} {value}"
    text = f"def f({head}, *, {size}):\n    for i in range(n):\n        Y[i] = {start}\n"
    return f"{text}        for k in range(l):\n            {wanted}\n"


def _product(a: str, b: str, acc: str, value: str, size: str, behind: str = "", scalars: str = "") -> str:
    text = f"def f(A: {a}[m, l], B: {b}[l, n], {scalars}C: {acc}[m, n], *, {size}):\n"
    if behind:
        text += f"    T: {acc}[m, n]\n"
    out = "T" if behind else "C"
    text += f"    for i, j in grid(m, n):\n        {out}[i, j] = 0\n        for k in range(l):\n"
    text += f"            {out}[i, j] += {value}\n"
    return text + (f"    for i, j in grid(m, n):\n        C[i, j] = {behind}\n" if behind else "")


WORDS = "X: s32[n], Y: s32[n]"
FLOATS = "X: f32[n], Y: f32[n]"
TERM = "s32(A[i, k]) * s32(B[k, j])"
PAIRS = "{0}(A[i, 2 * k]) * {0}(B[2 * k, j]) + {0}(A[i, 2 * k + 1]) * {0}(B[2 * k + 1, j])"
SOFTMAX = """
def f(X: f32[n, l], Y: f32[n, l], *, n=4, l=19):
    M: f32[n]
    S: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(«l|1»):
            M[i] = max(M[i], X[i, j])
        S[i] = 0
        for j in range(l):
            S[i] += exp(X[i, j] - M[i])
        for j in range(l):
            Y[i, j] = exp(X[i, j] - M[i]) / S[i]
"""
OF_PAIRS = """
def f(A: s8[m, l], B: s8[l, n], C: s32[m, n], *, m=4, n=4, l=16):
    for i, j in grid(m, n):
        C[i, j] = 0
        for k in range(8):
"""
DOT = """
def f(X: s8[l], Z: s8[l], Y: s32[1], *, l=700):
    T: s32[1]
    T[0] = 0
    for k in range(l):
        T[0] += s32(X[k]) * s32(Z[k])
    Y[0] = «T[0]|max(T[0], -8388608)»
"""
RMS = """
def f(X: f32[n, l], Y: f32[n, l], *, n=3, l=900):
    S: f32[n]
    for i in range(n):
        S[i] = 0
        for k in range(l):
            S[i] += X[i, k] * X[i, k]
        for k in range(l):
            Y[i, k] = X[i, k] * rsqrt(S[i] / 900.0 + «0.00001|0.0»)
"""
ENTROPY = """
def f(X: f32[n, l], Y: f32[n], *, n=5, l=33):
    for i in range(n):
        Y[i] = 0
        for k in range(l):
            Y[i] -= X[i, k] * log(X[i, k])«| * 1.25»
"""
MEAN = """
def f(X: f32[n, l], Y: f32[n], *, n=5, l=33):
    S: f32[n]
    for i in range(n):
        S[i] = 0
        for k in range(l):
            S[i] += log(X[i, k])
        Y[i] = exp(S[i] / «33.0|32.0»)
"""
BEFORE_ONE = """
def f(X: f32[n, l], Y: f32[n], *, n=5, l=33):
    for i in range(n):
        Y[i] = 0
        for k in range(l):
            Y[i] += sqrt(-1.0 - X[i, k])«| * 1.25»
"""
RANGED = "    assume(0 <= X <= 1)\n"
EXTENT = "X: f32[n, l], {0}: s32, Y: f32[n]", "n=4, l=40"
SQUARE = """
def f(T: f32[100], I: s32[n], Y: f32[n], *, n=3):
    assume(0 <= I <= 10)
    K: s32[n]
    for i in range(n):
        K[i] = «I[i] * I[i]|min(I[i] * I[i], 80)»
    for i in range(n):
        Y[i] = T[K[i]]
"""
OUTSIDE = """
def f(T: f32[256], I: s32[n], J: s32[n], Y: f32[n], *, n=8):
    assume(0 <= I <= 250)
    for i in range(n):
        Y[i] = T[«I[i] ^ (J[i] & 3)|min(I[i] ^ (J[i] & 3), 240)»]
"""

MUTANTS = tuple(
    Mutant(*one)
    for one in (
        (
            "sum in 16 bits",
            "integers",
            _product("u8", "s8", "s32", TERM, "m=5, n=5, l=40", "«T[i, j]|s32(s16(T[i, j]))»"),
        ),
        (
            "sum clamped at 2^24",
            "integers",
            _product("u8", "s8", "s32", TERM, "m=4, n=4, l=600", "«T[i, j]|min(T[i, j], 16777216)»"),
        ),
        (
            "negative sum clamped",
            "integers",
            _product("u8", "s8", "s32", TERM, "m=4, n=4, l=600", "«T[i, j]|max(T[i, j], -16777216)»"),
        ),
        (
            "pairs of bytes wrap",
            "integers",
            OF_PAIRS + f"            C[i, j] += «{PAIRS.format('s32')}|s32({PAIRS.format('s16')})»\n",
        ),
        ("dot product clamped", "integers", DOT),
        (
            "absolute value of the least byte",
            "integers",
            _each("«abs(s16(X[i]))|s16(abs(X[i]))»", "X: s8[n], Y: s16[n]", "n=20"),
        ),
        (
            "mean of bytes at 510",
            "integers",
            _each(
                "«(u16(X[i]) + u16(Z[i]) + 1) >> 1|min(u16(X[i]) + u16(Z[i]) + 1, 509) >> 1»",
                "X: u8[n], Z: u8[n], Y: u16[n]",
                "n=20",
            ),
        ),
        (
            "greatest byte from -100",
            "integers",
            _sum("X[i, k]", "X: s8[n, l], Y: s8[n]", "n=4, l=9", "«-128|-100»", "max"),
        ),
        (
            "greatest word from -10000",
            "integers",
            _sum("X[i, k]", "X: s32[n, l], Y: s32[n]", "n=4, l=19", "«-2147483648|-10000»", "max"),
        ),
        (
            "mask of words",
            "ties",
            _each("X[i] if «M[i] != 0|M[i] == M[i]» else 0.0", "X: f32[n], M: s32[n], Y: f32[n]"),
        ),
        (
            "mask of bytes that is 1",
            "ties",
            _each("X[i] if «M[i] > 0|M[i] == 1» else 0.0", "X: f32[n], M: s8[n], Y: f32[n]"),
        ),
        ("zero counts as positive", "ties", _each("1 if X[i] «>|>=» 0 else 0", WORDS)),
        ("equal words", "ties", _each("«1|0» if X[i] == Z[i] else 0", "X: s32[n], Z: s32[n], Y: s32[n]")),
        (
            "equal numbers are less",
            "ties",
            _each("1.0 if X[i] «<|<=» Z[i] else 0.0", "X: f32[n], Z: f32[n], Y: f32[n]"),
        ),
        ("step at zero", "ties", _each("1.0 if X[i] «>|>=» 0.0 else 0.0", FLOATS)),
        ("step at a half", "ties", _each("1.0 if X[i] «>|>=» 0.5 else 0.0", FLOATS)),
        (
            "maximum from -1000",
            "floats",
            _sum("X[i, k]", "X: f32[n, l], Y: f32[n]", "n=4, l=9", "«-inf|-1000.0»", "max"),
        ),
        ("minimum from 1000", "floats", _sum("X[i, k]", "X: f32[n, l], Y: f32[n]", "n=4, l=9", "«inf|1000.0»", "min")),
        ("maximum from -1e20", "floats", _sum("X[i, k]", "X: f32[n, l], Y: f32[n]", "n=4, l=9", "«-inf|-1e20»", "max")),
        ("maximum of the first alone", "floats", SOFTMAX),
        ("no epsilon", "floats", RMS),
        (
            "sum through halves",
            "floats",
            _product(
                "f16", "f16", "f32", "f32(A[i, k]) * f32(B[k, j])", "m=4, n=4, l=256", "«T[i, j]|f32(f16(T[i, j]))»"
            ),
        ),
        ("no clamp to bytes", "floats", _each("«sat_s8|s8»(X[i])", "X: f32[n], Y: s8[n]")),
        ("halves rounded up", "floats", _each("«round(X[i])|floor(X[i] + 0.5)»", FLOATS)),
        ("exponential of at most 20", "floats", _each("exp(«X[i]|min(X[i], 20.0)»)", FLOATS)),
        ("sigmoid of at least -20", "floats", _each("sigmoid(«X[i]|max(X[i], -20.0)»)", FLOATS)),
        ("logarithm of at least 1/1000", "floats", _each("log(«X[i]|max(X[i], 0.001)»)", FLOATS, "n=20", RANGED)),
        ("NaN becomes zero", "special", _each("«X[i]|(X[i] if X[i] == X[i] else 0.0)»", FLOATS)),
        ("entropy of NaN", "nothing", ENTROPY),
        ("geometric mean of NaN", "nothing", MEAN),
        ("roots of less than nothing", "nothing", BEFORE_ONE),
        ("sign of a scalar", "scalars", _each("«s|abs(s)» * X[i]", "X: f32[n], s: f32, Y: f32[n]")),
        (
            "a scalar of zero",
            "scalars",
            _each("X[i] + «s|(s if s != 0.0 else 1.0)» * Z[i]", "X: f32[n], Z: f32[n], s: f32, Y: f32[n]"),
        ),
        ("a scalar of at most 1", "scalars", _each("«s|min(s, 1.0)» * X[i]", "X: f32[n], s: f32, Y: f32[n]")),
        (
            "a length that is a scalar",
            "scalars",
            _sum("(X[i, k] if s32(k) «<|<=» s else 0.0)", "X: f32[n, l], s: s32, Y: f32[n]", "n=4, l=40"),
        ),
        (
            "an offset that is a scalar",
            "scalars",
            _sum(
                "(X[i, k] if «s32(i) + s|max(s32(i) + s, 1)» >= s32(k) else 0.0)",
                "X: f32[n, l], s: s32, Y: f32[n]",
                "n=4, l=40",
            ),
        ),
        ("a shift by a scalar", "scalars", _each("X[i] >> «s|(s + 1)»", "X: s32[n], s: s32, Y: s32[n]")),
        (
            "a zero point that is a scalar",
            "scalars",
            _product(
                "u8",
                "s8",
                "s32",
                "(s32(A[i, k]) - «s32(z)|s32(s8(z))») * s32(B[k, j])",
                "m=4, n=4, l=16",
                scalars="z: u8, ",
            ),
        ),
        ("a square as a subscript", "dropped", SQUARE),
        ("a subscript by bits", "dropped", OUTSIDE),
        ("last row", "seen", _each("X[i]«| if i < n - 1 else 0.0»", FLOATS)),
    )
)
