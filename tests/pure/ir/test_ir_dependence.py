# ruff: noqa: E501  (programs stand on one line)
"""Loop-carried dependences: the oracle keeps their order, and arguments are checked."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fuzz.plain import run_plain

import autosched.ir as ir
from autosched.errors import UsageError
from autosched.ir.oracle.nests import LoopNest, Serial, plan

CASES = {
    "prefix sum": "for i in range(1, 12):\n    A[i] += A[i - 1]",
    "prefix sum backwards": "for i in range(11):\n    A[10 - i] += A[11 - i]",
    "forward copy": "for i in range(11):\n    A[i] = A[i + 1]",
    "smear": "for i in range(11):\n    A[i + 1] = A[i]",
    "in-place stencil": "for t in range(3):\n    for i in range(1, 11):\n        A[i] = A[i - 1] + A[i] + A[i + 1]",
    "two-array stencil": "for t in range(3):\n    for i in range(1, 11):\n        B[i] = A[i - 1] + A[i + 1]\n    for i in range(1, 11):\n        A[i] = B[i]",
    "recurrence of two": "for i in range(2, 12):\n    A[i] = A[i - 1] * 3 + A[i - 2]",
    "even and odd": "for i in range(6):\n    A[2 * i] = A[2 * i + 1]",
    "strided reach": "for i in range(4):\n    A[i + 8] = A[2 * i] + A[i + 7]",
    "later statement feeds earlier": "for i in range(1, 12):\n    B[i] = A[i - 1]\n    A[i] = B[i] + 1",
    "earlier statement feeds later": "for i in range(1, 12):\n    A[i] = A[i] + 1\n    B[i] = A[i - 1]",
    "last wins": "for i in range(12):\n    B[0] = A[i]",
    "last wins in two": "for i, j in grid(3, 4):\n    B[j] = A[i * 4 + j]",
    "guarded accumulation": "for i in range(12):\n    if A[i] > 0:\n        B[0] += A[i]\n    if B[0] > 2:\n        B[1] = A[i]",
    "guard reads what it writes": "for i in range(11):\n    if A[i] > 0:\n        A[i + 1] = 0 - A[i]",
    "histogram": "for i in range(12):\n    B[I[i]] += 1",
    "scatter": "for i in range(12):\n    B[I[i]] = A[i]",
    "gather from itself": "for i in range(12):\n    A[i] = A[I[i]] + 1",
    "wavefront": "for i, j in grid(3, 3):\n    A[i + j + 1] += A[i + j]",
    "triangular": "for i in range(12):\n    for j in range(i):\n        B[i] += A[j]",
    "in-place triangular solve": "for i in range(12):\n    for j in range(i):\n        A[i] -= A[j]",
    "reduction reads neighbour": "for i in range(1, 4):\n    for j in range(3):\n        A[i] += A[i - 1] * B[j]",
    "guard before two": "for i in range(12):\n    if A[i] > 0:\n        A[i] = 0\n        B[i] = A[i] + 1",
    "max scan": "for i in range(1, 12):\n    A[i] = max(A[i], A[i - 1])",
    "product": "for i in range(12):\n    B[0] *= A[i]",
    "wrap around": "for i in range(12):\n    A[(i + 5) % 12] = A[i]",
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["s32", "f32"])
def test_order_is_kept(name: str, dtype: str) -> None:
    body = "\n".join("    " + line for line in CASES[name].split("\n"))
    program = ir.parse(f"def f(A: {dtype}[12], B: {dtype}[12], I: s32[12]):\n{body}\n")
    rng = np.random.default_rng(1)
    kind = program.tensors["A"].dtype.numpy
    data = {
        "A": rng.integers(-3, 4, 12).astype(kind),
        "B": rng.integers(-3, 4, 12).astype(kind),
        "I": rng.integers(0, 12, 12).astype(np.int32),
    }
    data = {n: a for n, a in data.items() if n in program.tensors}
    before = {n: a.copy() for n, a in data.items()}
    fast, slow = ir.run(program, data), run_plain(program, data)
    for out in program.outputs:
        np.testing.assert_array_equal(fast[out], slow[out])
    for n, a in data.items():
        np.testing.assert_array_equal(a, before[n], err_msg="an input was changed")


def free(text: str) -> list[set[str]]:
    """The axes that may run at once, one set a nest; serial loops are left out."""

    def visit(unit: LoopNest | Serial) -> list[set[str]]:
        return [set(unit.free)] if isinstance(unit, LoopNest) else [x for u in unit.body for x in visit(u)]

    return [x for u in plan(ir.parse(text).body) for x in visit(u)]


def test_what_is_independent_runs_at_once() -> None:
    assert free(str(ir.workload("matmul", m=4, n=4, k=4))) == [{"i", "j"}, {"i", "j"}]
    grouped = ir.workload("conv2d", h=6, w=6, ci=4, co=4, groups=2)
    assert all({"y", "x", "g", "o"} <= axes for axes in free(str(grouped)))
    assert free(
        "def f(A: f32[8, 8]):\n    for i in range(1, 8):\n        for j in range(8):\n            A[i, j] += A[i - 1, j]\n"
    ) == [{"j"}]
    assert free("def f(A: f32[16]):\n    for i in range(8):\n        A[i] = A[i + 8]\n") == [{"i"}]
    assert free("def f(A: f32[16]):\n    for i in range(8):\n        A[2 * i] = A[2 * i + 1]\n") == [{"i"}]
    jacobi = "def f(A: f32[8], B: f32[8]):\n    for t in range(4):\n        for i in range(1, 7):\n            B[i] = A[i - 1] + A[i + 1]\n        for i in range(1, 7):\n            A[i] = B[i]\n"
    assert free(jacobi) == [{"i"}, {"i_2"}]


GEMV = "def f(A: f32[4, 4], x: const[f32[4]], s: f32, C: f32[4]):\n    for i, j in grid(4, 4):\n        C[i] += s * A[i, j] * x[j]\n"


def arguments() -> dict[str, Any]:
    return {"A": np.ones((4, 4), np.float32), "x": np.ones(4, np.float32), "C": np.ones(4, np.float32)}


def test_run_checks_its_arguments() -> None:
    program = ir.parse(GEMV)
    good = arguments()
    np.testing.assert_array_equal(ir.run(program, good, {"s": 2.0})["C"], np.full(4, 9, np.float32))
    shared = np.ones(16, np.float32)
    wrong: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({**good, "Q": good["x"]}, {"s": 1}, "no tensor 'Q'"),
        ({n: a for n, a in good.items() if n != "x"}, {"s": 1}, "needs the array x"),
        ({**good, "x": good["x"].astype(np.float64)}, {"s": 1}, "the array is float64"),
        ({**good, "x": np.ones(5, np.float32)}, {"s": 1}, "has shape"),
        ({**good, "x": good["C"]}, {"s": 1}, "overlap"),
        ({**good, "A": shared.reshape(4, 4), "C": shared[4:8]}, {"s": 1}, "overlap"),
        (good, {}, "needs a value for the scalar s"),
        (good, {"s": 1, "z": 2}, "no run-time scalar 'z'"),
        (good, {"s": "one"}, "no number"),
    ]
    for arrays, scalars, message in wrong:
        with pytest.raises(UsageError) as caught:
            ir.run(program, arrays, scalars)
        assert message in str(caught.value)
    ir.run(program, {**good, "A": shared.reshape(4, 4), "x": shared[:4]}, {"s": 1})  # inputs may share memory


def test_data_dependent_indices_are_checked_when_run() -> None:
    program = ir.parse(
        "def f(A: f32[4], I: s32[3], C: f32[3]):\n    for i in range(3):\n        C[i] = A[I[i]]\n", "gather.py"
    )
    good = {"A": np.arange(4, dtype=np.float32), "I": np.array([3, 0, 1], np.int32)}
    np.testing.assert_array_equal(ir.run(program, good)["C"], [3, 0, 1])
    for bad in ([0, 4, 0], [0, -1, 0]):
        with pytest.raises(UsageError, match="the program reaches index") as caught:
            ir.run(program, {**good, "I": np.array(bad, np.int32)})
        assert caught.value.location is not None
        assert caught.value.location.line == 3


def test_symbolic_sizes_come_from_the_arrays() -> None:
    program = ir.workload("matmul", m="1..64", n=5, k="1..9", a="u8", b="s8")
    a, b = np.full((3, 7), 2, np.uint8), np.full((7, 5), -1, np.int8)
    np.testing.assert_array_equal(ir.run(program, {"A": a, "B": b})["C"], np.full((3, 5), -14))
    with pytest.raises(UsageError, match="outside its range"):
        ir.run(program, {"A": np.ones((65, 7), np.uint8), "B": b})
    with pytest.raises(UsageError, match="has shape"):
        ir.run(program, {"A": a, "B": np.ones((8, 5), np.int8)})


def test_packed_and_odd_dtypes_wrap_and_round() -> None:
    program = ir.parse(
        "def f(A: s4[3], B: s4[3], C: u4[3], D: b1[3]):\n    for i in range(3):\n        B[i] = A[i] * A[i] + 5\n        C[i] = u4(A[i])\n        D[i] = b1(A[i])\n"
    )
    out = ir.run(program, {"A": np.array([-8, 7, 3]).astype(ml_dtypes.int4)})
    assert [int(x) for x in out["B"]] == [5, 6, -2]
    assert [int(x) for x in out["C"]] == [8, 7, 3]
    assert out["D"].tolist() == [0, 1, 1]
