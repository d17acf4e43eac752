"""Loop trees built by hand, as a lowering would: register-tiled matrix products with packed B and masked edges."""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.tree.kernel import (
    Assign,
    Buffer,
    For,
    Function,
    If,
    IntrinsicCall,
    Kernel,
    Lane,
    RegisterRef,
    Stmt,
)
from autosched.ir.dtypes import dtype
from autosched.ir.map import identity
from autosched.ir.nodes import Assign as ProgramAssign
from autosched.ir.nodes import Axis, Loop, ScalarParam, Statement, Tensor
from autosched.ir.program import Program
from autosched.ir.value import Arith, Cast, Literal, Read, Select, Value
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, ceil_div, minimum
from autosched.tensorize.intrinsic import Intrinsic, Numerics, Operand

F32, S32, U8, S8 = dtype("f32"), dtype("s32"), dtype("u8"), dtype("s8")


def needs(*features: str) -> pytest.MarkDecorator:
    """Skip where this CPU lacks an instruction set."""
    have = llvm.get_host_cpu_features() if platform.machine() in ("x86_64", "AMD64") else {}
    missing = [f for f in features if not have.get(f)]
    return pytest.mark.skipif(bool(missing), reason=f"this CPU lacks {' '.join(missing)}")


def run(k: Kernel, arrays: dict[str, Any]) -> dict[str, Any]:
    """The compiled kernel's outputs."""
    outputs = {n: np.zeros(k.buffers[n].shape, k.buffers[n].dtype.numpy) for n in k.program.outputs}
    every = arrays | outputs
    call = load(print_llvm(k)).function("main", len(k.main.buffers))
    call(*(every[b].ctypes.data for b in k.main.buffers))
    return outputs


def same(got: Any, want: Any, loose_zero: bool = False, ulps: int = 0) -> Any:
    """Equal bits, or both NaN; a zero's sign may differ where numpy's own is not fixed."""
    width = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[got.dtype.itemsize]
    ok = got.view(width) == want.view(width)
    if got.dtype.kind in "fV" or got.dtype.name.startswith(("bfloat16", "float8")):
        with np.errstate(all="ignore"):
            g, w = got.astype(np.float64), want.astype(np.float64)
        ok |= np.isnan(g) & np.isnan(w)
        if loose_zero:
            ok |= (g == 0) & (w == 0)
        if ulps:
            with np.errstate(all="ignore"):
                ok |= np.abs(g - w) <= ulps * np.abs(np.spacing(w))
    return ok


def program(
    tensors: list[Tensor], written: list[str], scalars: tuple[ScalarParam, ...] = (), name: str = "p"
) -> Program:
    """A program with the given parameters, whose body assigns zero to the written ones (kernels hold the real code)."""
    table = {t.name: t for t in tensors}
    body = tuple(_fill(table[w]) for w in written)
    parameters = tuple(t.name for t in tensors) + tuple(s.name for s in scalars)
    return Program(name, "", table, {s.name: s for s in scalars}, parameters, {}, {}, body)


def _fill(t: Tensor) -> Statement:
    axes = [Axis(f"{t.name}.{d}", Const(0), n) for d, n in enumerate(t.shape)]
    statement: Statement = ProgramAssign(t.name, tuple(Var(a.name) for a in axes), "=", Literal(0, t.dtype))
    for axis in reversed(axes):
        statement = Loop(axis, (statement,))
    return statement


def tensor(buffer: Buffer, const: bool = False) -> Tensor:
    return Tensor(buffer.name, buffer.dtype, tuple(Const(n) for n in buffer.shape), const)


def kernel(
    buffers: list[Buffer],
    body: tuple[Stmt, ...],
    written: list[str],
    prepare: tuple[Function, ...] = (),
    threads: int = 1,
    scalars: tuple[ScalarParam, ...] = (),
    extra: tuple[Tensor, ...] = (),
) -> Kernel:
    """A kernel whose `main` takes all its buffers but registers and those only `prepare` reads."""
    held = {b.origin for b in buffers if b.scope == "packed"}
    passed = tuple(b.name for b in buffers if b.scope in ("global", "packed", "workspace") and b.name not in held)
    tensors = [tensor(b, const=b.name in held) for b in buffers if b.scope == "global"] + list(extra)
    return Kernel(
        "k",
        program(tensors, written, scalars),
        {b.name: b for b in buffers},
        prepare,
        Function("main", passed, body),
        threads,
    )


def intrinsic_fma() -> Intrinsic:
    """Sixteen f32 multiply-adds."""
    lanes = identity(("i",), (16,))
    operands = {
        n: Operand(n, F32, (16,), lanes, registers={"llvm": "<16 x float>"}, written=n == "c") for n in ("a", "b", "c")
    }
    i = Axis("i", Const(0), Const(16))
    at = (Var("i"),)
    value = Arith("*", Read("a", at, F32), Read("b", at, F32), F32)
    tensors = {n: Tensor(n, F32, (Const(16),)) for n in ("a", "b", "c")}
    body = (Loop(i, (ProgramAssign("c", at, "+=", value),)),)
    semantics = Program("fma", "", tensors, {}, ("a", "b", "c"), {}, {}, body)
    call = "call <16 x float> @llvm.fma.v16f32(<16 x float> {a}, <16 x float> {b}, <16 x float> {c})"
    return Intrinsic("x86/vfmadd.zmm", "x86", semantics, operands, Numerics(fused=True), emit={"llvm": call})


