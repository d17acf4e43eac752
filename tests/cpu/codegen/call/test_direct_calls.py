"""Calls of compiled kernels that go straight to the code: the same answers and refusals as the general way has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.call.direct import READABLE
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.errors import UsageError
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.search.tuning.baseline import literal_plan

SUM = """
def f(A: f32[m, n], s: f32, B: const[f32[n]], Y: f32[m, n], Z: f32[m], *, m=3, n=5):
    for i, j in grid(m, n):
        Y[i, j] = A[i, j] * s + B[j]
    for i in range(m):
        Z[i] = 0
        for j in range(n):
            Z[i] += Y[i, j]
"""


class OnlyDirect(CompiledKernel):
    """A kernel none of whose calls goes the general way."""

    def _run(self, given: Any, packed: Any) -> Any:
        pytest.fail("the general way")


def compiled(text: str, direct: bool = READABLE, kind: type[CompiledKernel] = CompiledKernel) -> CompiledKernel:
    plan = literal_plan(parse(text), load_target("x86-avx2"))
    kernel = lower(plan, plan.space.schedule(0))
    return kind(kernel, load(print_llvm(kernel)), direct=direct)


def operands() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.random((3, 5), np.float32), rng.random(5, np.float32)


@pytest.fixture
def kernel() -> CompiledKernel:
    """What is well formed does not go the general way."""
    return compiled(SUM, kind=OnlyDirect if READABLE else CompiledKernel)


def test_numpy_lays_out_its_arrays_as_expected() -> None:
    assert READABLE


def test_outputs_are_made_or_taken(kernel: CompiledKernel) -> None:
    a, b = operands()
    want = a * np.float32(2) + b
    made, sums = kernel(a, 2.0, b)
    np.testing.assert_array_equal(made, want)
    np.testing.assert_allclose(sums, want.sum(1), rtol=1e-6)
    assert kernel(a, 2.0, b)[0] is not made
    y, z = np.full((3, 5), np.nan, np.float32), np.empty(3, np.float32)
    found = kernel(a, 2.0, b, y, z)
    assert found[0] is y
    assert found[1] is z
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(kernel(a, B=b, s=2.0)[0], want)
    assert kernel(B=b, Z=z, A=a, Y=y, s=2.0)[1] is z
    bound = kernel.prepack(B=b)
    np.testing.assert_array_equal(bound(s=2.0, A=a)[0], want)
    np.testing.assert_array_equal(bound(a, 2.0)[0], want)
    assert bound(a, 2.0, y, z)[1] is z


def test_values_in_order_and_by_name_mean_what_they_mean_the_general_way() -> None:
    """All ways to give some first values in order and any of all names by name, some twice, some not at all."""
    straight, whole = compiled(SUM), compiled(SUM, direct=False)
    a, b = operands()
    names = ["A", "s", "B", "Y", "Z"]

    def told(kernel: CompiledKernel, given: int, named: Sequence[str]) -> Any:
        values = dict(zip(names, (a, 2.0, b, np.zeros((3, 5), np.float32), np.zeros(3, np.float32)), strict=True))
        values["T"] = a
        try:
            return [r.tolist() for r in kernel(*[values[n] for n in names[:given]], **{n: values[n] for n in named})]
        except UsageError as error:
            return error.message

    answered = 0
    for given in range(6):
        for count in range(7):
            for named in combinations(["Z", "Y", "B", "s", "A", "T"], count):
                want = told(whole, given, named)
                assert told(straight, given, named) == want
                answered += not isinstance(want, str)
    assert answered > 10


def test_what_is_only_read_may_be_the_same_and_frozen() -> None:
    kernel = compiled("def f(A: f32[4], B: f32[4], Y: f32[4]):\n    for i in range(4):\n        Y[i] = A[i] + B[i]")
    a = np.arange(4, dtype=np.float32)
    a.flags.writeable = False
    np.testing.assert_array_equal(kernel(a, a), a * 2)


@pytest.mark.parametrize(("change", "said"), [
    (lambda a: a.astype(np.float64), "A is float64"),
    (lambda a: a.view(np.int32), "A is int32"),
    (lambda a: a.byteswap().view(a.dtype.newbyteorder()), "A is >f4"),
    (lambda a: a[:2], "A is float32"),
    (lambda a: a.reshape(15), "A is float32"),
    (lambda a: a.reshape(3, 5, 1), "A is float32"),
    (lambda a: np.zeros((), np.float32), "A is float32"),
    (lambda a: np.asfortranarray(a), "not contiguous"),
    (lambda a: np.repeat(a, 2, 1)[:, ::2], "not contiguous"),
    (lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 5), "whole elements"),
    (lambda a: a.tolist(), "not a numpy array"),
    (lambda a: None, "not a numpy array"),
    (lambda a: 7, "not a numpy array"),
])  # fmt: skip
def test_what_is_wrong_is_said(change: Any, said: str) -> None:
    kernel, (a, b) = compiled(SUM), operands()
    with pytest.raises(UsageError, match=said):
        kernel(change(a), 2.0, b)
    with pytest.raises(UsageError, match=said):
        kernel.prepack(B=b)(change(a), 2.0)


def test_large_outputs_are_aligned() -> None:
    kernel = compiled("def f(A: f32[4096], Y: f32[4096]):\n    for i in range(4096):\n        Y[i] = A[i]")
    a = np.arange(4096, dtype=np.float32)
    kept = [kernel(a) for _ in range(5)]
    assert {k.ctypes.data % 64 for k in kept} == {0}
    assert all((k == a).all() for k in kept)


def test_subclasses_go_the_general_way() -> None:
    kernel, (a, b) = compiled(SUM), operands()
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(kernel(a.view(np.matrix), 2.0, b)[0], a * np.float32(2) + b)
    with pytest.raises(UsageError, match="no array for B"):
        kernel(a, 2.0)
    with pytest.raises(UsageError, match="A is given twice"):
        kernel(a, 2.0, A=a)
    with pytest.raises(UsageError, match="unknown argument 'C'"):
        kernel(a, 2.0, C=b)
    np.testing.assert_array_equal(kernel(a, 2.0, b, Y=np.zeros_like(a))[0], a * np.float32(2) + b)
    with pytest.raises(UsageError, match="takes 5 arguments"):
        kernel(a, 2.0, b, a, a, a)


def test_overlaps_and_frozen_outputs_are_refused() -> None:
    kernel, (a, b) = compiled(SUM), operands()
    memory = np.zeros(40, np.float32)
    z = np.zeros(3, np.float32)
    y = memory[:15].reshape(3, 5)
    kernel(memory[15:30].reshape(3, 5), 1.0, b, y, z)  # side by side
    for args in (
        (y, 1.0, b, y, z),
        (memory[14:29].reshape(3, 5), 1.0, b, y, z),
        (a, 1.0, memory[10:15], y, z),
        (a, 1.0, b, y, memory[14:17]),
    ):
        with pytest.raises(UsageError, match="overlaps"):
            kernel(*args)
    constant = memory[:5]
    expected = kernel(a, 1.0, constant.copy())
    for result, wanted in zip(kernel.prepack(B=constant)(a, 1.0, y, z), expected, strict=True):  # it has a copy
        np.testing.assert_array_equal(result, wanted)
    y.flags.writeable = False
    with pytest.raises(UsageError, match="read-only"):
        kernel(a, 1.0, b, y, z)


@pytest.mark.parametrize(("dtype", "value", "want"), [
    ("u8", 255, 255), ("s4", -8, -8), ("s32", -7, -7), ("s32", np.int8(-7), -7), ("s32", 7.0, 7),
    ("u64", 2**63 + 1, 2**63 + 1), ("f64", 0.1, 0.1), ("bf16", 1.5, 1.5),
    ("f16", 0.5, 0.5), ("f32", 2, 2.0), ("f32", np.float32(0.1), 0.1), ("f32", -np.inf, -np.inf),
])  # fmt: skip
def test_scalars_of_every_kind(dtype: str, value: Any, want: Any) -> None:
    kernel = compiled(f"def f(s: {dtype}, Y: {dtype}[n], *, n=3):\n    for i in range(n):\n        Y[i] = s")
    assert (kernel(value) == np.array(want).astype(kernel.kernel.program.tensors["Y"].dtype.numpy)).all()


@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize(
    ("dtype", "value", "said"),
    [
        ("s32", 2**40, "s is s32, and 1099511627776 is not in -2147483648 to 2147483647"),
        ("s32", np.int64(2**40), "is not in -2147483648 to 2147483647"),
        ("u8", -1, "is not in 0 to 255"),
        ("s32", "2", "s is s32, and '2' is no number"),
        ("s32", None, "None is no number"),
        ("s32", 2.5, "2.5 is no integer"),
        ("f32", "2", "s is f32, and '2' is no number"),
        ("f32", None, "None is no number"),
        ("f32", 1e300, "1e\\+300 is not in -3.40"),
        ("bf16", [1.0], "no number"),
    ],
)
def test_a_scalar_that_is_no_such_number_is_refused(
    readable: bool, dtype: str, value: Any, said: str
) -> None:
    kernel = compiled(f"def f(s: {dtype}, Y: {dtype}[n], *, n=3):\n    for i in range(n):\n        Y[i] = s", readable)
    with pytest.raises(UsageError, match=said):
        kernel(value)
    with pytest.raises(UsageError, match=said):
        kernel(s=value)


def test_what_a_program_assumes_of_a_scalar_is_asked_of_calls() -> None:
    text = "def f(A: s32[n], s: s32, Y: s32[n], *, n=3):\n    assume(0 <= s <= 6)\n"
    kernel = compiled(text + "    for i in range(n):\n        Y[i] = A[i] + s")
    a = np.arange(3, dtype=np.int32)
    assert list(kernel(a, 6)) == [6, 7, 8]
    with pytest.raises(UsageError, match="s is s32, and 7 is not in 0 to 6"):
        kernel(a, 7)


def test_masks_are_refused() -> None:
    kernel, (a, b) = compiled(SUM), operands()
    masked = np.ma.array(a, mask=a > 0.5)
    with pytest.raises(UsageError, match=r"A is a masked array.*\n?.*A.filled"):
        kernel(masked, 2.0, b)
    with pytest.raises(UsageError, match="B is a masked array"):
        kernel.prepack(B=np.ma.array(b))


def test_elsewhere_the_general_way_answers() -> None:
    kernel, (a, b) = compiled(SUM, direct=False), operands()
    np.testing.assert_array_equal(kernel(a, 2.0, b)[0], a * np.float32(2) + b)
    np.testing.assert_array_equal(kernel.prepack(B=b)(a, 2.0)[0], a * np.float32(2) + b)


def test_a_tensor_may_be_called_self() -> None:
    """As the language lets it: the method's own name stood in the way."""
    kernel = compiled(SUM.replace("A[", "self[").replace("A:", "self:"))
    a, b = np.ones((3, 5), np.float32), np.ones(5, np.float32)
    y, _ = kernel(self=a, s=2.0, B=b)
    np.testing.assert_array_equal(y, 3 * np.ones((3, 5)))
