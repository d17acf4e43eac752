"""The interpreter computes what the oracle does, and it finds faults: races, addresses outside, unwritten memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel
from support.programs.kernel_cases import CASES, build, case_inputs, literal, loop, matmul_fma, random_array

from autosched.codegen.interpret.emulate import RegisterEmulator
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.interpret.storage import OutOfBoundsError, RaceError, UninitialisedError
from autosched.codegen.tree.kernel import Assign, Buffer, For, If, Kernel, KernelError, Lane, Stmt
from autosched.errors import UsageError
from autosched.ir import parse, run
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Arith, Read
from autosched.logic import Const, Var
from autosched.tensorize.check.batched import run_batched
from autosched.tensorize.spec.catalogue import Catalogue

F32 = DTYPES["f32"]
i, j, e = Var("i"), Var("j"), Var("e")


@pytest.mark.parametrize("name", CASES)
def test_hand_made_kernels_compute_the_program(name: str) -> None:
    kernel, scalars = CASES[name]()
    check_kernel(kernel)
    for seed in range(3):
        arrays = case_inputs(kernel, seed)
        before = {n: a.copy() for n, a in arrays.items()}
        got, want = run_kernel(kernel, arrays, scalars, seed=seed), run(kernel.program, arrays, scalars)
        assert got.keys() == want.keys()
        for output in want:
            np.testing.assert_array_equal(got[output], want[output])
        for n, a in arrays.items():
            np.testing.assert_array_equal(a, before[n])


def copy_kernel(*body: Stmt, more: tuple[Buffer, ...] = (), n: int = 8) -> Kernel:
    program = parse(f"def copy(X: f32[{n}], Y: f32[{n}]):\n    for i in range({n}):\n        Y[i] = X[i]\n")
    return build(program, list(more), list(body), threads=2)


def run_copy(*body: Stmt, more: tuple[Buffer, ...] = (), check: bool = True) -> Any:
    kernel = copy_kernel(*body, more=more)
    if check:
        check_kernel(kernel)
    return run_kernel(kernel, {"X": np.arange(8, dtype=np.float32)})["Y"]


X_I = Read("X", (i,), F32)


def test_two_parallel_iterations_that_write_one_element_are_a_race() -> None:
    with pytest.raises(RaceError, match=r"loop i.*Y\[.\].*written") as caught:
        run_copy(loop("i", 8, Assign("Y", (i // 2,), X_I), kind="parallel"))
    assert "in: Y[i // 2] = X[i]" in str(caught.value)
    run_copy(loop("i", 8, Assign("Y", (i // 2,), X_I)))


def test_a_parallel_iteration_that_reads_what_another_writes_is_a_race() -> None:
    shift = Assign("Y", (i,), Arith("+", X_I, Read("Y", ((i + 1) % 8,), F32), F32))
    fill = loop("i", 8, Assign("Y", (i,), X_I))
    with pytest.raises(RaceError):
        run_copy(fill, loop("i", 8, shift, kind="parallel"))
    run_copy(fill, loop("i", 8, shift))


def test_nested_parallel_loops_and_joins_are_no_race() -> None:
    own = Assign("Y", (i * 2 + j,), Read("X", (i * 2 + j,), F32))
    nest = loop("i", 4, loop("j", 2, own, kind="parallel"), kind="parallel")
    np.testing.assert_array_equal(run_copy(nest, nest), np.arange(8))
    same = Assign("Y", (i,), X_I)
    with pytest.raises(RaceError):
        run_copy(loop("i", 4, loop("j", 2, same, kind="parallel")))
    run_copy(loop("i", 8, loop("j", 2, same), kind="parallel"))


@pytest.mark.parametrize("index", [i - 1, i + 1], ids=str)
def test_an_address_outside_is_named(index: Any) -> None:
    with pytest.raises(OutOfBoundsError, match=r"X\[(-1|8)\] is outside X: \[8\]"):
        run_copy(loop("i", 8, Assign("Y", (i,), Read("X", (index,), F32))))


def test_only_valid_lanes_are_checked() -> None:
    at = i * 3 + e
    tail = Assign("Y", (at,), Read("X", (at,), F32), Lane("e", 3), at < 8)
    np.testing.assert_array_equal(run_copy(loop("i", 3, tail)), np.arange(8))
    with pytest.raises(OutOfBoundsError, match=r"lane 2"):
        run_copy(loop("i", 3, replace(tail, valid=at < 9)))


def test_two_lanes_that_write_one_element_are_an_error() -> None:
    with pytest.raises(KernelError, match="two lanes"):
        run_copy(Assign("Y", (e // 2,), Read("X", (e,), F32), Lane("e", 4)))


def test_unwritten_memory_cannot_be_read() -> None:
    register = Buffer("t", F32, (2, 4), "register")
    body = loop("i", 8, Assign("Y", (i,), Read("t", (Const(1), Const(0)), F32)))
    with pytest.raises(UninitialisedError, match=r"t\[1, 0\] is read but was never written"):
        run_copy(body, more=(register,))
    fill = Assign("t", (Const(1), e), literal(2.0, "f32"), Lane("e", 4))
    np.testing.assert_array_equal(run_copy(fill, body, more=(register,)), np.full(8, 2))
    with pytest.raises(UninitialisedError, match="Y"):
        run_copy(loop("i", 8, Assign("Y", (i,), Read("Y", (i,), F32))))


def test_registers_do_not_pass_from_one_parallel_iteration_to_the_next() -> None:
    register = Buffer("t", F32, (1,), "register")
    fill = If(i < 1, (Assign("t", (Const(0),), X_I),))
    use = Assign("Y", (i,), Read("t", (Const(0),), F32))
    run_copy(loop("i", 8, fill, use), more=(register,))
    with pytest.raises(UninitialisedError):
        run_copy(loop("i", 8, fill, use, kind="parallel"), more=(register,))
    after = Assign("Y", (Const(0),), Read("t", (Const(0),), F32))
    with pytest.raises(UninitialisedError):
        run_copy(loop("i", 8, Assign("t", (Const(0),), X_I), use, kind="parallel"), after, more=(register,))


def test_invalid_lanes_of_a_register_become_zero_and_memory_stays() -> None:
    register = Buffer("t", F32, (4,), "register")
    part = Assign("t", (e,), Read("X", (e + 4,), F32), Lane("e", 4), e < 2)
    show = Assign("Y", (e + 2,), Read("t", (e,), F32), Lane("e", 4), e < 3)
    np.testing.assert_array_equal(run_copy(part, show, more=(register,)), [0, 0, 4, 5, 0, 0, 0, 0])


def test_arrays_are_checked() -> None:
    kernel, _ = matmul_fma()
    arrays = case_inputs(kernel)
    with pytest.raises(UsageError, match="no array for the input B"):
        run_kernel(kernel, {"A": arrays["A"]})
    with pytest.raises(UsageError, match="A is float64"):
        run_kernel(kernel, arrays | {"A": arrays["A"].astype(np.float64)})


def plain(name: str) -> bool:
    """Whether the semantics, run as any program is, says all there is to say of the bits. Of `wgmma`'s many n, two."""
    if name.startswith("cuda/wgmma") and not name.startswith(("cuda/wgmma.m64n8k", "cuda/wgmma.m64n24k")):
        return False
    intrinsic = Catalogue.builtin()[name]
    numerics = intrinsic.numerics
    fused = numerics.fused and intrinsic.stage.assign.op == "+="
    chained = numerics.sum == "chain" and numerics.start == "accumulator" and not fused
    return intrinsic.kind == "compute" and chained and numerics.rounding == "rne" and not numerics.flushed


