"""Hand-made kernels, for the tests of the interpreter and of every printer.

`CASES` maps a name to a function of no arguments that builds (kernel, scalars). Inputs come from `case_inputs`, the
expected outputs from the oracle: `autosched.ir.run(kernel.program, arrays, scalars)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autosched.codegen.tree.kernel import (
    Assign,
    Buffer,
    Comment,
    For,
    Function,
    If,
    IntrinsicCall,
    Kernel,
    Lane,
    Prefetch,
    RegisterRef,
    Stmt,
)
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle.numerics import container, store
from autosched.ir.program import Program
from autosched.ir.value import Arith, Cast, FromIndex, Literal, Read, Scalar, Select, Value
from autosched.logic import Bool, Const, Int, Var, all_of, ceil_div
from autosched.tensorize.spec.catalogue import Catalogue

Case = tuple[Kernel, dict[str, Any]]


def inputs_for(program: Program, seed: int = 0, spread: float = 2.0) -> dict[str, np.ndarray[Any, Any]]:
    """Random arrays for every input of `program`: whole integer ranges, small floats."""
    rng = np.random.default_rng(seed)
    return {
        name: random_array(program.tensors[name].dtype, program.tensors[name].extents, rng, spread)
        for name in program.inputs
    }


def random_array(
    dtype: DType, shape: tuple[int, ...], rng: np.random.Generator, spread: float = 2.0
) -> np.ndarray[Any, Any]:
    """Random elements of one dtype, in its storage type."""
    if dtype.is_integer:
        low, high = dtype.limits
        return rng.integers(low, high, size=shape, endpoint=True, dtype=container(dtype)).astype(dtype.numpy)
    values = rng.uniform(-spread, spread, shape)
    from autosched.ir.oracle.numerics import round_float

    return store(round_float(values, dtype), dtype)


def tensor_buffers(program: Program) -> dict[str, Buffer]:
    """A global buffer for each tensor parameter."""
    return {
        name: Buffer(name, program.tensors[name].dtype, program.tensors[name].extents, "global", name)
        for name in program.parameters
        if name in program.tensors
    }


def build(
    program: Program, more: list[Buffer], body: list[Stmt], prepare: tuple[Function, ...] = (), **rest: Any
) -> Kernel:
    """A kernel whose main takes the program's tensors, then the packed buffers and workspaces of `more`.

    Tensors that only the prepare functions read are not passed to main."""
    buffers = tensor_buffers(program) | {b.name: b for b in more}
    packed = [b for b in more if b.scope == "packed"]
    replaced = {b.origin for b in packed}
    passed = [n for n in tensor_buffers(program) if n not in replaced]
    passed += [b.name for b in packed] + [b.name for b in more if b.scope == "workspace"]
    return Kernel(program.name, program, buffers, prepare, Function("main", tuple(passed), tuple(body)), **rest)


def loop(var: str, upper: Int | int, *body: Stmt, **rest: Any) -> For:
    return For(var, Const(0), upper if isinstance(upper, Int) else Const(upper), tuple(body), **rest)


def unrolled(var: str, count: int, *body: Stmt) -> For:
    return loop(var, count, *body, kind="unrolled")


def literal(value: float, dtype: str) -> Literal:
    return Literal(value, DTYPES[dtype])


i, j, p, r, v, e = (Var(n) for n in "ijprve")
GEMM = '''
def gemm(A: f32[m, k], B: f32[k, n], C: f32[m, n], *, m=1, n=1, k=1):
    """C = A B."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] = fma(A[i, p], B[p, j], C[i, j])
