"""Whole loop trees, compiled, against the interpreter: tiles and tails, memory accesses of every kind, control flow."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compiled.llvm_kernels import (
    F32,
    S8,
    S32,
    U8,
    Intrinsic,
    intrinsic_dot,
    intrinsic_fma,
    kernel,
    matmul,
    needs,
    program,
)
from support.match.examples import examples
from support.programs.kernel_cases import CASES, case_inputs

from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.llvm.machine.errors import UnsupportedError
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.tree.kernel import Assign, Buffer, Comment, For, If, Kernel, Lane, Prefetch, Stmt
from autosched.ir import run as run_program
from autosched.ir.dtypes import dtype
from autosched.ir.nodes import ScalarParam
from autosched.ir.value import Arith, Call, Cast, Comparison, FromIndex, Literal, Logical, Read, Scalar, Select, Value
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, any_of, maximum, minimum, where

RNG = np.random.default_rng(11)
E, N, J = Var("e"), Var("i"), Var("j")


def data(buffer: Buffer) -> Any:
    """Random elements, guarded on both sides by nothing: the interpreter checks bounds."""
    if buffer.dtype.is_float:
        return RNG.standard_normal(buffer.shape).astype(buffer.dtype.numpy)
    low, high = buffer.dtype.limits
    high = min(high, 2**62)  # what the generator takes
    return RNG.integers(low, high + 1, buffer.shape, dtype=np.int64).astype(buffer.dtype.numpy)


def agree(k: Kernel, arrays: dict[str, Any] | None = None, scalars: dict[str, Any] | None = None) -> dict[str, Any]:
    """Compiled outputs equal the interpreter's, bit for bit; answers them."""
    arrays = arrays or {n: data(k.buffers[n]) for n in k.program.inputs if n in k.program.tensors}
    want = run_kernel(k, arrays, scalars)
    got = CompiledKernel(k, load(print_llvm(k)))(**arrays, **(scalars or {}))
    got = got if isinstance(got, tuple) else (got,)
    for name, array in zip(k.program.outputs, got, strict=True):
        np.testing.assert_array_equal(array, want[name], err_msg=name)
    return want


@needs("avx512f")
@pytest.mark.parametrize(("m", "n", "k", "rows", "vectors", "unroll"), [
    (16, 64, 8, 4, 2, 1), (17, 70, 13, 5, 2, 2), (3, 5, 7, 4, 1, 4), (12, 32, 1, 12, 2, 1), (14, 33, 20, 14, 2, 3),
])  # fmt: skip
def test_float_tiles(m: int, n: int, k: int, rows: int, vectors: int, unroll: int) -> None:
    tile = matmul(intrinsic_fma(), m, n, k, rows, vectors, unroll)
    arrays = {"A": data(tile.buffers["A"]), "B": data(tile.buffers["B"])}
    c = CompiledKernel(tile, load(print_llvm(tile)))(**arrays)
    np.testing.assert_allclose(c, arrays["A"].astype(np.float64) @ arrays["B"], rtol=1e-4, atol=1e-4)


@needs("avx512vnni")
@pytest.mark.parametrize(("m", "n", "k", "rows", "vectors", "unroll"), [
    (16, 64, 8, 4, 2, 1), (17, 70, 13, 5, 2, 2), (3, 5, 7, 4, 1, 4), (6, 64, 64, 6, 4, 2), (7, 65, 5, 6, 4, 1),
])  # fmt: skip
def test_int8_tiles(m: int, n: int, k: int, rows: int, vectors: int, unroll: int) -> None:
    agree(matmul(intrinsic_dot(), m, n, k, rows, vectors, unroll))


@needs("avx512vnni")
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_parallel_tiles(threads: int) -> None:
    tile = matmul(intrinsic_dot(), 50, 130, 24, 4, 2, 1, threads, "parallel")
    ir = print_llvm(tile)
    assert ("autosched_parallel_for" in ir) == (threads > 1)
    compiled = CompiledKernel(tile, load(ir))
    for _ in range(40):
        a, b = data(tile.buffers["A"]), data(tile.buffers["B"])
        np.testing.assert_array_equal(compiled(a, b), a.astype(np.int32) @ b.astype(np.int32))


def test_no_register_stays_in_memory() -> None:
    """SROA must see through every register buffer, else a tile runs at a fraction of its speed."""
    from autosched.codegen.llvm.machine.compile import _parse, target_machine

    for intrinsic in (intrinsic_fma(), intrinsic_dot()):
        text = str(_parse(print_llvm(matmul(intrinsic, 24, 64, 16, 6, 2, 2)), target_machine()))
        assert "alloca" not in text