@pytest.mark.sampled(103)
@pytest.mark.parametrize("name", [n for n in Catalogue.builtin() if plain(n)])
def test_emulator_agrees_with_the_semantics_run_as_a_program(name: str) -> None:
    """Two ways to issue an intrinsic: its model, and the language's interpreter on its semantics."""
    intrinsic = Catalogue.builtin()[name]
    emulate, rng, cases = RegisterEmulator(intrinsic), np.random.default_rng(3), 4
    arrays = {o.name: random_array(o.dtype, (cases, *o.shape), rng) for o in intrinsic.operands.values()}
    want = run_batched(intrinsic.program, arrays, intrinsic.accumulator.name)
    for case in range(cases):
        registers = {}
        for o in intrinsic.operands.values():
            registers[o.name] = arrays[o.name][case][tuple(o.order.points()[0])].reshape(-1)
        target = intrinsic.accumulator
        expected = want[case][tuple(target.order.points()[0])].reshape(-1)
        np.testing.assert_array_equal(emulate(registers), expected)


ALIGNED = [n for n in Catalogue.builtin() if "wgmma" not in n or "m64n8k" in n]


@pytest.mark.parametrize("name", [n for n in ALIGNED if Catalogue.builtin()[n].numerics.sum == "aligned"])
def test_aligned_sums_are_exact_where_nothing_is_cut(name: str) -> None:
    """Tensor-core addition loses low bits only: small integers come out as the plain dot product."""
    intrinsic = Catalogue.builtin()[name]
    rng, registers, exact = np.random.default_rng(4), {}, {}
    for o in intrinsic.operands.values():
        exact[o.name] = rng.integers(-4, 5, o.shape).astype(o.dtype.numpy)
        registers[o.name] = exact[o.name][tuple(o.order.points()[0])].reshape(-1)
    target = intrinsic.accumulator
    want = run(intrinsic.program, exact)[target.name][tuple(target.order.points()[0])].reshape(-1)
    np.testing.assert_array_equal(RegisterEmulator(intrinsic)(registers), want)