'''


def matmul_fma(
    m: int = 13, n: int = 41, k: int = 7, rows: int = 3, columns: int = 2, width: str = "zmm", threads: int = 1
) -> Case:
    """Register-tiled f32 matmul: `rows` x `columns` accumulators, masked tails in both directions."""
    program = parse(GEMM, sizes={"m": m, "n": n, "k": k})
    fma = Catalogue.builtin().find(f"x86/vfmadd.f32.{width}")
    lanes = fma.accumulator.elements
    f32 = DTYPES["f32"]
    lane = Lane("e", lanes)
    row, column = i + r, j * (columns * lanes) + v * lanes + e
    inside = column < n
    body: list[Stmt] = [
        Comment("one register tile"),
        unrolled("r", rows, unrolled("v", columns, Assign("acc", (r, v, e), literal(0.0, "f32"), lane))),
        loop(
            "p",
            k,
            unrolled("v", columns, Assign("b", (v, e), Read("B", (p, column), f32), lane, inside)),
            unrolled(
                "r",
                rows,
                Assign("a", (r, e), Read("A", (row, p), f32), lane, row < m),
                unrolled(
                    "v",
                    columns,
                    IntrinsicCall(
                        fma, {"a": RegisterRef("a", (r,)), "b": RegisterRef("b", (v,)), "c": RegisterRef("acc", (r, v))}
                    ),
                ),
            ),
            Prefetch("B", (p + 4, j * (columns * lanes))),
            note="the whole reduction",
        ),
        unrolled(
            "r",
            rows,
            unrolled(
                "v", columns, Assign("C", (row, column), Read("acc", (r, v, e), f32), lane, all_of(row < m, inside))
            ),
        ),
    ]
    outer: list[Stmt] = [
        For(
            "i",
            Const(0),
            Const(m),
            (loop("j", ceil_div(n, columns * lanes), *body, note="columns"),),
            kind="parallel" if threads > 1 else "serial",
            step=rows,
            note="rows",
        )
    ]
    registers = [
        Buffer("acc", f32, (rows, columns, lanes), "register"),
        Buffer("a", f32, (rows, lanes), "register"),
        Buffer("b", f32, (columns, lanes), "register"),
    ]
    schedule: dict[str, object] = {"tile": f"{rows}x{columns}", "threads": threads}
    return build(program, registers, outer, threads=threads, schedule=schedule, isa="x86"), {}


DOT = '''
def dot(A: u8[m, k], B: const[s8[k, n]], C: s32[m, n], *, m=1, n=1, k=1):
    """C = A B, exact in int32."""
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
'''
DOT_RELU = '''
def dot_relu(A: u8[m, k], B: const[s8[k, n]], bias: f32[n], scale: f32, Y: f32[m, n], *, m=1, n=1, k=1):
    """Y = max(scale * A B + bias, 0)."""
    C: s32[m, n]
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
    for i, j in grid(m, n):
        Y[i, j] = max(f32(C[i, j]) * scale + bias[j], 0)
'''


def matmul_dot(
    m: int = 5, n: int = 37, k: int = 11, rows: int = 2, width: str = "zmm", relu: bool = False, threads: int = 1
) -> Case:
    """u8 x s8 into s32 through `vpdpbusd`: B packed in groups of four with zeros past k and n, A's group repeated, a
    masked tail of k on A; `relu` adds an epilogue in f32 on the accumulator registers."""
    program = parse(DOT_RELU if relu else DOT, sizes={"m": m, "n": n, "k": k})
    dot = Catalogue.builtin().find(f"x86/vpdpbusd.{width}")
    lanes = dot.accumulator.elements
    wide, groups, panels = 4 * lanes, -(-k // 4), -(-n // lanes)
    u8, s8, s32, f32 = (DTYPES[d] for d in ("u8", "s8", "s32", "f32"))
    packed = Buffer("B_packed", s8, (panels, groups, wide), "packed", "B")
    source_row, source_column = p * 4 + e % 4, j * lanes + e // 4
    pack = Assign(
        "B_packed",
        (j, p, e),
        Select(
            all_of(source_row < k, source_column < n), Read("B", (source_row, source_column), s8), literal(0, "s8"), s8
        ),
        Lane("e", wide),
    )
    prepare = Function("prepare_B", ("B", "B_packed"), (loop("j", panels, loop("p", groups, pack)),))
    row, column = i + r, j * lanes + e
    call = IntrinsicCall(dot, {"a": RegisterRef("a", (r,)), "b": RegisterRef("b", ()), "c": RegisterRef("acc", (r,))})
    result: Value = Read("acc", (r, e), s32)
    out = "C"
    if relu:
        scaled = Arith("*", Cast(result, f32), Scalar("scale", f32), f32)
        result, out = Arith("max", Arith("+", scaled, Read("bias", (column,), f32), f32), literal(0.0, "f32"), f32), "Y"
    body: list[Stmt] = [
        unrolled("r", rows, Assign("acc", (r, e), literal(0, "s32"), Lane("e", lanes))),
        loop(
            "p",
            groups,
            Assign("b", (e,), Read("B_packed", (j, p, e), s8), Lane("e", wide)),
            unrolled(
                "r",
                rows,
                Assign(
                    "a",
                    (r, e),
                    Read("A", (row, p * 4 + e % 4), u8),
                    Lane("e", wide),
                    all_of(row < m, p * 4 + e % 4 < k),
                ),
                call,
            ),
        ),
        unrolled("r", rows, Assign(out, (row, column), result, Lane("e", lanes), all_of(row < m, column < n))),
    ]
    outer: list[Stmt] = [
        loop(
            "j",
            panels,
            For("i", Const(0), Const(m), tuple(body), step=rows),
            kind="parallel" if threads > 1 else "serial",
        )
    ]
    registers = [
        Buffer("acc", s32, (rows, lanes), "register"),
        Buffer("a", u8, (rows, wide), "register"),
        Buffer("b", s8, (wide,), "register"),
    ]
    kernel = build(program, [packed, *registers], outer, (prepare,), threads=threads, isa="x86")
    return kernel, ({"scale": 0.01} if relu else {})


STENCIL = '''
def stencil(X: f32[n, n], Y: f32[n, n], *, n=1):
    """The mean of the neighbours that exist, in the order left, right."""
    for i, j in grid(n, n):
        Y[i, j] = (X[i, j - 1] if j > 0 else f32(0)) * 0.5 + (X[i, j + 1] if j + 1 < n else f32(0)) * 0.5
