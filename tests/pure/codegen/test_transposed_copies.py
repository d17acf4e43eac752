"""Copies whose lanes lie apart are transposed in registers: the same elements in the same places."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.passes.register_transpose import column, quick_square, riffles
from autosched.codegen.passes.transposed_copies import transpose_copies
from autosched.codegen.tree.kernel import Assign, Buffer, For, Function, Kernel, Lane
from autosched.codegen.tree.text import print_kernel
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Read, Value
from autosched.logic import TRUE, Bool, Const, Int, Var

LANE = Var("e")


def kernel(
    body: Callable[[Callable[..., Assign]], tuple[For | Assign, ...]], t: str = "f32", rows: int = 40, columns: int = 37
) -> Kernel:
    """A kernel that copies A into B; `body` makes statements of (index in B, index in A, lanes)."""
    sizes = f"A: {t}[{rows}, {columns}], B: {t}[{rows * columns}]"
    program = parse(f"def f({sizes}):\n    for i in range({rows * columns}):\n        B[i] = A[0, 0]\n")
    buffers = {n: Buffer(n, x.dtype, x.extents, "global", n) for n, x in program.tensors.items()}

    def copy(to: Int, of: tuple[Int, Int], lanes: int, valid: Bool = TRUE, value: Value | None = None) -> Assign:
        return Assign("B", (to,), value or Read("A", of, DTYPES[t]), Lane("e", lanes), valid)

    return Kernel("f", program, buffers, (), Function("main", ("A", "B"), body(copy)))


def outputs(k: Kernel) -> np.ndarray:
    a = np.arange(np.prod(k.program.tensors["A"].extents)).reshape(k.program.tensors["A"].extents) % 121
    kind = k.program.tensors["A"].dtype.numpy
    return run_kernel(k, {"A": a.astype(kind), "B": np.zeros(k.program.tensors["B"].extents, kind)})["B"]


def same(k: Kernel) -> Kernel:
    """The kernel after the pass, which computes the same."""
    turned = transpose_copies(k)
    check_kernel(turned)
    np.testing.assert_array_equal(outputs(turned), outputs(k))
    return turned


P, J = Var("p"), Var("j")


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("steps", [16, 19, 37])
@pytest.mark.parametrize("t", ["f32", "s8", "f64", "bf16"])
def test_rows_and_steps_change_places(lanes: int, steps: int, t: str) -> None:
    plain = kernel(lambda c: (For("p", Const(0), Const(steps), (c(P * lanes + LANE, (LANE, P), lanes),)),), t)
    turned = same(plain)
    assert "turned" in turned.buffers
    assert print_kernel(turned).count("for p in") == (1 if steps % lanes == 0 else 2)


@pytest.mark.parametrize("group", [2, 4])
def test_groups_of_neighbours_move_together(group: int) -> None:
    lanes, steps = 8 * group, 36 // group
    at = (LANE // group, P * group + LANE % group)
    plain = kernel(lambda c: (For("p", Const(0), Const(steps), (c(P * lanes + LANE, at, lanes),)),), "s8")
    assert "turned" in same(plain).buffers


def test_loops_inside_stay_inside() -> None:
    def body(c: Callable[..., Assign]) -> tuple[For, ...]:
        inner = For("j", Const(0), Const(2), (c((P * 2 + J) * 16 + LANE, (J * 16 + LANE, P), 16),), "unrolled")
        return (For("p", Const(1), Const(35), (inner,)),)

    assert "turned" in same(kernel(body)).buffers


def test_loops_without_iterations_stay_without() -> None:
    """Of the third block nothing is left."""

    def body(c: Callable[..., Assign]) -> tuple[For, ...]:
        copied = For("p", Var("q") * 16, Const(20), (c(P * 16 + LANE, (LANE, P), 16),))
        return (For("q", Const(0), Const(3), (copied,)),)

    assert "turned" in same(kernel(body)).buffers


def test_two_writes_of_one_element_keep_their_order() -> None:
    """Steps two apart write the same place; the later one counts."""

    def loop(c: Callable[..., Assign]) -> tuple[For, ...]:
        return (For("p", Const(0), Const(32), (c(P // 2 * 16 + LANE, (LANE, P), 16),)),)

    def pair(c: Callable[..., Assign]) -> tuple[For, ...]:
        copies = c(P * 16 + LANE, (LANE, P), 16), c(P * 16 + LANE + 16, (LANE + 16, P), 16)
        return (For("p", Const(0), Const(32), copies),)

    assert "turned" not in same(kernel(loop)).buffers
    assert "turned" not in same(kernel(pair)).buffers


@pytest.mark.parametrize("why", ["masked", "short", "neighbours", "computed", "three lanes"])
def test_other_copies_stay(why: str) -> None:
    def body(c: Callable[..., Assign]) -> tuple[For, ...]:
        lanes, steps = (3 if why == "three lanes" else 16), (15 if why == "short" else 32)
        valid = LANE < 9 if why == "masked" else TRUE
        of = (P, LANE) if why == "neighbours" else (LANE, P)
        value = None
        if why == "computed":
            value = Read("A", (LANE, P * P % 37), DTYPES["f32"])
        return (For("p", Const(0), Const(steps), (c(P * lanes + LANE, of, lanes, valid, value),)),)

    assert "turned" not in same(kernel(body)).buffers


@pytest.mark.parametrize(("lanes", "size"), [(4, 4), (8, 4), (16, 4), (16, 1), (8, 8), (8, 2)])
def test_stages_stay_within_sixteen_bytes_or_move_wholes(lanes: int, size: int) -> None:
    stages, within = quick_square(lanes, size), 16 // size
    assert sorted(column(stages, lanes, q) for q in range(lanes)) == list(range(lanes))
    for stage in stages:
        entered, left = 1 << stage.enters, 1 << stage.leaves
        assert max(entered, left) < within or min(entered, left) >= within


def test_riffles_are_as_many_as_bits_of_the_rows() -> None:
    assert [s.bit for s in riffles(8, 16)] == [2, 1, 0]


def test_a_buffer_that_is_copied_into_itself_stays() -> None:
    """Its elements may have changed before they are read."""
    value = Read("B", (LANE * 40 + P,), DTYPES["f32"])
    plain = kernel(lambda c: (For("p", Const(0), Const(32), (c(P * 16 + LANE, (LANE, P), 16, value=value),)),))
    assert transpose_copies(plain) is plain