# -- memory ---------------------------------------------------------------------------------------------------------


def lanes_index(draw: Any) -> Int:
    a = draw(st.integers(0, 5))
    shape = draw(
        st.sampled_from(["contiguous", "group", "strided", "rows", "uniform", "reverse", "mixed", "min", "where"])
    )
    match shape:
        case "contiguous":
            return N * 16 + E + a
        case "group":
            return N * 4 + E % draw(st.sampled_from([2, 4, 8])) + a
        case "strided":
            return E * draw(st.sampled_from([2, 3, 17])) + N + a
        case "rows":
            return E % 4 * 40 + E // 4 + N * 8 + a
        case "uniform":
            return N * 3 + a
        case "reverse":
            return 200 - E - N * 5
        case "mixed":
            return (N * 3 + E) // 4 + (E + N) % 3 + a
        case "min":
            return minimum(N * 16 + E, 100) + maximum(E - 8, 0)
        case _:
            return where(E < 5 + N, E, E * 2 + 1)


def condition(draw: Any) -> Bool:
    k = draw(st.integers(-2, 40))
    return draw(st.sampled_from([
        k > E, k - 20 <= E, k + 30 > N * 16 + E, N < 2, k > E % 4 + N * 4, all_of(N >= 1, k > E),
        any_of(E < 3, k > N * 4 + E % 4), ~all_of(N >= 1, k > E), k > E * 2 + N, (E % 2).eq(0), N.ne(1), k - E > N,
        k > E // 4 + N * 8, all_of(k > E % 4 + N * 4, k - 9 > E // 4 + N * 8),
    ]))  # fmt: skip