'''


def stencil(n: int = 21, lanes: int = 8) -> Case:
    """Guarded neighbours, a workspace, a strided copy, and unrolled code without any intrinsic."""
    program = parse(STENCIL, sizes={"n": n})
    f32 = DTYPES["f32"]
    column = j * lanes + e

    def side(offset: int, there: Bool) -> Value:
        half = literal(0.5, "f32")
        return Arith("*", Select(there, Read("W", (column + offset, i), f32), literal(0.0, "f32"), f32), half, f32)

    body: list[Stmt] = [
        loop("i", n, loop("j", n, Assign("W", (j, i), Read("X", (i, j), f32))), kind="parallel"),
        loop(
            "i",
            n,
            loop(
                "j",
                ceil_div(n, lanes),
                If(
                    j * lanes < n,
                    (
                        Assign(
                            "sum",
                            (e,),
                            Arith("+", side(-1, column > 0), side(1, column + 1 < n), f32),
                            Lane("e", lanes),
                            column < n,
                        ),
                    ),
                ),
                Assign("Y", (i, column), Read("sum", (e,), f32), Lane("e", lanes), column < n),
            ),
            kind="parallel",
        ),
    ]
    more = [Buffer("W", f32, (n, n), "workspace"), Buffer("sum", f32, (lanes,), "register")]
    return build(program, more, body, threads=2), {}


REVERSE = '''
def reverse(X: f32[n], I: s32[n], Y: f32[n], *, n=1):
    """A gather, in reverse, plus the position."""
    for i in range(n):
        Y[n - 1 - i] = X[I[i]] + f32(i)
'''


def reverse(n: int = 19, lanes: int = 4) -> Case:
    """A gather through data and a store that runs backwards."""
    program = parse(REVERSE, sizes={"n": n})
    f32, s32 = DTYPES["f32"], DTYPES["s32"]
    at = i * lanes + e
    value = Arith("+", Read("X", (Read("I", (at,), s32),), f32), FromIndex(at, f32), f32)
    store_back = Assign("Y", (n - 1 - at,), value, Lane("e", lanes), at < n)
    return build(program, [], [loop("i", ceil_div(n, lanes), store_back)]), {}


def two_regions(n: int = 33) -> Case:
    """Two parallel loops and serial code that use one register, and a register that the loops only read."""
    program = parse(
        "def twice(X: f32[n], Y: f32[n], *, n=1):\n    for i in range(n):\n        Y[i] = X[i] * 2 * 2\n",
        sizes={"n": n},
    )
    f32, zero = DTYPES["f32"], (Const(0),)

    def doubled(source: str) -> tuple[Stmt, ...]:
        product = Arith("*", Read("t", zero, f32), Read("two", zero, f32), f32)
        return Assign("t", zero, Read(source, (i,), f32)), Assign("Y", (i,), product)

    body: list[Stmt] = [
        Assign("two", zero, literal(2.0, "f32")),
        loop("i", n, *doubled("X"), kind="parallel"),
        loop("i", 5, *doubled("Y")),
        For("i", Const(5), Const(n), doubled("Y"), "parallel"),
    ]
    return build(
        program, [Buffer("t", f32, (1,), "register"), Buffer("two", f32, (1,), "register")], body, threads=2
    ), {}


def case_inputs(kernel: Kernel, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """`inputs_for` the kernel's program; integer tensors that are used as subscripts stay in range."""
    arrays = inputs_for(kernel.program, seed)
    if "I" in arrays:
        arrays["I"] = np.random.default_rng(seed).integers(0, len(arrays["X"]), arrays["I"].shape, dtype=np.int32)
    return arrays


CASES: dict[str, Callable[[], Case]] = {
    "matmul_fma": matmul_fma,
    "matmul_fma_ymm": lambda: matmul_fma(6, 16, 5, rows=4, columns=2, width="ymm"),
    "matmul_fma_exact": lambda: matmul_fma(6, 32, 5, rows=3, columns=2),
    "matmul_fma_threads": lambda: matmul_fma(9, 20, 5, rows=2, columns=1, threads=2),
    "matmul_dot": matmul_dot,
    "matmul_dot_exact": lambda: matmul_dot(4, 32, 8),
    "matmul_dot_relu": lambda: matmul_dot(5, 19, 10, relu=True),
    "matmul_dot_threads": lambda: matmul_dot(5, 37, 9, width="ymm", threads=2),
    "stencil": stencil,
    "reverse": reverse,
    "two_regions": two_regions,
}