def intrinsic_dot() -> Intrinsic:
    """Sixteen four-way u8 x s8 dot products."""
    packed = identity(("i", "k"), (16, 4))
    operands = {
        "a": Operand("a", U8, (16, 4), packed, registers={"llvm": "<16 x i32>"}),
        "b": Operand("b", S8, (16, 4), packed, registers={"llvm": "<16 x i32>"}),
        "c": Operand("c", S32, (16,), identity(("i",), (16,)), registers={"llvm": "<16 x i32>"}, written=True),
    }
    i, k = Axis("i", Const(0), Const(16)), Axis("k", Const(0), Const(4))
    at = (Var("i"), Var("k"))
    value = Arith("*", Cast(Read("a", at, U8), S32), Cast(Read("b", at, S8), S32), S32)
    tensors = {
        "a": Tensor("a", U8, (Const(16), Const(4))),
        "b": Tensor("b", S8, (Const(16), Const(4))),
        "c": Tensor("c", S32, (Const(16),)),
    }
    body = (Loop(i, (Loop(k, (ProgramAssign("c", (Var("i"),), "+=", value),)),)),)
    semantics = Program("vpdpbusd", "", tensors, {}, ("a", "b", "c"), {}, {}, body)
    call = "call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> {c}, <16 x i32> {a}, <16 x i32> {b})"
    return Intrinsic("x86/vpdpbusd.zmm", "x86", semantics, operands, emit={"llvm": call})


def guarded(condition: Bool, value: Value, dt: object) -> Value:
    return value if condition == TRUE else Select(condition, value, Literal(0, dt), dt)  # type: ignore[arg-type]


def matmul(
    intrinsic: Intrinsic,
    m: int,
    n: int,
    k: int,
    rows: int,
    vectors: int,
    unroll: int = 1,
    threads: int = 1,
    kind: str = "serial",
) -> Kernel:
    """C = A B on register tiles of `rows` by `vectors` registers, B packed in panels; edges are masked."""
    a_type, b_type = intrinsic.operands["a"].dtype, intrinsic.operands["b"].dtype
    c_type = intrinsic.operands["c"].dtype
    group = intrinsic.operands["a"].elements // 16  # elements along k in one lane
    steps, panels = -(-k // group), -(-n // (16 * vectors))
    buffers = [
        Buffer("A", a_type, (m, k), "global"),
        Buffer("B", b_type, (k, n), "global"),
        Buffer("C", c_type, (m, n), "global"),
        Buffer("Bp", b_type, (panels, steps, vectors, 16 * group), "packed", "B"),
        Buffer("acc", c_type, (rows, vectors, 16), "register"),
        Buffer("ra", a_type, (1, 16 * group), "register"),
        Buffer("rb", b_type, (vectors, 16 * group), "register"),
    ]
    i0, j0, p0, r, v, e = (Var(x) for x in ("i0", "j0", "p0", "r", "v", "e"))
    wide, lane = Lane("e", 16 * group), Lane("e", 16)

    def unrolled(var: str, count: int, *body: Stmt) -> For:
        return For(var, Const(0), Const(count), body, "unrolled")

    def row_ok(row: Int) -> Bool:
        return TRUE if m % rows == 0 else row < m

    row, step = i0 * rows + r, p0 * unroll + Var("u")
    k_index = step * group + e % group
    inside = all_of(row_ok(row), TRUE if k % (group * unroll) == 0 else k_index < k)
    column = j0 * (16 * vectors) + v * 16 + e
    update: tuple[Stmt, ...] = (
        unrolled("v", vectors, Assign("rb", (v, e), Read("Bp", (j0, step, v, e), b_type), wide)),
        unrolled(
            "r",
            rows,
            Assign("ra", (Const(0), e), guarded(inside, Read("A", (row, k_index), a_type), a_type), wide),
            unrolled(
                "v",
                vectors,
                IntrinsicCall(
                    intrinsic,
                    {
                        "a": RegisterRef("ra", (Const(0),)),
                        "b": RegisterRef("rb", (v,)),
                        "c": RegisterRef("acc", (r, v)),
                    },
                ),
            ),
        ),
    )
    if steps % unroll:
        update = (If(step < steps, update),)
    tile = (
        unrolled("r", rows, unrolled("v", vectors, Assign("acc", (r, v, e), Literal(0, c_type), lane))),
        For("p0", Const(0), ceil_div(steps, unroll), (unrolled("u", unroll, *update),)),
        unrolled(
            "r",
            rows,
            unrolled(
                "v",
                vectors,
                Assign(
                    "C",
                    (row, column),
                    Read("acc", (r, v, e), c_type),
                    lane,
                    all_of(row_ok(row), TRUE if n % (16 * vectors) == 0 else column < n),
                ),
            ),
        ),
    )
    body = (For("j0", Const(0), Const(panels), (For("i0", Const(0), ceil_div(m, rows), tile, kind),)),)
    k_packed, n_packed = Var("q") * group + e % group, Var("j") * (16 * vectors) + v * 16 + e // group
    limits = all_of(k_packed < minimum(k, steps * group), n_packed < n)
    pack = Assign(
        "Bp", (Var("j"), Var("q"), v, e), guarded(limits, Read("B", (k_packed, n_packed), b_type), b_type), wide
    )
    loops: Stmt = For("v", Const(0), Const(vectors), (pack,))
    loops = For("j", Const(0), Const(panels), (For("q", Const(0), Const(steps), (loops,)),))
    prepare = Function("prepare_B", ("B", "Bp"), (loops,))
    return kernel(buffers, body, ["C"], (prepare,), threads)