def test_check_refuses_broken_kernels() -> None:
    kernel, _ = matmul_fma()
    tile: Any = kernel.main.body[0]

    def with_body(*body: Stmt) -> Kernel:
        return replace(kernel, main=replace(kernel.main, body=body))

    register = Buffer("t", F32, (2, 4), "register")
    for broken, message in [
        (with_body(Assign("Z", (i,), literal(0.0, "f32"))), "Z is not declared"),
        (with_body(loop("i", 2, Assign("C", (i,), literal(0.0, "f32")))), "rank 2, indexed by 1"),
        (with_body(Assign("C", (Const(0), j), literal(0.0, "f32"))), "uses j"),
        (with_body(loop("i", 2, Assign("A", (i, i), literal(0.0, "f32")))), "only read"),
        (with_body(loop("i", 2, Assign("C", (i, i), literal(0, "s32")))), "is f32, assigned a value of s32"),
        (with_body(For("i", Const(0), Var("n"), (tile,))), "uses n"),
        (with_body(loop("i", 2, For("j", Const(0), i, (), "unrolled"))), "unrolled loop j has the bound i"),
        (with_body(loop("i", 2, loop("i", 2))), "inside a loop or lane of that name"),
        (
            with_body(
                Assign("C", (e, e), literal(0.0, "f32"), Lane("e", 4)),
                loop("i", 2, Assign("C", (i, e), literal(0.0, "f32"))),
            ),
            "uses e",
        ),
        (with_body(loop("i", 2, kind="sideways")), "unknown kind"),
    ]:
        with pytest.raises(KernelError, match=message):
            check_kernel(broken)
    indexed = copy_kernel(loop("i", 2, Assign("t", (i, e), literal(0.0, "f32"), Lane("e", 4))), more=(register,))
    with pytest.raises(KernelError, match="register t is indexed by the serial i"):
        check_kernel(indexed)