@pytest.mark.slow
@examples(60)
@given(st.data())
def test_accesses(source: st.DataObject) -> None:
    """Loads and stores of every kind, masked or not, with data from an index array now and then."""
    draw = source.draw
    dt = dtype(draw(st.sampled_from(["u8", "s32", "f32", "f16", "s64", "u4"])))
    width = draw(st.sampled_from([8, 16, 32]))
    lane = Lane("e", width)
    buffers = [
        Buffer("x", dt, (700,), "global"),
        Buffer("w", dt, (30, 24), "global"),
        Buffer("t", S32, (40,), "global"),
    ]
    row = Cast(Read("t", (N,), S32), dtype("s64"))
    values: list[Value] = [
        Read("x", (lanes_index(draw),), dt),
        Select(condition(draw), Read("x", (lanes_index(draw),), dt), Read("x", (lanes_index(draw),), dt), dt),
        Select(condition(draw), Read("w", (row, N + E % 16), dt), Literal(1, dt), dt),
        Select(condition(draw), Read("x", (Cast(Read("t", (E,), S32), dtype("s64")),), dt), Literal(0, dt), dt),
        Select(
            Comparison("<", Read("t", (E,), S32), Literal(9, S32)),
            Read("x", (lanes_index(draw),), dt),
            Literal(1, dt),
            dt,
        ),
        Select(
            Logical("and", (condition(draw), Comparison("<", Read("t", (N,), S32), Literal(14, S32)))),
            Read("w", (N, N + E % 8), dt),
            Literal(0, dt),
            dt,
        ),
    ]
    chosen = [draw(st.sampled_from(values)) for _ in range(2)]
    body: list[Stmt] = []
    for n, value in enumerate(chosen):
        buffers.append(Buffer(f"o{n}", dt, (4, 2200), "global"))
        where_ = draw(st.sampled_from([E + N, E * 3, E % 4 * 50 + E // 4, 300 - E]))
        valid = condition(draw) if draw(st.booleans()) else TRUE
        body.append(Assign(f"o{n}", (N, where_), value, lane, valid))
    k = kernel(buffers, (For("i", Const(0), Const(3), tuple(body)),), [f"o{n}" for n in range(len(chosen))])
    arrays = {b.name: data(b) for b in buffers[:2]} | {"t": RNG.integers(0, 24, 40).astype(np.int32)}
    agree(k, arrays)


@pytest.mark.parametrize("name", ["s8", "bf16", "f32", "s4"])
def test_registers_take_shuffles_and_zeros(name: str) -> None:
    """Elements of registers, partial writes, and zero in the lanes that are not valid."""
    dt = dtype(name)
    lane, half = Lane("e", 16), Lane("e", 8)
    buffers = [
        Buffer("x", dt, (64,), "global"),
        Buffer("y", dt, (4, 16), "global"),
        Buffer("r", dt, (2, 16), "register"),
    ]
    r0, u = Const(0), Var("u")
    body: tuple[Stmt, ...] = (
        Assign("r", (r0, E), Read("x", (N + E,), dt), lane, N + E < 13),
        Assign("y", (r0, E), Read("r", (r0, E), dt), lane),
        Assign("r", (Const(1), E), Read("r", (r0, 15 - E), dt), lane),
        Assign("r", (Const(1), E * 2), Read("r", (r0, E + 3), dt), half),
        Assign("r", (Const(1), Const(5)), Read("x", (N,), dt)),
        Assign("y", (Const(1), E), Read("r", (Const(1), E), dt), lane),
        Assign("r", (r0, E), Literal(1, dt), lane, N < 1),
        For("u", Const(0), Const(2), (Assign("y", (2 + u, E), Read("r", (u, E // 4 * 4), dt), lane),), "unrolled"),
        Assign("y", (Const(3), Const(2)), Read("r", (r0, Const(7)), dt)),
    )
    agree(kernel(buffers, (For("i", Const(0), Const(3), body),), ["y"]))


def test_loops_guards_and_index_values() -> None:
    """Triangular and stepped loops, empty loops, branches, floor division of negative indices, comments, prefetches."""
    s64 = dtype("s64")
    buffers = [
        Buffer("x", S32, (400,), "global"),
        Buffer("y", S32, (20, 20), "global"),
        Buffer("z", s64, (20, 20), "global"),
    ]
    low, tripled = maximum(N - 3, 0), Arith("*", Literal(3, S32), Read("x", (J,), S32), S32)
    body: tuple[Stmt, ...] = (
        Comment("rows\nof a band"),
        For("j", low, minimum(N + 4, 20), (
            Prefetch("x", (N * 20 + J + 400,)),
            If((N + J) % 3 < 2 + 0 * N, (Assign("y", (N, J), Read("x", (N * 20 + J,), S32)),)),
            If(((N - J) // 2).eq(-1), (Assign("z", (N, J), FromIndex((N - J * 3) // 4 + (J - N) % 5, s64)),)),
        )),
        For("j", Const(0), N - 5, (Assign("y", (J, N), tripled),), step=4),
        For("j", Const(5), Const(5), (Assign("y", (J, N), Literal(9, S32)),)),
        For("j", N, N + 1, (Assign("z", (J, Const(19)), FromIndex(J, s64)),)),
    )  # fmt: skip
    agree(kernel(buffers, (For("i", Const(0), Const(20), body),), ["y", "z"]))


def test_accumulation_through_memory_and_branches() -> None:
    """Registers written under a branch inside a loop: the values that leave it are the right ones."""
    lane = Lane("e", 8)
    buffers = [
        Buffer("x", F32, (6, 8), "global"),
        Buffer("y", F32, (8,), "global"),
        Buffer("r", F32, (1, 8), "register"),
    ]
    r = (Const(0), E)
    update = Assign("r", r, Arith("+", Read("r", r, F32), Read("x", (N, E), F32), F32), lane)
    body = (
        Assign("r", r, Literal(0, F32), lane),
        For("i", Const(0), Const(6), (If((N % 2).eq(1), (update,)),)),
        Assign("y", (E,), Read("r", r, F32), lane),
    )
    agree(kernel(buffers, body, ["y"]))


def test_parallel_bodies_see_outer_loops() -> None:
    """A parallel loop inside a serial one, with a stepped range and a nested parallel loop that runs inline."""
    buffers = [Buffer("x", S32, (9, 40), "global"), Buffer("y", S32, (9, 40), "global")]
    value = Arith("*", Read("x", (N, J), S32), Cast(FromIndex(N * 7 + J, S32), S32), S32)
    inner = For("q", Const(0), Const(3), (If((J % 3).eq(Var("q")), (Assign("y", (N, J), value),)),), "parallel")
    body = (For("i", Const(1), Const(9), (For("j", N, Const(40), (inner,), "parallel", step=3),)),)
    agree(kernel(buffers, body, ["y"], threads=3))


@pytest.mark.parametrize("name", ["u8", "s4", "s32", "u64", "f16", "bf16", "f32", "f64", "e4m3"])
def test_scalars_of_every_width(name: str) -> None:
    dt = dtype(name)
    buffers = [Buffer("x", dt, (32,), "global"), Buffer("y", dt, (32,), "global")]
    value = Arith("+", Read("x", (E + N * 16,), dt), Scalar("s", dt), dt)
    body = (For("i", Const(0), Const(2), (Assign("y", (E + N * 16,), value, Lane("e", 16)),), "parallel"),)
    k = kernel(buffers, body, ["y"], threads=2, scalars=(ScalarParam("s", dt),))
    agree(k, scalars={"s": 1.5 if dt.is_float else 3})


def test_what_a_cpu_lacks_is_refused() -> None:
    buffers = [Buffer("x", F32, (8,), "global"), Buffer("y", F32, (8,), "global"), Buffer("s", F32, (8,), "shared")]
    copy = Assign("y", (N,), Read("x", (N,), F32))
    with pytest.raises(UnsupportedError, match=r"block\.x"):
        print_llvm(kernel(buffers, (For("i", Const(0), Const(8), (copy,), "block.x"),), ["y"]))
    with pytest.raises(UnsupportedError, match="shared memory"):
        print_llvm(kernel(buffers, (Assign("s", (Const(0),), Read("x", (Const(0),), F32)),), ["y"]))
    silent: Intrinsic = replace(intrinsic_fma(), emit={})
    with pytest.raises(UnsupportedError, match="has no LLVM text"):
        print_llvm(matmul(silent, 8, 16, 4, 4, 1))


def test_programs_of_the_helpers_write_what_they_say() -> None:
    tensors = matmul(intrinsic_dot(), 4, 16, 8, 4, 1).program
    assert tensors.outputs == ("C",)
    assert (tensors.tensors["A"].dtype, tensors.tensors["B"].dtype) == (U8, S8)
    assert program([], []).outputs == ()


@pytest.mark.parametrize("name", ["s8", "u8", "s16", "f16", "f32"])
@pytest.mark.parametrize("width", [2, 4, 8, 16, 32])
def test_masks_survive_calls(name: str, width: int) -> None:
    """Calls spill every mask register, and what lies beyond a short vector's lanes must stay untouched.

    The mask is a row tile's: known outside the loop over rows, used by loads of wide and stores of short elements.
    """
    dt, u8 = dtype(name), dtype("u8")
    lane, columns = Lane("e", width), 2 * width + max(1, width // 2 - 1)
    column = J * width + E
    buffers = [Buffer("x", F32, (7, columns), "global"), Buffer("w", u8, (7, columns), "global")]
    buffers += [Buffer("s", F32, (columns,), "global"), Buffer("y", dt, (7, columns), "global")]
    scaled = Arith("*", Read("x", (N, column), F32), Read("s", (column,), F32), F32)
    big = Arith("*", Call("erf", (scaled,), F32), Literal(1000.0, F32), F32)
    chosen = Select(Comparison("<", Read("w", (N, column), u8), Literal(100, u8)), big, scaled, F32)
    grown = Arith("+", chosen, Call("exp", (scaled,), F32), F32)
    # The last operation is one on short elements, so that the store is no truncating one.
    least = Arith("min", Cast(grown, dt, dt.is_integer), Cast(Read("w", (N, column), u8), dt), dt)
    store = Assign("y", (N, column), least, lane, column < columns)
    # Rows downwards: what a store writes past its lanes lands in a row that is already done.
    store = replace(store, index=(6 - N, column))
    k = kernel(buffers, (For("j", Const(0), Const(3), (For("i", Const(0), Const(7), (store,)),)),), ["y"])
    agree(k)
    # The wrong code needs a spill between two uses; what leads to it is visible in the text (`lanes.clean_width`).
    sizes = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "float": 32, "double": 64}
    compares = re.findall(r"icmp \w+ <(\d+) x (\w+)>", print_llvm(k))
    assert compares
    assert all(int(n) * sizes[element] >= 128 for n, element in compares)


@pytest.mark.parametrize("case", sorted(CASES))
def test_cases_shared_with_the_other_printers(case: str) -> None:
    """Program, loop tree and compiled code agree."""
    k, scalars = CASES[case]()
    host = llvm.get_host_cpu_features()
    missing = {f for i in k.intrinsics for f in i.requires if not host.get(f.replace("avx512_", "avx512"))}
    if missing - {"avx_vnni"} or ("avx_vnni" in missing and not host.get("avxvnni")):
        pytest.skip(f"this CPU lacks {' '.join(sorted(missing))}")
    arrays = case_inputs(k)
    want = run_program(k.program, arrays, scalars)
    got = CompiledKernel(k, load(print_llvm(k)))(**arrays, **scalars)
    for name, array in zip(k.program.outputs, got if isinstance(got, tuple) else (got,), strict=True):
        np.testing.assert_allclose(array.astype(float), want[name].astype(float), rtol=1e-4, atol=1e-4, err_msg=name)
